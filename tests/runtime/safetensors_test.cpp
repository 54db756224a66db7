#include "runtime/safetensors.hpp"

#include <cstring>

#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + data;
}

std::string refusal(const std::string& content) {
  return sentence([&] { parse_safetensors(bytes_of(content), "f"); });
}
std::string refusal(const std::string& header, std::size_t data_bytes) {
  return refusal(file_of(header, std::string(data_bytes, '\0')));
}

TEST(Safetensors, ReadsThePyTorchGoldenFiles) {
  const std::filesystem::path folder = std::filesystem::path(paths::golden) / "mnist_vit";
  const Safetensors batch = read_safetensors(folder / "batch.safetensors");
  EXPECT_EQ(batch.at("images").shape, (Shape{4, 1, 28, 28}));
  EXPECT_EQ(batch.at("images").floats().size(), 3136u);
  EXPECT_EQ(batch.at("labels").integers().size(), 4u);
  const Safetensors outputs = read_safetensors(folder / "forward.safetensors");
  for (int row = 0; row < 4; ++row) {
    float sum = 0;
    for (int j = 0; j < 10; ++j) sum += outputs.at("outputs").floats()[static_cast<std::size_t>(row * 10 + j)];
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(Safetensors, RoundTripKeepsEveryTypeShapeAndText) {
  TemporaryFolder folder;
  Safetensors file;
  file.metadata = {{"note", "line\none \"two\""}};
  file.tensors["b"] = Tensor::of({2, 2}, std::vector<float>{1, 2, 3, 4});
  file.tensors["a"] = Tensor::of({1}, std::vector<double>{0.1});
  file.tensors["scalar"] = Tensor::of({}, std::vector<std::int64_t>{-7});
  file.tensors["empty"] = Tensor::of({0, 3}, std::vector<float>{});
  file.tensors["half"] = {"BF16", {3}, Bytes(6, 1)};
  write_safetensors(folder / "x", file);
  const Safetensors read = read_safetensors(folder / "x");
  EXPECT_EQ(read.metadata, file.metadata);
  ASSERT_EQ(read.tensors.size(), 5u);
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_EQ(read.at(name).dtype, tensor.dtype);
    EXPECT_EQ(read.at(name).shape, tensor.shape);
    EXPECT_EQ(bytes_of(read.at(name)), bytes_of(tensor));
  }
  EXPECT_EQ(read.at("scalar").integers(), std::vector<std::int64_t>{-7});
  EXPECT_EQ(read.at("a").doubles(), std::vector<double>{0.1});
  std::uint64_t header = 0;
  std::memcpy(&header, slurp(folder / "x").data(), 8);
  EXPECT_EQ(header % 8, 0u);
}

TEST(Safetensors, NumbersStayInTheFileUntilTheyAreAskedFor) {
  TemporaryFolder folder;
  Safetensors file;
  file.tensors["a"] = Tensor::of({3}, std::vector<float>{1, 2, 3});
  file.tensors["b"] = Tensor::of({2, 2}, std::vector<double>{4, 5, 6, 7});
  write_safetensors(folder / "x", file);
  const Safetensors read = read_safetensors(folder / "x");
  // Of a file that takes its name they have nothing.
  write_file(folder / "x", "another");
  EXPECT_EQ(read.at("a").floats(), (std::vector<float>{1, 2, 3}));
  std::vector<float> numbers(4);
  read.at("b").read(numbers);
  EXPECT_EQ(numbers, (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(bytes_of(Tensor{"F64", {1}, read.at("b").bytes.part(8, 8)}),
            bytes_of(Tensor::of({1}, std::vector<double>{5})));
  // Of one that is cut meanwhile what is still there.
  write_safetensors(folder / "y", file);
  const Safetensors cut = read_safetensors(folder / "y");
  std::filesystem::resize_file(folder / "y", std::filesystem::file_size(folder / "y") - 8);
  EXPECT_EQ(cut.at("a").floats(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(sentence([&] { cut.at("b").floats(); }),
            "cannot read " + (folder / "y").string() + ": it has become shorter");
}

TEST(Safetensors, NumbersOfEveryRealTypeAreReadInParts) {
  TemporaryFolder folder;
  std::vector<float> numbers(40'000);  // more than a part
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 251) - 125;
  const Shape shape{static_cast<std::int64_t>(numbers.size())};
  Safetensors file;
  for (const char* dtype : {"F32", "F16", "BF16"}) file.tensors[dtype] = Tensor::of(dtype, shape, numbers);
  file.tensors["F64"] = Tensor::of(shape, std::vector<double>(numbers.begin(), numbers.end()));
  write_safetensors(folder / "x", file);
  const Safetensors read = read_safetensors(folder / "x");
  for (const auto& [name, tensor] : read.tensors) {
    EXPECT_EQ(tensor.floats(), numbers) << name;
    EXPECT_EQ(tensor.doubles(), std::vector<double>(numbers.begin(), numbers.end())) << name;
  }
}

TEST(Safetensors, EqualContentGivesEqualBytes) {
  TemporaryFolder folder;
  const Safetensors read = read_safetensors(std::filesystem::path(paths::golden) / "mnist_vit/params.safetensors");
  write_safetensors(folder / "x", read);
  write_safetensors(folder / "y", read_safetensors(folder / "x"));
  EXPECT_EQ(slurp(folder / "x"), slurp(folder / "y"));
}

TEST(Safetensors, AskingForWhatIsNotThereNamesFileAndTensor) {
  const Safetensors file = parse_safetensors(bytes_of(file_of("{}", "")), "f");
  EXPECT_EQ(sentence([&] { file.at("w"); }), "f: there is no tensor 'w'");
  EXPECT_CONTAINS(sentence([&] { Tensor::of({1}, std::vector<std::int64_t>{1}).floats(); }),
                  "type I64 was found where F32");
}

TEST(Safetensors, TooShortAndTooLongHeadersAreRefused) {
  EXPECT_CONTAINS(refusal(""), "f is not a safetensors file: it has 0 bytes");
  EXPECT_CONTAINS(refusal("1234567"), "it has 7 bytes");
  EXPECT_CONTAINS(refusal(std::string(8, '\xff')), "more than the 100000000 that are allowed");
  EXPECT_CONTAINS(refusal(std::string("\x10\0\0\0\0\0\0\0{}", 10)), "f is truncated: its header is 16 bytes long");
}

TEST(Safetensors, HeadersThatAreNotTheFormatsJsonAreRefused) {
  EXPECT_CONTAINS(refusal("", 0), "does not start with '{'");
  EXPECT_CONTAINS(refusal("[]", 0), "does not start with '{'");
  EXPECT_CONTAINS(refusal("{\"a\"", 0), "the header is not valid JSON");
  EXPECT_CONTAINS(refusal("{} {}", 0), "the header is not valid JSON");
  EXPECT_CONTAINS(refusal("{\"\xff\": 1}", 0), "the header is not valid JSON");
  EXPECT_EQ(refusal(R"({"a":null})", 0), "f: tensor 'a' has null where none may stand");
  EXPECT_EQ(refusal(R"({"a":[]})", 0), "f: tensor 'a' has a list where none may stand");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4), "unknown field 'x'");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4),
                  "has a fraction in 'shape'");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
                  "negative number -1 in 'shape'");
  EXPECT_CONTAINS(refusal(R"({"__metadata__":{"a":1}})", 0), "__metadata__ has a number in 'a'");
}

