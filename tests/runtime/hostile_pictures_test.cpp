// Pictures that are damaged or made to do harm: each draws one sentence that names the file, or is a picture.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "runtime/image.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

std::string big_endian(std::uint32_t word) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift);
  return out;
}

std::string chunk(const std::string& kind, const std::string& data) {
  const std::string body = kind + data;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(static_cast<std::uint32_t>(crc));
}

std::string deflated(const std::string& content) {
  std::string out(compressBound(content.size()), '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(content.data()), content.size());
  return out.substr(0, size);
}

const std::string signature = "\x89PNG\r\n\x1a\n";

std::string header(std::uint32_t width, std::uint32_t height, int depth = 8, int colour = 0, int packing = 0,
                   int filter = 0, int interlace = 0) {
  std::string data = big_endian(width) + big_endian(height);
  for (const int byte : {depth, colour, packing, filter, interlace}) data += static_cast<char>(byte);
  return chunk("IHDR", data);
}

std::string rows(int height, int width) {
  std::string out;
  for (int y = 0; y < height; ++y) out += std::string(1, '\0') + std::string(static_cast<std::size_t>(width), '\x40');
  return out;
}

std::string whole(const std::string& head, const std::string& pixels) {
  return signature + head + chunk("IDAT", deflated(pixels)) + chunk("IEND", "");
}

std::string refusal(const std::string& content, std::int64_t channels = 3) {
  return sentence([&] { decode_image(bytes_of(content), channels, "f"); });
}

std::string jpeg(const char* name) { return slurp(std::string(paths::golden) + "/pictures/" + name); }

struct Bad {
  const char* name;
  std::string content;
};

class BadPictures : public testing::TestWithParam<Bad> {};

TEST_P(BadPictures, DrawOneSentence) {
  for (const std::int64_t channels : {1, 3}) {
    const std::string said = refusal(GetParam().content, channels);
    EXPECT_TRUE(said.starts_with("f is ")) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos);
  }
}

