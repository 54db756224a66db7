#include "runtime/cli/help.hpp"

#include "runtime/command.hpp"
#include "runtime/numbers.hpp"
#include "runtime/report.hpp"

namespace tessera::runtime {

std::string footer(const Model& model) {
  const bool looks = model.attention.layers > 0;
  std::string shown =
      model.has_loss()
          ? examples(model, {"train", "train --data mnist --epochs 10 --out run", "train --resume --out run"})
          : examples(model, {"import weights.safetensors --out run"});
  shown += model.depth != Depth::none ? text("  ", model.name, " depth --out run photo.jpg -o depth.svg\n")
           : model.outputs_are_features
               ? text("  ", model.name, " embed --out run photos -o features.safetensors\n",
                      model.embedding.layers
                          ? ""
                          : text("  ", model.name, " similar --out run photo.jpg --index features.safetensors\n"))
               : text("  ", model.name, " eval --out run\n  ", model.name, " predict --out run --invert photo.jpg\n");
  if (looks) shown += text("  ", model.name, " attention --out run --invert photo.jpg -o seen.svg\n");
  return text("What a command takes: ", model.name, " COMMAND --help.\n\n",
              model.has_loss() ? what_a_run_leaves
                               : "The parameters come from training elsewhere: import makes a checkpoint of them.\n\n",
              environment, shown);
}

void add_version_flag(CLI::App& app, const Model& model) {
  app.set_version_flag("--version", version_text(model), "Tell the versions of Tessera and of the declaration");
}

}  // namespace tessera::runtime
