#include "runtime/cli/exchange.hpp"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"
#include "runtime/exchange.hpp"
#include "runtime/labels.hpp"
#include "runtime/onnx.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

struct ExportOptions {
  std::filesystem::path file;  ///< of parameters
  std::filesystem::path onnx;  ///< in the place of `file`
  std::filesystem::path labels;
  std::string dtype = "f32";
};

struct ImportOptions {
  std::filesystem::path file;
  std::vector<std::string> skip;
};

int run_export(const CommandContext& context, const ExportOptions& options) {
  const Model& model = context.model;
  const bool whole = !options.onnx.empty();
  const std::filesystem::path& to = whole ? options.onnx : options.file;
  const std::vector<std::filesystem::path> read{context.parameters.file(), options.labels};
  spare_models(to, whole ? Output::other : Output::parameters, read);
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  Usage usage = load_for_use(context.parameters.file(), model, context.recipe, parameters.floats());
  if (!options.labels.empty()) usage.classes = read_labels(options.labels, model.classes);
  if (whole) {
    spare_models(onnx_data(to), Output::other, read);
    const bool beside = export_onnx(to, model, parameters.floats(), usage);
    std::cout << to.string() << " holds the forward pass of " << model.name << " with the parameters of "
              << context.parameters.file().string();
    if (beside) std::cout << ", whose numbers lie beside it in " << onnx_data(to).string();
    std::cout << std::endl;
    return 0;
  }
  const std::string dtype = options.dtype == "f32" ? "F32" : options.dtype == "f16" ? "F16" : "BF16";
  export_parameters(options.file, model, parameters.floats(), dtype, usage);
  std::cout << options.file.string() << " holds the parameters of " << context.parameters.file().string() << " as "
            << dtype << std::endl;
  return 0;
}

}  // namespace

Subcommand add_export(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export",
      "Write the parameters alone, with PyTorch's keys and layouts, as safetensors, or the model as an ONNX file");
  add_checkpoint_options(command, context.parameters);
  CLI::Option* to = command->add_option("-o,--to", options->file, "The file of parameters to write");
  CLI::Option* onnx = command->add_option(
      "--onnx", options->onnx, "The ONNX file to write: the forward pass in single precision, with its parameters");
  to->type_name("FILE");
  onnx->type_name("FILE")->excludes(to);
  add_labels_option(command, options->labels);
  command->add_option("--dtype", options->dtype, "Type of the numbers: f32, f16 or bf16")
      ->capture_default_str()
      ->check(CLI::IsMember({"f32", "f16", "bf16"}).description(""))
      ->type_name("TYPE")
      ->excludes(onnx);
  command->callback([to, onnx] {
    if (to->empty() && onnx->empty()) throw CLI::RequiredError("--to FILE or --onnx FILE");
  });
  command->footer(examples(
      context.model, {"export --out run --dtype f16 -o weights.safetensors", "export --out run --onnx model.onnx"}));
  return {command, [&context, options](const Gpu*) { return run_export(context, *options); }};
}

Subcommand add_import(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand(
      "import", "Make a checkpoint of a safetensors file with the model's keys, as PyTorch has them");
  command->add_option("FILE", options->file, "Parameters in F32, F16, BF16 or F64")->required()->type_name("");
  command->add_option("--out", context.parameters.out, "Folder for the checkpoint")
      ->capture_default_str()
      ->type_name("DIR");
  add_skip_option(command, options->skip);
  command->footer(examples(context.model, {"import weights.safetensors --out run"}));
  const auto run = [&context, options](const Gpu*) {
    import_parameters(options->file, context.parameters.out, context.model, options->skip, context.recipe.seed);
    return 0;
  };
  return {command, run};
}

}  // namespace tessera::runtime
