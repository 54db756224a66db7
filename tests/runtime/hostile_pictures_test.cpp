// Pictures that are damaged or made to do harm: each draws one sentence that names the file, or is a picture.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/image.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/png_file.hpp"

namespace tessera::runtime {
namespace {

std::string rows(int height, int width) {
  std::string out;
  for (int y = 0; y < height; ++y) out += std::string(1, '\0') + std::string(static_cast<std::size_t>(width), '\x40');
  return out;
}

std::string whole(const std::string& head, const std::string& pixels) {
  return png_signature + head + png_chunk("IDAT", deflated(pixels)) + png_chunk("IEND", "");
}

std::string refusal(const std::string& content, std::int64_t channels = 3) {
  return sentence([&] { decode_image(bytes_of(content), channels, "f"); });
}

std::string jpeg(const char* name) { return slurp(std::string(paths::golden) + "/pictures/" + name); }

std::string little_endian(std::uint64_t number, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> 8 * i);
  return out;
}

/// A BMP of these bits, whose palette has as many colours.
std::string bmp(std::int32_t width, std::int32_t height, int bits, const std::string& pixels, std::uint32_t colours = 0,
                int compression = 0) {
  const std::string palette(4 * std::size_t{colours}, '\x40');
  const auto word = [](std::int64_t number) { return little_endian(static_cast<std::uint64_t>(number), 4); };
  return "BM" + word(static_cast<std::int64_t>(54 + palette.size() + pixels.size())) + word(0) +
         word(static_cast<std::int64_t>(54 + palette.size())) + word(40) + word(width) + word(height) +
         little_endian(1, 2) + little_endian(static_cast<std::uint64_t>(bits), 2) + word(compression) + word(0) +
         word(0) + word(0) + word(colours) + word(0) + palette + pixels;
}

/// The content with its last scan as often again.
std::string with_scans(const std::string& content, int more) {
  const std::size_t last = content.rfind("\xff\xda");
  std::string out = content.substr(0, content.size() - 2);
  for (int i = 0; i < more; ++i) out += content.substr(last, content.size() - 2 - last);
  return out + "\xff\xd9";
}

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
  const std::string pixels = rows(2, 2), good = png_header(2, 2);
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
      {"png_signature_alone", png_signature},
      {"png_without_a_header", png_signature + png_chunk("IDAT", deflated(pixels)) + png_chunk("IEND", "")},
      {"png_header_alone", png_signature + good},
      {"png_header_too_short", png_signature + png_chunk("IHDR", "1234")},
      {"png_second_header", png_signature + good + good + png_chunk("IDAT", deflated(pixels)) + png_chunk("IEND", "")},
      {"png_without_pixels", png_signature + good + png_chunk("IEND", "")},
      {"png_width_zero", whole(png_header(0, 2), pixels)},
      {"png_height_zero", whole(png_header(2, 0), pixels)},
      {"png_width_of_2_31", whole(png_header(0x80000000u, 2), pixels)},
      {"png_width_of_2_32", whole(png_header(0xffffffffu, 1), pixels)},
      {"png_wider_than_any_photo", whole(png_header(100000, 1), pixels)},
      {"png_larger_than_memory", whole(png_header(0x7fffffff, 0x7fffffff), pixels)},
      {"png_larger_than_its_pixels", whole(png_header(8192, 8192), pixels)},
      {"png_of_fewer_pixels_than_declared", whole(png_header(2, 3), pixels)},
      {"png_depth_zero", whole(png_header(2, 2, 0), pixels)},
      {"png_depth_three", whole(png_header(2, 2, 3), pixels)},
      {"png_colour_type_five", whole(png_header(2, 2, 8, 5), pixels)},
      {"png_colour_type_255", whole(png_header(2, 2, 8, 255), pixels)},
      {"png_unknown_packing", whole(png_header(2, 2, 8, 0, 1), pixels)},
      {"png_unknown_filters", whole(png_header(2, 2, 8, 0, 0, 1), pixels)},
      {"png_unknown_interlacing", whole(png_header(2, 2, 8, 0, 0, 0, 2), pixels)},
      {"png_row_of_an_unknown_filter", whole(good, patched(pixels, 3, '\5'))},
      {"png_palette_is_missing", whole(png_header(2, 2, 8, 3), pixels)},
      {"png_palette_of_two_bytes",
       png_signature + png_header(2, 2, 8, 3) + png_chunk("PLTE", "ab") + png_chunk("IDAT", deflated(pixels))},
      {"png_palette_too_long", png_signature + png_header(2, 2, 8, 3) + png_chunk("PLTE", std::string(771, 'a')) +
                                   png_chunk("IDAT", deflated(pixels))},
      {"png_pixels_are_not_packed", png_signature + good + png_chunk("IDAT", pixels) + png_chunk("IEND", "")},
      {"png_packed_pixels_are_damaged", png_signature + good +
                                            png_chunk("IDAT", deflated(pixels).substr(0, 4) + "\xff\xff\xff") +
                                            png_chunk("IEND", "")},
      {"png_chunk_longer_than_the_file", png_signature + good + big_endian(0x7fffffff) + "IDAT" + deflated(pixels)},
      {"png_chunk_of_2_32_bytes", png_signature + good + big_endian(0xffffffffu) + "IDAT" + deflated(pixels)},
      {"png_unknown_critical_chunk",
       png_signature + good + png_chunk("ABCD", "") + png_chunk("IDAT", deflated(pixels))},
      {"png_without_an_end", png_signature + good + png_chunk("IDAT", deflated(pixels))},
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
      {"jpeg_that_declares_more_than_it_holds",
       patched(patched(patched(patched(ramp, frame + 5, '\x1f'), frame + 6, '\x40'), frame + 7, '\x1f'), frame + 8,
               '\x40')},
      {"jpeg_that_holds_more_than_it_declares", patched(ramp, frame + 6, '\x08')},
      {"jpeg_of_a_thousand_scans", with_scans(jpeg("ramp_progressive.jpg"), 1000)},
      {"png_of_another_adler_checksum",
       png_signature + good + png_chunk("IDAT", patched(deflated(pixels), deflated(pixels).size() - 1, 'x')) +
           png_chunk("IEND", "")},
      {"png_of_more_rows_than_declared", whole(good, rows(3, 2))},
      {"png_index_beyond_its_palette", png_signature + png_header(2, 2, 8, 3) + png_chunk("PLTE", "abcdef") +
                                           png_chunk("IDAT", deflated(patched(pixels, 4, '\2'))) +
                                           png_chunk("IEND", "")},
      {"bmp_cut", bmp(8, 8, 24, std::string(191, 'x'))},
      {"bmp_cut_in_its_palette", bmp(8, 8, 8, "", 256).substr(0, 500)},
      {"bmp_index_beyond_its_palette", bmp(4, 1, 8, std::string("\1\2\3\4"), 4)},
      {"bmp_of_too_many_colours", bmp(8, 1, 1, std::string(4, '\0'), 1000)},
      {"bmp_palette_over_its_pixels", patched(bmp(4, 1, 8, std::string(4, '\0'), 4), 10, '\x37')},
      {"bmp_pixels_behind_its_end", patched(bmp(4, 1, 24, std::string(12, '\0')), 13, '\x7f')},
      {"bmp_width_zero", bmp(0, 1, 24, "")},
      {"bmp_width_negative", bmp(-4, 1, 24, std::string(12, '\0'))},
      {"bmp_height_zero", bmp(1, 0, 24, "")},
      {"bmp_height_of_minus_2_31", bmp(1, INT32_MIN, 24, "")},
      {"bmp_larger_than_memory", bmp(INT32_MAX, INT32_MAX, 32, "")},
      {"bmp_of_3_bits", bmp(4, 1, 3, std::string(12, '\0'))},
      {"bmp_that_is_compressed", bmp(4, 1, 8, std::string(4, '\0'), 4, 1)},
      {"bmp_without_masks", bmp(4, 1, 32, std::string(16, '\0'), 0, 3)},
      {"pgm_value_above_its_largest", "P5 1 1 100\nx"},
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
  EXPECT_EQ(decode_image(bytes_of(whole(png_header(2, 2), rows(2, 2))), 1, "f").pixels, Bytes(4, 0x40));
  for (const char* name : {"ramp.jpg", "ramp_progressive.jpg"}) {
    const Image image = decode_image(bytes_of(jpeg(name)), 1, name);
    ASSERT_EQ(image.pixels.size(), 256u);
    for (std::size_t i = 0; i < 256; ++i) ASSERT_NEAR(image.pixels[i], static_cast<int>(i), 6) << name;
  }
}

