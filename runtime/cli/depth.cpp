#include "runtime/cli/depth.hpp"

#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/depth.hpp"
#include "runtime/embed.hpp"
#include "runtime/error.hpp"
#include "runtime/features.hpp"
#include "runtime/file.hpp"
#include "runtime/numbers.hpp"
#include "runtime/svg.hpp"

namespace tessera::runtime {
namespace {

struct DepthOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path output = "depth.png";
};

/// Where each picture's depths go: one picture's to the path, those of several into the folder of this name, as PNG.
std::vector<std::filesystem::path> places(const std::filesystem::path& output, const PictureList& pictures) {
  std::error_code unknown;
  const bool folder = std::filesystem::is_directory(output, unknown);
  const std::string kind = output.extension().string();
  if (!folder && pictures.size() != 1)
    fail(output.string(), " is no folder: the depths of ", grouped(pictures.size()),
         " pictures go into a folder, which has to be there, or as numbers into a .safetensors file");
  if (!folder && kind != ".png" && kind != ".svg")
    fail(output.string(), " names no picture: it has to end in .png, .svg or .safetensors, or be a folder");
  if (!folder) return {output};
  std::vector<std::filesystem::path> all;
  std::set<std::filesystem::path> taken;
  for (const std::string& name : pictures.names) {
    all.push_back(output / std::filesystem::path(name).stem().concat(".png"));
    if (!taken.insert(all.back()).second)
      fail("the depths of ", without_controls(name), " and of another picture would both be ", all.back().string());
  }
  return all;
}

int run_depth(const CommandContext& context, const DepthOptions& options, const Gpu* gpu) {
  const Model& model = context.model;
  const bool numbers = options.output.extension() == ".safetensors";
  const PictureList pictures = pictures_of_files(model, options.files);
  std::vector<std::filesystem::path> to;
  if (numbers) {
    check_place(options.output, options.files);
  } else {
    to = places(options.output, pictures);
    const std::vector<std::filesystem::path> inputs(pictures.names.begin(), pictures.names.end());
    for (const std::filesystem::path& path : to) {
      check_target(path);
      spare_models(path, Output::other, inputs);
    }
  }
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  const Preprocessing input = load_for_use(context.parameters.file(), model, context.recipe, parameters.floats()).input;
  const Inference inference(model, parameters.floats(), 1, gpu);
  std::vector<DepthMap> maps;
  depths(model, inference, input, pictures, [&](std::int64_t index, const Image& picture, const DepthMap& map) {
    const auto i = static_cast<std::size_t>(index);
    const std::string name = without_controls(pictures.names[i]);
    if (numbers) {
      maps.push_back(map);
    } else if (to[i].extension() == ".svg") {
      const std::string shown = without_controls(std::filesystem::path(pictures.names[i]).filename().string());
      write_file(to[i], depth_svg(picture, map, model.depth, text(model.name, ": ", shown)));
    } else {
      const Bytes png = depth_png(map, model.depth);
      write_file(to[i], std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
    }
    const auto [least, most] = map.range();
    std::cout << (numbers ? options.output : to[i]).string() << ": " << name << ", " << map.height << " x " << map.width
              << ", " << (model.depth == Depth::metres ? "" : "inverse depth ") << shortest(least) << " to "
              << shortest(most) << (model.depth == Depth::metres ? " m\n" : "\n");
  });
  if (numbers)
    write_depths(options.output, pictures.names, maps, model.depth, origin_of(model, parameters.floats(), input));
  return 0;
}

}  // namespace

Subcommand add_depth(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<DepthOptions>();
  const Model& model = context.model;
  CLI::App* const command = app.add_subcommand("depth", "Tell how far away each pixel of pictures is");
  command->add_option("FILE", options->files, "PNG, JPEG, BMP, PGM or PPM pictures of any size, and folders of them")
      ->required()
      ->type_name("");
  command
      ->add_option("-o,--output", options->output,
                   "Of one picture a .png, grey, the nearest pixel white, or an .svg with the picture beside it; of "
                   "several a folder, NAME.png each; or numbers, a .safetensors file with a tensor a picture")
      ->capture_default_str()
      ->type_name("FILE");
  add_checkpoint_options(command, context.parameters);
  add_device_option(command, context.device);
  command->footer(text(
      model.depth == Depth::metres
          ? "Depths are metres.\n"
          : "Depths are inverse: the larger the nearer, up to a factor and an offset that differ from picture to\n"
            "picture.\n",
      "A picture is scaled to what the model reads, and its depths to the picture's size. ", threads_too,
      examples(model, {"depth --out run photo.jpg -o depth.svg", "depth --out run photos -o depths.safetensors"})));
  return {command, [&context, options](const Gpu* gpu) { return run_depth(context, *options, gpu); }};
}

}  // namespace tessera::runtime
