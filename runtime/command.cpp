#include "runtime/command.hpp"

#include <cmath>
#include <system_error>

#include "runtime/numbers.hpp"

namespace tessera::runtime {

std::filesystem::path shipped_parameters(const Model& model) {
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path beside = program.parent_path() / (model.name + ".safetensors");
  return !unknown && std::filesystem::is_regular_file(beside, unknown) ? beside : std::filesystem::path();
}

Usage load_for_use(const std::filesystem::path& path, const Model& model, const Recipe& declared, float* parameters) {
  return load_parameters(path, model, parameters).usage.value_or(Usage{declared.input, {}});
}

void add_labels_option(CLI::App* command, std::filesystem::path& labels) {
  command
      ->add_option("--labels", labels,
                   "The classes' names: a text file with one a line, a .csv file of numbers and names, a JSON list or "
                   "object, or the config.json beside a checkpoint (default: those of the images or of the checkpoint)")
      ->type_name("FILE");
}

void add_device_option(CLI::App* command, std::string& device) {
  command
      ->add_option("--device", device,
                   "Where to compute: cpu, or cuda, which is the first GPU, where the program was built for one")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}).description(""))
      ->type_name("DEVICE");
}

void add_checkpoint_options(CLI::App* command, ParameterFile& parameters) {
  const std::string otherwise = parameters.shipped.empty()
                                    ? "checkpoint.safetensors in --out"
                                    : parameters.shipped.filename().string() + " beside the program";
  command->add_option("--out", parameters.out, "Folder of the training run")
      ->each([&parameters](const std::string&) { parameters.shipped.clear(); })
      ->capture_default_str()
      ->type_name("DIR");
  command
      ->add_option("--checkpoint", parameters.checkpoint,
                   text("A safetensors file with the model's parameters (default: ", otherwise, ")"))
      ->type_name("FILE");
}

std::string examples(const Model& model, const std::vector<std::string>& arguments) {
  std::string lines = "Examples:";
  for (const std::string& of_one : arguments) lines += text("\n  ", model.name, " ", of_one);
  return lines + "\n";
}

}  // namespace tessera::runtime
