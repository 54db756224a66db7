#include "runtime/cli/subcommand.hpp"

#include "runtime/digits.hpp"
#include "runtime/error.hpp"
#include "runtime/ranges.hpp"

namespace tessera::runtime {

void add_data_options(CLI::App* command, std::optional<std::filesystem::path>& data,
                      std::optional<std::int64_t>& digits, std::optional<std::int64_t>& limit) {
  command
      ->add_option_function<std::string>(
          "--data", [&data](const std::string& folder) { data = std::filesystem::weakly_canonical(folder); },
          "Folder of a data set: MNIST's four IDX files, CIFAR-10's .bin files (both plain or .gz), or folders "
          "train/CLASS "
          "and test/CLASS of PNG or JPEG pictures; or a file that pack has made (default: built-in digits)")
      ->type_name("DIR");
  command
      ->add_option("--digits", digits,
                   "How many built-in digits to draw for training, and a sixth as many for the test "
                   "(default: 12000)")
      ->check(in<std::int64_t>(1, most_digits))
      ->type_name("N");
  command->add_option("--limit", limit, "Use only the first N training and the first N test images")
      ->check(in<std::int64_t>(1, most_images))
      ->type_name("N");
}

CLI::Option* add_skip_option(CLI::App* command, std::vector<std::string>& skip) {
  return command
      ->add_option(
          "--skip", skip,
          "Leave these parameters at their starting values, and do not ask what the file has for them; * ends a "
          "part of a key: 'head.*'")
      ->expected(1)
      ->take_all()
      ->type_name("KEY");
}

void add_timeout_option(CLI::App* command, CommandContext& context) {
  if (!context.model.ranks) return;
  command
      ->add_option("--rank-timeout", context.rank_timeout,
                   "End, and say which, where a rank has not answered for so many seconds")
      ->capture_default_str()
      ->check(in(0.1, 1e6))
      ->type_name("S");
}

void demand_classes(const Model& model) {
  if (model.depth != Depth::none)
    fail("the declaration has no classes: ", model.name, " depth tells how far away the pixels of pictures are");
  if (model.outputs_are_features)
    fail("the declaration has no classes: ", model.name, " embed gives its features",
         model.embedding.layers ? "" : ", predict --head FILE takes a head that probe has fitted to them");
}

}  // namespace tessera::runtime