TEST(HostilePictures, EveryTruncatedPngIsRefused) {
  const std::string content = whole(png_header(2, 2), rows(2, 2));
  for (std::size_t size = 0; size < content.size(); ++size) EXPECT_NE(refusal(content.substr(0, size)), "") << size;
}

TEST(HostilePictures, EveryFlippedBitOfAPngIsRefused) {
  const std::string content = whole(png_header(2, 2), rows(2, 2));
  for (std::size_t at = 0; at < content.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      EXPECT_NE(refusal(changed), "") << at << " " << bit;
    }
}

TEST(HostilePictures, EveryTruncatedJpegIsRefused) {
  for (const char* name : {"ramp.jpg", "ramp_progressive.jpg"}) {
    const std::string content = jpeg(name);
    for (std::size_t size = 0; size < content.size(); ++size)
      EXPECT_NE(refusal(content.substr(0, size)), "") << name << " " << size;
    EXPECT_EQ(refusal(content.substr(0, content.size() - 1)), "f is truncated: a JPEG picture without an end");
  }
}

TEST(HostilePictures, EveryJpegCutWithinAScanIsRefusedThoughItEndsAsOneShould) {
  for (const char* name : {"ramp.jpg", "ramp_progressive.jpg"}) {
    const std::string content = jpeg(name);
    ASSERT_EQ(refusal(content), "");
    // The last byte of a scan can hold nothing but filling bits.
    for (std::size_t size = content.find("\xff\xda"); size < content.size() - 3; ++size)
      EXPECT_NE(refusal(content.substr(0, size) + "\xff\xd9"), "") << name << " " << size;
  }
}

TEST(HostilePictures, EveryTruncatedBmpAndPgmIsRefused) {
  for (const std::string& content :
       {bmp(3, 2, 24, std::string(24, 'x')), bmp(5, 2, 4, std::string(8, '\1'), 2), std::string("P5 2 2 255\nabcd")}) {
    ASSERT_EQ(refusal(content), "");
    for (std::size_t size = 0; size < content.size(); ++size)
      EXPECT_NE(refusal(content.substr(0, size)), "") << content.substr(0, 2) << " " << size;
  }
}

TEST(HostilePictures, ChangedBytesNeverGiveAPictureOfAnotherLengthThanItsSize) {
  for (const std::string& content :
       {whole(png_header(2, 2), rows(2, 2)), jpeg("ramp.jpg"), jpeg("ramp_progressive.jpg")})
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
