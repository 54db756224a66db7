#include <cstddef>
#include <cstdio>
// libjpeg's header needs these two.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstring>

#include "runtime/error.hpp"
#include "runtime/raster.hpp"

namespace tessera::runtime {
namespace {

constexpr long most_jpeg_memory = 1L << 30;  // bytes, beside the pixels: coefficients of a progressive picture
constexpr int most_jpeg_scans = 100;         // encoders write about ten; each goes through all coefficients

/// One JPEG file on its way in. libjpeg's errors leave it by longjmp, so that nothing between setjmp and a call may
/// have a destructor. What it only warns of, and then invents pixels for, is an error here.
class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = raise;
    errors_.emit_message = warn;
    errors_.output_message = [](j_common_ptr) {};
    info_.client_data = this;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Raster decode(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels) {
    const auto read = [&](auto part) {
      if (passes(part)) return;
      if (errors_.msg_code == JWRN_JPEG_EOF || errors_.msg_code == JERR_INPUT_EOF)
        fail(where, " is truncated: a JPEG picture without an end");
      fail(where, " is not a PNG, JPEG, BMP or PGM picture that can be read: ", message_);
    };
    read([&] { read_header(content); });
    check_pixels(info_.image_width, info_.image_height, most_pixels, where);
    read([&] { start(); });
    read([&] { read_rows(); });
    if (info_.out_color_space == JCS_CMYK) mix_inks();
    return std::move(raster_);
  }

 private:
  static JpegDecoder& of(j_common_ptr info) { return *static_cast<JpegDecoder*>(info->client_data); }
  [[noreturn]] static void raise(j_common_ptr info) {
    info->err->format_message(info, of(info).message_);
    std::longjmp(of(info).place_, 1);
  }
  static void warn(j_common_ptr info, int level) {
    if (level >= 0) return;  // a trace message
    switch (info->err->msg_code) {
      case JWRN_ADOBE_XFORM:
      case JWRN_JFIF_MAJOR:
      case JWRN_NOT_SEQUENTIAL:  // about headers, all pixels are there
        return;
    }
    raise(info);
  }
  [[noreturn]] void refuse(const char* message) {
    std::snprintf(message_, sizeof message_, "%s", message);
    std::longjmp(place_, 1);
  }
  template <class Work>
  bool passes(const Work& work) {
    if (setjmp(place_)) return false;
    work();
    return true;
  }

  void read_header(std::span<const std::uint8_t> content) {
    jpeg_create_decompress(&info_);
    info_.mem->max_memory_to_use = most_jpeg_memory;
    progress_.progress_monitor = [](j_common_ptr info) {
      if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > most_jpeg_scans)
        of(info).refuse("it has more scans than any encoder writes");
    };
    info_.progress = &progress_;
    jpeg_mem_src(&info_, content.data(), content.size());
    constexpr int exif_marker = JPEG_APP0 + 1;
    jpeg_save_markers(&info_, exif_marker, 0xffff);
    jpeg_read_header(&info_, TRUE);
    for (jpeg_saved_marker_ptr marker = info_.marker_list; marker; marker = marker->next)
      if (marker->data_length > 6 && std::memcmp(marker->data, "Exif\0", 6) == 0) {
        raster_.orientation = exif_orientation({marker->data + 6, marker->data_length - 6});
        break;
      }
    if (info_.image_width > largest_side || info_.image_height > largest_side) refuse("it is too large");
    switch (info_.num_components) {
      case 1:
        info_.out_color_space = JCS_GRAYSCALE;
        break;
      case 3:
        info_.out_color_space = JCS_RGB;
        break;
      case 4:
        info_.out_color_space = JCS_CMYK;
        break;
      default:
        refuse("it has neither 1, 3 nor 4 components");
    }
  }

  void start() {
    jpeg_start_decompress(&info_);
    raster_.channels = info_.output_components;
    raster_.height = info_.output_height;
    raster_.width = info_.output_width;
  }

  void read_rows() {
    const std::size_t row = std::size_t{info_.output_width} * static_cast<std::size_t>(info_.output_components);
    while (info_.output_scanline < info_.output_height) {
      const std::size_t begin = raster_.samples.size();
      raster_.samples.resize(begin + row);  // memory grows with the rows that there are
      JSAMPROW to = raster_.samples.data() + begin;
      jpeg_read_scanlines(&info_, &to, 1);
    }
    demand_every_scan();
    jpeg_finish_decompress(&info_);
  }

  /// libjpeg takes coefficients that no scan brought for zeros.
  void demand_every_scan() {
    for (int c = 0; c < info_.num_components; ++c) {
      bool all = info_.comp_info[c].quant_table != nullptr;  // set by a component's first scan
      if (info_.progressive_mode)
        all = all && std::count(info_.coef_bits[c], info_.coef_bits[c] + DCTSIZE2, 0) == DCTSIZE2;
      if (!all) refuse("some of its scans are missing");
    }
  }

  /// CMYK to RGB as Pillow does. Adobe's programs, and so all others, store 255 for no ink.
  void mix_inks() {
    const Bytes inks = std::move(raster_.samples);
    raster_.samples.clear();
    raster_.channels = 3;
    raster_.samples.reserve(inks.size() / 4 * 3);
    for (std::size_t i = 0; i + 3 < inks.size(); i += 4)
      for (std::size_t c = 0; c < 3; ++c) {
        const int light = inks[i + 3], product = (255 - inks[i + c]) * light + 128;
        raster_.samples.push_back(static_cast<std::uint8_t>(std::max(0, light - (((product >> 8) + product) >> 8))));
      }
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf place_;
  char message_[JMSG_LENGTH_MAX] = "";
  Raster raster_;
};

}  // namespace

Raster decode_jpeg(std::span<const std::uint8_t> content, const std::string& where, std::int64_t most_pixels) {
  return JpegDecoder().decode(content, where, most_pixels);
}

}  // namespace tessera::runtime