std::vector<Bad> bad_pictures() {
  const std::string pixels = rows(2, 2), good = header(2, 2);
  const std::string ramp = jpeg("ramp.jpg");
  auto patched = [](std::string content, std::size_t at, char byte) {
    content.at(at) = byte;
    return content;
  };
  const std::size_t frame = ramp.find("\xff\xc0");  // its marker, length, precision, height, width, ...
  return {
      {"nothing", ""},
      {"one_byte", "\x89"},
      {"text", "this is no picture"},
      {"zeros", std::string(4096, '\0')},
      {"png_signature_alone", signature},
      {"png_without_a_header", signature + chunk("IDAT", deflated(pixels)) + chunk("IEND", "")},
      {"png_header_alone", signature + good},
      {"png_header_too_short", signature + chunk("IHDR", "1234")},
      {"png_second_header", signature + good + good + chunk("IDAT", deflated(pixels)) + chunk("IEND", "")},
      {"png_without_pixels", signature + good + chunk("IEND", "")},
      {"png_width_zero", whole(header(0, 2), pixels)},
      {"png_height_zero", whole(header(2, 0), pixels)},
      {"png_width_of_2_31", whole(header(0x80000000u, 2), pixels)},
      {"png_width_of_2_32", whole(header(0xffffffffu, 1), pixels)},
      {"png_wider_than_any_photo", whole(header(100000, 1), pixels)},
      {"png_larger_than_memory", whole(header(0x7fffffff, 0x7fffffff), pixels)},
      {"png_larger_than_its_pixels", whole(header(8192, 8192), pixels)},
      {"png_of_fewer_pixels_than_declared", whole(header(2, 3), pixels)},
      {"png_depth_zero", whole(header(2, 2, 0), pixels)},
      {"png_depth_three", whole(header(2, 2, 3), pixels)},
      {"png_colour_type_five", whole(header(2, 2, 8, 5), pixels)},
      {"png_colour_type_255", whole(header(2, 2, 8, 255), pixels)},
      {"png_unknown_packing", whole(header(2, 2, 8, 0, 1), pixels)},
      {"png_unknown_filters", whole(header(2, 2, 8, 0, 0, 1), pixels)},
      {"png_unknown_interlacing", whole(header(2, 2, 8, 0, 0, 0, 2), pixels)},
      {"png_row_of_an_unknown_filter", whole(good, patched(pixels, 3, '\5'))},
      {"png_palette_is_missing", whole(header(2, 2, 8, 3), pixels)},
      {"png_palette_of_two_bytes",
       signature + header(2, 2, 8, 3) + chunk("PLTE", "ab") + chunk("IDAT", deflated(pixels))},
      {"png_palette_too_long",
       signature + header(2, 2, 8, 3) + chunk("PLTE", std::string(771, 'a')) + chunk("IDAT", deflated(pixels))},
      {"png_pixels_are_not_packed", signature + good + chunk("IDAT", pixels) + chunk("IEND", "")},
      {"png_packed_pixels_are_damaged",
       signature + good + chunk("IDAT", deflated(pixels).substr(0, 4) + "\xff\xff\xff") + chunk("IEND", "")},
      {"png_chunk_longer_than_the_file", signature + good + big_endian(0x7fffffff) + "IDAT" + deflated(pixels)},
      {"png_chunk_of_2_32_bytes", signature + good + big_endian(0xffffffffu) + "IDAT" + deflated(pixels)},
      {"png_unknown_critical_chunk", signature + good + chunk("ABCD", "") + chunk("IDAT", deflated(pixels))},
      {"png_without_an_end", signature + good + chunk("IDAT", deflated(pixels))},
      {"jpeg_start_alone", "\xff\xd8\xff"},
      {"jpeg_start_and_end", "\xff\xd8\xff\xd9"},
      {"jpeg_without_its_end", ramp.substr(0, ramp.size() - 2)},
      {"jpeg_half", ramp.substr(0, ramp.size() / 2)},
      {"jpeg_without_a_frame", ramp.substr(0, frame) + "\xff\xd9"},
      {"jpeg_height_zero", patched(patched(ramp, frame + 5, '\0'), frame + 6, '\0')},
      {"jpeg_width_zero", patched(patched(ramp, frame + 7, '\0'), frame + 8, '\0')},
      {"jpeg_wider_than_any_photo", patched(ramp, frame + 7, '\xff')},
      {"jpeg_of_12_bits", patched(ramp, frame + 4, '\x0c')},
      {"jpeg_of_no_components", patched(ramp, frame + 9, '\0')},
      {"jpeg_of_two_components", patched(ramp, frame + 9, '\2')},
      {"jpeg_of_255_components", patched(ramp, frame + 9, '\xff')},
      {"jpeg_sampled_zero_times", patched(ramp, frame + 11, '\0')},
      {"jpeg_sampled_fifteen_times", patched(ramp, frame + 11, '\xff')},
      {"jpeg_frame_of_another_length", patched(ramp, frame + 3, '\1')},
      {"jpeg_of_an_unknown_kind", patched(ramp, frame + 1, '\xc3')},
      {"jpeg_huffman_table_of_4080_symbols",
       std::string("\xff\xd8\xff\xc4\x00\x13\x00", 7) + std::string(16, '\xff') + ramp.substr(2)},
      {"jpeg_huffman_table_of_257_symbols", std::string("\xff\xd8\xff\xc4\x01\x14\x10", 7) + "\xff\x02" +
                                                std::string(14, '\0') + std::string(257, '\1') + ramp.substr(2)},
      {"jpeg_huffman_table_behind_filling",
       std::string("\xff\xff\xd8\xff\xc4\x00\x13\x00", 8) + std::string(16, '\xff')},
      {"jpeg_huffman_table_cut_off_by_its_segment",
       std::string("\xff\xd8\xff\xc4\x00\x04\x00\xff", 8) + std::string(15, '\xff') + ramp.substr(2)},
      {"pgm_of_16_bits", "P5 1 1 65535\nxx"},
      {"bmp_signature_alone", "BM"},
      {"bmp_of_zeros", "BM" + std::string(100, '\0')},
      {"pgm_signature_alone", "P5"},
      {"pgm_without_a_size", "P5\n"},
      {"pgm_larger_than_memory", "P5 2000000000 2000000000 255\n"},
      {"pgm_of_a_size_that_overflows", "P5 99999999999999999999 1 255\nx"},
      {"pgm_without_its_pixels", "P5 4 4 255\nxx"},
      {"pgm_of_size_zero", "P5 0 0 255\n"},
      {"gif", "GIF89a" + std::string(100, '\1')},
  };
}

