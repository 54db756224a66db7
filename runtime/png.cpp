#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <new>

#include "runtime/error.hpp"
#include "runtime/image.hpp"
#include "runtime/raster.hpp"

namespace tessera::runtime {
namespace {

/// How libpng's errors leave it: by longjmp, so that nothing between setjmp and a call may have a destructor.
struct PngErrors {
  std::jmp_buf place;
  char message[128] = "";

  [[noreturn]] static void raise(png_structp png, const char* message) {
    auto* const errors = static_cast<PngErrors*>(png_get_error_ptr(png));
    std::snprintf(errors->message, sizeof errors->message, "%s", message);
    std::longjmp(errors->place, 1);
  }
  static void ignore(png_structp, const char*) {}
  /// False when libpng found an error.
  template <class Work>
  bool passes(const Work& work) {
    if (setjmp(place)) return false;
    work();
    return true;
  }
};

/// One PNG file on its way in. Of the chunks only those are looked into that decide pixels, and EXIF's; the checksum of
/// every chunk must hold, as Pillow asks.
class PngDecoder {
 public:
  explicit PngDecoder(std::span<const std::uint8_t> content)
      : rest_(content),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, PngErrors::raise, PngErrors::ignore)),
        info_(png_ ? png_create_info_struct(png_) : nullptr) {
    if (info_) return;
    png_destroy_read_struct(&png_, nullptr, nullptr);
    throw std::bad_alloc();
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Raster decode(const std::string& where, std::int64_t most_pixels) {
    const auto read = [&](auto part) {
      if (!errors_.passes(part))
        fail(where, " is not a PNG, JPEG, BMP or PGM picture that can be read: ", errors_.message);
    };
    read([&] { read_header(); });
    check_pixels(raster_.width, raster_.height, most_pixels, where);
    read([&] { read_rows(); });
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) look_up_colours(where);
    png_unknown_chunkp chunk = nullptr;
    if (png_get_unknown_chunks(png_, info_, &chunk) > 0)
      raster_.orientation = exif_orientation({chunk->data, chunk->size});
    return std::move(raster_);
  }

 private:
  static void read(png_structp png, png_bytep to, std::size_t size) {
    auto* const decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > decoder->rest_.size()) png_error(png, "it is truncated");
    std::copy_n(decoder->rest_.begin(), size, to);
    decoder->rest_ = decoder->rest_.subspan(size);
  }

  void read_header() {
    png_set_read_fn(png_, this, read);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(png_, 0);  // a wrong Adler checksum, and more or fewer rows than declared, are errors
    png_set_user_limits(png_, largest_side, largest_side);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_ALWAYS, reinterpret_cast<const png_byte*>("eXIf"), 1);
    png_read_info(png_, info_);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE)
      png_set_packing(png_);  // an index a byte: whether there is such a colour is checked here, not by libpng
    else
      png_set_expand(png_);
    png_set_strip_16(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    raster_.channels = png_get_channels(png_, info_);
    raster_.height = png_get_image_height(png_, info_);
    raster_.width = png_get_image_width(png_, info_);
  }

  void read_rows() {
    const std::size_t row = png_get_rowbytes(png_, info_);
    for (int pass = 0; pass < passes_; ++pass)
      for (std::size_t y = 0; y < static_cast<std::size_t>(raster_.height); ++y) {
        // Memory grows with the rows that there are, unless each pass goes through all of them.
        const std::size_t rows = passes_ == 1 ? y + 1 : static_cast<std::size_t>(raster_.height);
        if (raster_.samples.size() < rows * row) raster_.samples.resize(rows * row);
        png_read_row(png_, raster_.samples.data() + y * row, nullptr);
      }
    png_read_end(png_, info_);
  }

  void look_up_colours(const std::string& where) {
    png_colorp colours = nullptr;
    int count = 0, opacities = 0;
    png_bytep opacity = nullptr;
    png_get_PLTE(png_, info_, &colours, &count);
    png_get_tRNS(png_, info_, &opacity, &opacities, nullptr);
    const Bytes indices = std::move(raster_.samples);
    raster_.channels = opacities > 0 ? 4 : 3;
    raster_.samples.clear();
    raster_.samples.reserve(indices.size() * static_cast<std::size_t>(raster_.channels));
    for (const int index : indices) {
      if (index >= count) fail(where, " is a damaged PNG picture: its palette has no colour ", index);
      const png_color& colour = colours[index];
      raster_.samples.insert(raster_.samples.end(), {colour.red, colour.green, colour.blue});
      if (opacities > 0) raster_.samples.push_back(index < opacities ? opacity[index] : 255);
    }
  }

  PngErrors errors_;
  std::span<const std::uint8_t> rest_;
  png_structp png_;
  png_infop info_;
  int passes_ = 1;
  Raster raster_;
};

}  // namespace

Raster decode_png(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels) {
  return PngDecoder(content).decode(where, most_pixels);
}

Bytes encode_png(std::span<const std::uint8_t> pixels, std::int64_t channels, std::int64_t height, std::int64_t width) {
  const std::int64_t area = height * width;
  Bytes interleaved(pixels.size()), file;
  for (std::int64_t i = 0; i < area; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      interleaved[static_cast<std::size_t>(i * channels + c)] = pixels[static_cast<std::size_t>(c * area + i)];
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  file.resize(size);
  if (!png_image_write_to_memory(&image, file.data(), &size, 0, interleaved.data(), 0, nullptr))
    fail("a picture of ", channels, "x", height, "x", width, " cannot be encoded as PNG: ", image.message);
  file.resize(size);
  return file;
}

}  // namespace tessera::runtime
