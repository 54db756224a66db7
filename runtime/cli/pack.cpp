#include "runtime/cli/pack.hpp"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>

#include "runtime/data_choice.hpp"
#include "runtime/dataset.hpp"
#include "runtime/error.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/numbers.hpp"
#include "runtime/packed_data.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

struct PackOptions {
  std::optional<std::filesystem::path> from;
  std::optional<std::int64_t> digits, limit;
  std::filesystem::path to;
};

/// Any data set as one file, which is mapped into memory.
int run_pack(const CommandContext& context, const PackOptions& options) {
  const Model& model = context.model;
  const std::filesystem::path& to = options.to;
  DataChoice choice;
  choice.folder = options.from.value_or("");
  choice.digits = options.digits.value_or(choice.digits);
  choice.limit = options.limit.value_or(0);
  if (!is_packed_data(to)) spare_models(to, Output::other, {choice.folder});
  if (std::error_code unknown; !std::filesystem::is_directory(choice.folder, unknown))
    spare_inputs(to, {choice.folder});
  const Room room = [&](std::int64_t bytes) {
    return room_on_disk(to.has_parent_path() ? to.parent_path() : ".", bytes);
  };
  const Dataset train = load(choice, Split::train, model, context.recipe.input, room);
  const Dataset test = load(choice, Split::test, model, context.recipe.input, room);
  check_fit(model, train);
  check_fit(model, test);
  write_packed_data(to, train, test);
  std::cout << to.string() << " holds " << grouped(train.size()) << " training and " << grouped(test.size())
            << " test images of " << train.source << std::endl;
  return 0;
}

}  // namespace

Subcommand add_pack(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<PackOptions>();
  CLI::App* command = app.add_subcommand(
      "pack", text("Write a data set into one file, which ", context.trains ? "train and eval map" : "eval maps",
                   " instead of reading it: for data of any size"));
  add_data_options(command, options->from, options->digits, options->limit);
  command->add_option("-o,--to", options->to, "The file to write")->required()->type_name("FILE");
  command->footer(examples(context.model, {"pack --data photos -o photos.packed", "train --data photos.packed"}));
  return {command, [&context, options](const Gpu*) { return run_pack(context, *options); }};
}

}  // namespace tessera::runtime
