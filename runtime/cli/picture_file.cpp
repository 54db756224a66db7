#include "runtime/cli/picture_file.hpp"

#include <span>
#include <string>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/gzip.hpp"
#include "runtime/idx.hpp"

namespace tessera::runtime {

Pictures read_images(const Model& model, const std::filesystem::path& path) {
  const std::string where = path.string();
  const auto is_idx = [](std::span<const std::uint8_t> content) {
    return content.size() >= 4 && content[0] == 0 && content[1] == 0 && content[2] == 8 && content[3] == 3;
  };
  Bytes content = read_packed_file(
      path, longest_picture, [&](auto first) { return is_idx(first) ? idx_bytes(first, where) : longest_picture; });
  if (!is_idx(content)) {
    Image image = decode_image(content, model.image_shape[0], where);
    return {image.channels, image.height, image.width, std::move(image.pixels)};
  }
  if (model.image_shape[0] != 1)
    fail(where, " holds grey images, ", model.name, " reads ", model.image_shape[0], " channels");
  Idx file = parse_idx(std::move(content), where);
  return {1, file.shape[1], file.shape[2], std::move(file.data)};
}

Image prepared(const Model& model, const Preprocessing& preprocessing, const Image& image, bool inverted) {
  Image result = prepared(image, preprocessing, model.image_shape[1], model.image_shape[2]);
  if (inverted) invert(result);
  return result;
}

}  // namespace tessera::runtime