TEST(Safetensors, NamesMayNotStandTwice) {
  const std::string one = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(refusal("{" + one + "," + one + "}", 1), "f: the header names 'a' twice");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0), "f: tensor 'a' has 'dtype' twice");
  EXPECT_EQ(refusal(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "f: __metadata__ has 'k' twice");
}

TEST(Safetensors, DeepNestingCostsNothing) {
  std::string deep(200000, '[');
  EXPECT_CONTAINS(refusal("{\"a\":" + deep, 0), "has a list where none may stand");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"dtype\":";
  EXPECT_CONTAINS(refusal(objects, 0), "has an object in 'dtype' where none may stand");
}

TEST(Safetensors, EveryTensorNeedsItsThreeFields) {
  EXPECT_EQ(refusal(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1), "f: tensor 'a' has no 'dtype'");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1), "f: tensor 'a' has no 'shape'");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","shape":[1]}})", 1), "f: tensor 'a' has no 'data_offsets'");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}})", 1),
            "f: tensor 'a' has the unknown type 'U9'");
}

TEST(Safetensors, ShapesWhoseProductOverflowsAreRefused) {
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
                  "too large");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0),
                  "too large");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,0]}})", 0),
                  "too large");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,0]}})", 0), "f: ");
}

TEST(Safetensors, OffsetsMustTileTheDataExactly) {
  const auto two = [](int a, int b, int c, int d) {
    return text(R"({"a":{"dtype":"U8","shape":[)", b - a, R"(],"data_offsets":[)", a, ",", b,
                R"(]},"b":{"dtype":"U8","shape":[)", d - c, R"(],"data_offsets":[)", c, ",", d, "]}}");
  };
  EXPECT_EQ(refusal(two(0, 2, 2, 5), 5), "");
  EXPECT_EQ(refusal(two(3, 5, 0, 3), 5), "");
  EXPECT_EQ(refusal(two(0, 3, 2, 5), 5), "f: two tensors overlap at byte 2 of the data");
  EXPECT_EQ(refusal(two(0, 2, 3, 5), 5), "f: bytes 2 to 3 of the data belong to no tensor");
  EXPECT_EQ(refusal(two(0, 2, 2, 5), 6), "f: 1 bytes after the last tensor belong to no tensor");
  EXPECT_CONTAINS(refusal(two(0, 2, 2, 6), 5), "ends at byte 6 of the data, the file has 5 (is it truncated?)");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1), "ends before it");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
                  "needs 8 bytes, its data offsets give 4");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1),
                  "3 data offsets instead of 2");
}

TEST(Safetensors, EveryTruncationOfAFileIsRefused) {
  const std::string whole = slurp(std::filesystem::path(paths::golden) / "mnist_vit/forward.safetensors");
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
}

TEST(Safetensors, HostileNamesDoNotReachTheTerminalRaw) {
  const std::string shown = refusal("{\"\\u001b[2J" + std::string(500, 'x') + "\":1}", 0);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_LT(shown.size(), 200u);
}

}  // namespace
}  // namespace tessera::runtime
