// Files that no honest program writes: each is refused in one sentence, by the reader and by the program alike.
#include <algorithm>
#include <cstring>
#include <ostream>
#include <set>

#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

struct Case {
  std::string name;     ///< of the test
  std::string content;  ///< the whole file
  std::string part;     ///< of the sentence
};

void PrintTo(const Case& hostile, std::ostream* out) { *out << hostile.name; }

/// A file of its header's length, its header and its data.
std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + rest;
}
std::string file(const std::string& header, std::size_t data_bytes = 0) {
  return with_length(header.size(), header + std::string(data_bytes, '\x7f'));
}

/// A file with the tensor 'a' as told and so many bytes of data.
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets,
                   std::size_t data_bytes) {
  return file(R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
              data_bytes);
}

/// A file with the tensors 'a' and 'b' of bytes in these places of 8 bytes of data.
std::string pair(int a, int a_end, int b, int b_end) {
  const auto entry = [](const char* name, int first, int last) {
    return text("\"", name, R"(":{"dtype":"U8","shape":[)", last - first, R"(],"data_offsets":[)", first, ",", last,
                "]}");
  };
  return file("{" + entry("a", a, a_end) + "," + entry("b", b, b_end) + "}", 8);
}

std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

std::vector<Case> cases() {
  const std::string honest = tensor("F32", "[2]", "[0,8]", 8);
  const std::string json = "the header is not valid JSON", many(70, '1');
  std::string dims = "1";
  for (int i = 0; i < 64; ++i) dims += ",1";
  return {
      // The length of the header.
      {"empty_file", "", "it has 0 bytes"},
      {"one_byte", "{", "it has 1 bytes"},
      {"seven_bytes", std::string(7, '\0'), "it has 7 bytes"},
      {"length_alone", with_length(2, ""), "is truncated"},
      {"header_of_no_bytes", with_length(0, ""), "does not start with '{'"},
      {"header_of_no_bytes_with_data", with_length(0, "{}"), "does not start with '{'"},
      {"header_longer_than_the_file", with_length(100, "{}"), "its header is 100 bytes long, the file has 2"},
      {"header_longer_by_one", with_length(3, "{}"), "is truncated"},
      {"header_beyond_the_limit", with_length(100'000'001, "{}"), "more than the 100000000"},
      {"header_of_four_gigabytes", with_length(std::uint64_t{1} << 32, "{}"), "more than the 100000000"},
      {"header_of_half_of_all_bytes", with_length(std::uint64_t{1} << 63, "{}"), "more than the 100000000"},
      {"header_of_all_bytes", with_length(~std::uint64_t{0}, "{}"), "more than the 100000000"},
      {"length_written_big_endian", std::string("\0\0\0\0\0\0\0\2{}", 10), "more than the 100000000"},
      // Other kinds of file.
      {"zip_of_pytorch", std::string("PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0", 16), "weights_only=True"},
      {"index_of_a_checkpoint_in_several_files", R"({"metadata":{},"weight_map":{"a":"m-1.safetensors"}})",
       "join these: python3"},
      {"pickle_of_pytorch", std::string("\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 16), "weights_only=True"},
      {"gzip", std::string("\x1f\x8b\x08\0\x9a\x12\x34\x65\0\3abcdef", 16), "is not a safetensors file"},
      {"hdf5", std::string("\x89HDF\r\n\x1a\n\0\0\0\0", 12), "is not a safetensors file"},
      {"text", "this is a text file\n", "is not a safetensors file"},
      {"json_without_its_length", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "is not a safetensors"},
      {"pointer_of_git_lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "is not a safetensors"},
      // JSON.
      {"list", file("[]"), "does not start with '{'"},
      {"leading_space", file(" {}"), "does not start with '{'"},
      {"byte_order_mark", file("\xef\xbb\xbf{}"), "does not start with '{'"},
      {"unclosed_object", file("{"), json},
      {"unclosed_name", file("{\"a"), json},
      {"no_colon", file(R"({"a"})"), json},
      {"comma_at_the_end", file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},})", 8), json},
      {"single_quotes", file("{'a':1}"), json},
      {"comment", file("{/* nothing */}"), json},
      {"two_objects", file("{}{}"), json},
      {"zeros_behind", file(std::string("{}\0\0", 4)), json},
      {"bytes_that_are_no_utf8", file("{\"\xc3\x28\":1}"), json},
      {"utf8_cut_off", file("{\"\xe2\x82\":1}"), json},
      {"overlong_utf8", file("{\"\xc0\xaf\":1}"), json},
      {"lone_surrogate", file(R"({"\ud800":{}})"), json},
      {"raw_newline_in_a_name", file("{\"a\nb\":{}}"), json},
      {"zero_byte_in_a_name", file(std::string("{\"a\0b\":{}}", 10)), json},
      {"not_a_number", tensor("F32", "[NaN]", "[0,8]", 8), json},
      {"infinity", tensor("F32", "[Infinity]", "[0,8]", 8), json},
      {"hexadecimal", tensor("F32", "[0x2]", "[0,8]", 8), json},
      {"plus_sign", tensor("F32", "[+2]", "[0,8]", 8), json},
      {"leading_zero", tensor("F32", "[02]", "[0,8]", 8), json},
      {"lists_within_lists", file("{\"a\":" + std::string(500'000, '[')), "has a list where none may stand"},
      {"objects_within_objects", file(repeated("{\"dtype\":", 100'000)), "where none may stand"},
      {"lists_in_the_shape", tensor("F32", std::string(100'000, '['), "[0,8]", 8), "has a list in 'shape'"},
      // What a header may hold.
      {"tensor_that_is_null", file(R"({"a":null})"), "has null where none may stand"},
      {"tensor_that_is_true", file(R"({"a":true})"), "has a truth value where none may stand"},
      {"tensor_that_is_a_number", file(R"({"a":1})"), "has a number where none may stand"},
      {"tensor_that_is_a_text", file(R"({"a":"F32"})"), "has a text where none may stand"},
      {"tensor_that_is_a_list", file(R"({"a":["F32",[2],[0,8]]})"), "has a list where none may stand"},
      {"tensor_without_fields", file(R"({"a":{}})"), "has no 'dtype'"},
      {"no_dtype", file(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "has no 'dtype'"},
      {"no_shape", file(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "has no 'shape'"},
      {"no_offsets", file(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "has no 'data_offsets'"},
      {"unknown_field", file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"p":1}})", 8), "field 'p'"},
      {"field_in_capitals", file(R"({"a":{"DTYPE":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "field 'DTYPE'"},
      {"name_twice", file(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}})"), "names 'a' twice"},
      {"name_twice_by_escapes", file(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{}})"), "twice"},
      {"field_twice", file(R"({"a":{"dtype":"U8","shape":[1],"shape":[0],"data_offsets":[0,0]}})"), "'shape' twice"},
      {"metadata_that_is_a_list", file(R"({"__metadata__":[]})"), "__metadata__"},
      {"metadata_that_is_a_text", file(R"({"__metadata__":"pt"})"), "__metadata__"},
      {"metadata_with_a_number", file(R"({"__metadata__":{"a":1}})"), "__metadata__ has a number in 'a'"},
      {"metadata_with_null", file(R"({"__metadata__":{"a":null}})"), "__metadata__ has null in 'a'"},
      {"metadata_with_an_object", file(R"({"__metadata__":{"a":{}}})"), "__metadata__ has an object in 'a'"},
      {"metadata_with_a_key_twice", file(R"({"__metadata__":{"a":"1","a":"2"}})"), "__metadata__ has 'a' twice"},
      {"metadata_twice", file(R"({"__metadata__":{},"__metadata__":{}})"), "names '__metadata__' twice"},
      // Types.
      {"unknown_dtype", tensor("F128", "[2]", "[0,32]", 32), "unknown type 'F128'"},
      {"dtype_in_small_letters", tensor("f32", "[2]", "[0,8]", 8), "unknown type 'f32'"},
      {"dtype_of_pytorch", tensor("torch.float32", "[2]", "[0,8]", 8), "unknown type 'torch.float32'"},
      {"dtype_of_no_letters", tensor("", "[2]", "[0,8]", 8), "unknown type ''"},
      {"dtype_of_a_million_letters", tensor(std::string(1'000'000, 'F'), "[2]", "[0,8]", 8), "unknown type 'FFFF"},
      {"dtype_that_is_a_number", file(R"({"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})", 8), "has a number in"},
      {"dtype_that_is_a_list", file(R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", 8), "has a list in"},
      {"half_of_the_bytes", tensor("F32", "[2]", "[0,4]", 4), "needs 8 bytes, its data offsets give 4"},
      {"twice_the_bytes", tensor("F16", "[2]", "[0,8]", 8), "needs 4 bytes, its data offsets give 8"},
      {"one_byte_more", tensor("BF16", "[2]", "[0,5]", 5), "needs 4 bytes, its data offsets give 5"},
      // Shapes.
      {"negative_dim", tensor("F32", "[-2]", "[0,8]", 8), "negative number -2 in 'shape'"},
      {"two_negative_dims", tensor("F32", "[-1,-2]", "[0,8]", 8), "negative number -1 in 'shape'"},
      {"most_negative_dim", tensor("F32", "[-9223372036854775808]", "[0,8]", 8), "negative number"},
      {"dim_below_all_integers", tensor("F32", "[-9223372036854775809]", "[0,8]", 8), "f: "},
      {"fraction", tensor("F32", "[2.0]", "[0,8]", 8), "has a fraction in 'shape'"},
      {"exponent", tensor("F32", "[2e0]", "[0,8]", 8), "has a fraction in 'shape'"},
      {"exponent_beyond_all_numbers", tensor("F32", "[1e999]", "[0,8]", 8), "f: "},
      {"dim_that_is_a_text", tensor("F32", R"(["2"])", "[0,8]", 8), "has a text in 'shape'"},
      {"dim_that_is_null", tensor("F32", "[null]", "[0,8]", 8), "has null in 'shape'"},
      {"shape_that_is_a_number", tensor("F32", "2", "[0,8]", 8), "has a number in 'shape'"},
      {"shape_that_is_an_object", tensor("F32", "{}", "[0,8]", 8), "has an object in 'shape'"},
      {"sixty_five_dims", tensor("U8", "[" + dims + "]", "[0,1]", 1), "more than 64 numbers in 'shape'"},
      {"product_of_two_to_the_64", tensor("F32", "[4294967296,4294967296]", "[0,0]", 0), "too large"},
      {"product_that_wraps_to_eight", tensor("U8", "[9223372036854775807,2,5]", "[0,8]", 8), "too large"},
      {"bytes_that_wrap", tensor("F64", "[2305843009213693953]", "[0,8]", 8), "too large"},
      {"dim_beyond_63_bits", tensor("F32", "[18446744073709551615]", "[0,8]", 8), "too large"},
      {"dim_of_seventy_digits", tensor("F32", "[" + many + "]", "[0,8]", 8), "f: "},
      {"shape_larger_than_the_file", tensor("F32", "[1000000000000]", "[0,4000000000000]", 8), "is it truncated?"},
      // Offsets.
      {"negative_offset", tensor("F32", "[2]", "[-8,0]", 8), "negative number -8 in 'data_offsets'"},
      {"end_before_the_beginning", tensor("F32", "[2]", "[8,0]", 8), "begins at byte 8 and ends before it"},
      {"end_beyond_the_file", tensor("F32", "[2]", "[0,8]", 7), "ends at byte 8 of the data, the file has 7"},
      {"far_beyond_the_file", tensor("F32", "[2]", "[9223372036854775799,9223372036854775807]", 8), "is it truncated?"},
      {"offset_beyond_63_bits", tensor("F32", "[2]", "[0,9223372036854775808]", 8), "too large"},
      {"no_numbers", tensor("F32", "[2]", "[]", 8), "has 0 data offsets instead of 2"},
      {"one_number", tensor("F32", "[2]", "[8]", 8), "has 1 data offsets instead of 2"},
      {"three_numbers", tensor("F32", "[2]", "[0,8,8]", 8), "has 3 data offsets instead of 2"},
      {"offset_that_is_a_fraction", tensor("F32", "[2]", "[0,8.0]", 8), "has a fraction in 'data_offsets'"},
      {"offset_that_is_a_text", tensor("F32", "[2]", R"(["0","8"])", 8), "has a text in 'data_offsets'"},
      {"offsets_that_are_null", tensor("F32", "[2]", "null", 8), "has null in 'data_offsets'"},
      {"hole_at_the_beginning", tensor("F32", "[2]", "[4,12]", 12), "bytes 0 to 4 of the data belong to no tensor"},
      {"bytes_at_the_end", tensor("F32", "[2]", "[0,8]", 9), "1 bytes after the last tensor belong to no tensor"},
      {"bytes_of_no_tensor", file("{}", 3), "3 bytes after the last tensor belong to no tensor"},
      {"hole_between_tensors", pair(0, 3, 4, 8), "bytes 3 to 4 of the data belong to no tensor"},
      {"overlap_by_one", pair(0, 5, 4, 8), "two tensors overlap at byte 4"},
      {"one_within_the_other", pair(0, 8, 2, 4), "two tensors overlap at byte 2"},
      {"the_same_bytes_twice", pair(0, 8, 0, 8), "two tensors overlap at byte 0"},
      // Cut off.
      {"cut_in_the_header", honest.substr(0, 20), "is truncated"},
      {"cut_behind_the_header", honest.substr(0, honest.size() - 8), "is it truncated?"},
      {"cut_by_one_byte", honest.substr(0, honest.size() - 1), "is it truncated?"},
  };
}

class HostileSafetensors : public testing::TestWithParam<Case> {};

TEST_P(HostileSafetensors, AreRefusedInOneSentence) {
  const std::string& content = GetParam().content;
  const std::string shown = sentence([&] { parse_safetensors(bytes_of(content), "f"); });
  EXPECT_TRUE(shown.starts_with("f")) << shown;
  EXPECT_CONTAINS(shown, GetParam().part);
  EXPECT_LT(shown.size(), 300u);
  for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << shown;
}

INSTANTIATE_TEST_SUITE_P(Reader, HostileSafetensors, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST(HostileSafetensors, TheProgramSaysWhatTheReaderSaysAndLeavesNothingBehind) {
  TemporaryFolder folder;
  const std::string hostile = (folder / "f").string();
  const std::vector<Case> all = cases();
  EXPECT_GE(all.size(), 100u);
  for (const Case& one : all) {
    spill(hostile, one.content);
    const Result result = sample({"import", hostile, "--out", (folder / "run").string()});
    EXPECT_EQ(result.code, 1) << one.name;
    EXPECT_EQ(result.out, "") << one.name;
    EXPECT_TRUE(result.err.starts_with("sample: " + hostile)) << one.name << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << one.name << ": " << result.err;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "only the file itself";
}

}  // namespace
}  // namespace tessera::runtime
