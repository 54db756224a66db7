#include "runtime/taming_pictures.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/image.hpp"
#include "runtime/picture_sheet.hpp"
#include "runtime/taming_run.hpp"
#include "runtime/tokens.hpp"

namespace tessera::runtime {

namespace {

/// The pixels of a grid of tokens.
std::vector<float> decoded_windows(const Taming& taming, const PackedPass& decode,
                                   const std::vector<std::int32_t>& tokens, std::int64_t images, const Grid& grid) {
  const auto& [channels, height, width] = taming.image_shape;
  const Grid& window = taming.transformer.tokens.window;
  const std::int64_t down = height / window.rows, across = width / window.columns;
  const std::int64_t all_down = grid.rows * down, all_across = grid.columns * across;
  std::vector<float> pixels(place(images * channels * all_down * all_across));
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> windows;
  for (std::int64_t i = 0; i < grid.rows; ++i)
    for (std::int64_t j = 0; j < grid.columns; ++j)
      windows[{window_start(i, grid.rows, window.rows), window_start(j, grid.columns, window.columns)}].push_back(
          {i, j});
  for (const auto& [corner, cells] : windows) {
    const auto [top, left] = corner;
    std::vector<float> numbers;
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t y = 0; y < window.rows; ++y)
        for (std::int64_t x = 0; x < window.columns; ++x)
          numbers.push_back(static_cast<float>(tokens[place((image * grid.rows + top + y) * grid.columns + left + x)]));
    const std::vector<float> decoded = decode(numbers, window.rows * window.columns);
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t c = 0; c < channels; ++c)
        for (const auto& [i, j] : cells)
          for (std::int64_t y = 0; y < down; ++y)
            std::copy_n(
                &decoded[place(((image * channels + c) * height + (i - top) * down + y) * width + (j - left) * across)],
                across, &pixels[place(((image * channels + c) * all_down + i * down + y) * all_across + j * across)]);
  }
  return pixels;
}

}  // namespace

std::vector<std::int32_t> tokens_of_half(const Taming& taming, const PackedPass& encode,
                                         const std::filesystem::path& path) {
  const auto& [channels, height, width] = taming.image_shape;
  const Grid& window = taming.transformer.tokens.window;
  const Image picture = decode_image(read_file(path, longest_picture), channels, path.string());
  const std::int64_t row = height / window.rows;
  if (picture.width != width || picture.height < row || picture.height > height)
    fail(path.string(), ": is ", picture.width, "x", picture.height, " pixels; what is completed is ", width,
         " across and from ", row, " to ", height, " down");
  Bytes pixels(place(channels * height * width));
  for (std::int64_t c = 0; c < channels; ++c)
    std::copy_n(picture.pixels.begin() + c * picture.height * width, picture.height * width,
                pixels.begin() + c * height * width);
  const std::vector<std::int32_t> found =
      tokens_of_numbers(encode(numbers_of_pixels(pixels), channels * height * width), taming.transformer.tokens.codes);
  const std::int64_t rows = picture.height == height ? window.rows / 2 : picture.height / row;
  return {found.begin(), found.begin() + rows * window.columns};
}

std::vector<float> drawn_pictures(const Taming& taming, const PackedPass& decode, const float* parameters,
                                  const float* packed, const PictureDrawing& drawing,
                                  const std::function<void(std::int64_t tokens)>& progress) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t first = 0; first < drawing.count; first += images_a_pass) {
    const std::int64_t batch = std::min(images_a_pass, drawing.count - first);
    Drawing some{.grid = drawing.grid,
                 .start = {},
                 .given = {},
                 .temperature = drawing.temperature,
                 .top_k = drawing.top_k,
                 .top_p = drawing.top_p,
                 .uniforms = drawing.greedy ? nullptr : uniforms_of(drawing.seed, first)};
    for (std::int64_t i = first; i < first + batch; ++i) {
      some.start.push_back(
          static_cast<std::int32_t>(taming.classes ? drawing.of_class.value_or(i % taming.classes) : taming.start));
      some.given.insert(some.given.end(), drawing.given.begin(), drawing.given.end());
    }
    const std::vector<std::int32_t> drawn =
        draw_tokens(taming.transformer.tokens, parameters, packed, some, [&](std::int64_t) {
          if (progress) progress(batch);
        });
    tokens.insert(tokens.end(), drawn.begin(), drawn.end());
  }
  return decoded_windows(taming, decode, tokens, drawing.count, drawing.grid);
}

}  // namespace tessera::runtime