INSTANTIATE_TEST_SUITE_P(Cases, BadPictures, testing::ValuesIn(bad_pictures()),
                         [](const testing::TestParamInfo<Bad>& info) { return info.param.name; });

TEST(HostilePictures, TheProgramSaysWhatTheReaderSaysOfThem) {
  TemporaryFolder folder;
  const std::string model = (folder / "run").string(), picture = (folder / "f.png").string();
  ASSERT_EQ(sample({"train", "--digits", "60", "--epochs", "0", "--out", model}).code, 0);
  const std::vector<Bad> all = bad_pictures();
  EXPECT_GE(all.size(), 60u);
  for (const Bad& bad : all) {
    spill(picture, bad.content);
    const Result result = sample({"predict", "--out", model, picture});
    EXPECT_EQ(result.code, 1) << bad.name;
    EXPECT_EQ(result.out, "") << bad.name;
    EXPECT_TRUE(result.err.starts_with("sample: " + picture + " is ")) << bad.name << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << bad.name << ": " << result.err;
  }
}

TEST(HostilePictures, TheGoodOnesBesideThemAreRead) {
  EXPECT_EQ(decode_image(bytes_of(whole(header(2, 2), rows(2, 2))), 1, "f").pixels, Bytes(4, 0x40));
  for (const char* name : {"ramp.jpg", "ramp_progressive.jpg"}) {
    const Image image = decode_image(bytes_of(jpeg(name)), 1, name);
    ASSERT_EQ(image.pixels.size(), 256u);
    for (std::size_t i = 0; i < 256; ++i) ASSERT_NEAR(image.pixels[i], static_cast<int>(i), 6) << name;
  }
}

TEST(HostilePictures, EveryTruncatedPngIsRefused) {
  const std::string content = whole(header(2, 2), rows(2, 2));
  // The last four bytes are the check sum of the end, which is there without them.
  for (std::size_t size = 0; size + 4 < content.size(); ++size) EXPECT_NE(refusal(content.substr(0, size)), "") << size;
}

TEST(HostilePictures, EveryTruncatedJpegIsRefused) {
  for (const char* name : {"ramp.jpg", "ramp_progressive.jpg"}) {
    const std::string content = jpeg(name);
    for (std::size_t size = 0; size < content.size(); ++size)
      EXPECT_NE(refusal(content.substr(0, size)), "") << name << " " << size;
    EXPECT_EQ(refusal(content.substr(0, content.size() - 1)), "f is truncated: a JPEG picture without an end");
  }
}

TEST(HostilePictures, ChangedBytesNeverGiveAPictureOfAnotherLengthThanItsSize) {
  for (const std::string& content : {whole(header(2, 2), rows(2, 2)), jpeg("ramp.jpg"), jpeg("ramp_progressive.jpg")})
    for (std::size_t at = 0; at < content.size(); ++at)
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string changed = content;
        changed[at] = static_cast<char>(changed[at] ^ change);
        try {
          const Image image = decode_image(bytes_of(changed), 3, "f");
          ASSERT_EQ(image.pixels.size(), static_cast<std::size_t>(3 * image.height * image.width));
        } catch (const Error&) {
        }
      }
}

}  // namespace
}  // namespace tessera::runtime
