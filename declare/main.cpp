// tessera: what has to do with checkpoints before there is a program for them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <optional>

#include "declare/declare.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/cli/unknown_word.hpp"
#include "runtime/ending.hpp"
#include "runtime/error.hpp"

namespace {

/// my_vit -> MyVit
std::string in_camel_case(const std::string& stem) {
  std::string name;
  bool starts = true;
  for (const char letter : stem) {
    const bool counts = std::isalnum(static_cast<unsigned char>(letter));
    if (counts) name += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    starts = !counts;
  }
  return name;
}

bool is_identifier(const std::string& name) {
  const auto counts = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), counts);
}

int run(int argc, char** argv) {
  using namespace tessera;
  CLI::App app("Tessera: Vision Transformers, declared in C++ and emitted as plain C++.", "tessera");
  app.require_subcommand(0, 1);
  std::string checkpoint, configuration, output, name;
  bool overwrite = false;
  CLI::App* declare =
      app.add_subcommand("declare",
                         "Writes the declaration of a Vision Transformer's checkpoint: a header for tessera_add_model. "
                         "What is assumed is said on standard error, a line each; what cannot be said is refused.");
  declare
      ->add_option("CHECKPOINT", checkpoint,
                   "A safetensors file with the keys of timm, torchvision, Hugging Face, DINOv2, Swin, Segment "
                   "Anything, Depth Anything or OpenCLIP, as published")
      ->required()
      ->type_name("");
  declare
      ->add_option("--config", configuration,
                   "The config.json beside it (OpenCLIP: open_clip_config.json): heads, activation, epsilon and "
                   "positions, which shapes do not tell")
      ->type_name("FILE");
  declare->add_option("-o,--output", output, "The header that is written")->required()->type_name("FILE");
  declare->add_option("--name", name, "The model's name in C++ (default: of the header's name, my_vit.hpp: MyVit)")
      ->type_name("NAME");
  declare->add_flag("--overwrite", overwrite, "Replace a header that is there");
  if (const std::optional<int> ended = runtime::parsed(app, argc, argv, "declare")) return *ended;
  if (name.empty()) name = in_camel_case(std::filesystem::path(output).stem().string());
  if (!is_identifier(name)) runtime::fail("--name: ", runtime::printable(name), " is no name of a type in C++");
  std::error_code unknown;
  if (!overwrite && std::filesystem::exists(output, unknown))
    runtime::fail(output, ": is there already; --overwrite replaces it");
  runtime::check_target(output);
  runtime::spare_models(output, runtime::Output::other, {checkpoint, configuration});
  const tessera::declare::Config config =
      configuration.empty() ? tessera::declare::Config{} : tessera::declare::read_config(configuration);
  const tessera::declare::Declaration written =
      tessera::declare::declare(tessera::declare::read_checkpoint(checkpoint), config, name);
  for (const std::string& sentence : written.assumptions)
    std::cerr << "assumed: " << runtime::without_controls(sentence) << "\n";
  runtime::write_file(output, written.header);
  std::cout << output << ": tessera::models::" << name << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::runtime::ending_in_a_sentence("tessera", [&] { return run(argc, argv); });
}
