#include "runtime/idx.hpp"

#include <algorithm>
#include <cstdlib>

#include "tests/runtime/helpers.hpp"
#include "tests/runtime/packed.hpp"

namespace tessera::runtime {
namespace {

std::string idx(std::uint32_t magic, std::vector<std::uint32_t> dims, std::size_t data_bytes) {
  dims.insert(dims.begin(), magic);
  std::string out;
  for (const std::uint32_t word : dims)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift);
  return out + std::string(data_bytes, '\1');
}

std::string refusal(const std::string& content) {
  return sentence([&] { parse_idx(bytes_of(content), "f"); });
}

TEST(Idx, ReadsImagesAndLabels) {
  EXPECT_EQ(parse_idx(bytes_of(idx(0x803, {2, 3, 4}, 24)), "f").shape, (Shape{2, 3, 4}));
  EXPECT_EQ(parse_idx(bytes_of(idx(0x801, {5}, 5)), "f").data, Bytes(5, 1));
}

TEST(Idx, WrongMagicNumberIsShown) {
  EXPECT_EQ(refusal(idx(0x804, {1}, 1)),
            "f is not an IDX file of labels or images: it begins with 00000804 instead of 00000801 or 00000803");
  EXPECT_CONTAINS(refusal("\x89PNG...."), "it begins with 89504E47");
}

TEST(Idx, EveryTruncationIsRefused) {
  const std::string whole = idx(0x803, {2, 3, 4}, 24);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_CONTAINS(refusal(whole.substr(0, size)), "f is truncated");
  EXPECT_EQ(refusal(whole.substr(0, 20)),
            "f is truncated: it declares [2, 3, 4] and has 4 bytes of data instead of 24");
}

TEST(Idx, TrailingBytesAreRefused) {
  EXPECT_EQ(refusal(idx(0x801, {5}, 6)), "f has 1 bytes after the data that [5] declares");
}

TEST(Idx, SizesOfZeroAreRefused) {
  EXPECT_EQ(refusal(idx(0x803, {0, 28, 28}, 0)), "f declares the size [0, 28, 28], which holds nothing");
  EXPECT_CONTAINS(refusal(idx(0x803, {4294967295, 4294967295, 0}, 0)), "holds nothing");
}

TEST(Idx, HostileSizesAllocateNothing) {
  EXPECT_CONTAINS(refusal(idx(0x803, {4294967295, 4294967295, 4294967295}, 9)), "is truncated");
  EXPECT_CONTAINS(refusal(idx(0x801, {4294967295}, 9)), "instead of 4294967295");
}

class Mnist : public testing::Test {
 protected:
  Mnist() {
    put("train-images-idx3-ubyte", idx(0x803, {3, 28, 28}, 3 * 784));
    put("train-labels-idx1-ubyte", idx(0x801, {3}, 3));
  }
  void put(const std::string& name, const std::string& content) { spill(folder / name, content); }
  std::string refusal() {
    return sentence([&] { read_mnist(folder.path(), Split::train); });
  }
  TemporaryFolder folder;
};

TEST_F(Mnist, FolderIsReadByTheOriginalNames) {
  const Dataset data = read_mnist(folder.path(), Split::train);
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.image_size(), 784);
  EXPECT_EQ(data.labels, (std::vector<std::int32_t>{1, 1, 1}));
}

TEST_F(Mnist, MissingFileIsNamed) {
  EXPECT_EQ(sentence([&] { read_mnist(folder.path(), Split::test); }),
            "there is neither t10k-images-idx3-ubyte nor t10k-images-idx3-ubyte.gz in " + folder.path().string());
  EXPECT_EQ(sentence([&] { read_mnist(folder / "no", Split::test); }),
            "there is no folder " + (folder / "no").string());
}

TEST_F(Mnist, ImagesAndLabelsThatDifferInNumberAreRefused) {
  put("train-labels-idx1-ubyte", idx(0x801, {4}, 4));
  EXPECT_EQ(refusal(), folder.path().string() + " has 3 training images and 4 labels");
}

TEST_F(Mnist, FilesThatWereSwappedAreRefused) {
  put("train-images-idx3-ubyte", idx(0x801, {3}, 3));
  EXPECT_CONTAINS(refusal(), "train-images-idx3-ubyte holds labels instead of images");
}

TEST_F(Mnist, LabelsFromTenOnAreRefused) {
  std::string labels = idx(0x801, {3}, 3);
  labels[9] = 10;
  put("train-labels-idx1-ubyte", labels);
  EXPECT_EQ(refusal(), folder.path().string() + ": training label 1 is 10, digits end at 9");
}

struct BadIdx {
  const char* name;
  std::string images, labels;  ///< the files' content
};

class BadMnist : public testing::TestWithParam<BadIdx> {};

TEST_P(BadMnist, IsOneSentenceOfTheProgramWhichLeavesNothing) {
  TemporaryFolder data, out;
  for (const char* split : {"train", "t10k"}) {
    spill(data / text(split, "-images-idx3-ubyte"), GetParam().images);
    spill(data / text(split, "-labels-idx1-ubyte"), GetParam().labels);
  }
  const Result result = sample({"train", "--data", data.path().string(), "--out", (out / "run").string()});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("sample: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(out / "run"));
}

std::vector<BadIdx> bad_idx() {
  const std::string images = idx(0x803, {3, 28, 28}, 3 * 784), labels = idx(0x801, {3}, 3);
  return {{"both_empty", "", ""},
          {"images_of_three_bytes", images.substr(0, 3), labels},
          {"images_without_sizes", images.substr(0, 4), labels},
          {"images_cut_in_their_sizes", images.substr(0, 15), labels},
          {"images_without_the_last_byte", images.substr(0, images.size() - 1), labels},
          {"images_with_a_byte_too_many", images + "x", labels},
          {"labels_without_the_last_byte", images, labels.substr(0, labels.size() - 1)},
          {"labels_with_a_byte_too_many", images, labels + "x"},
          {"no_images", idx(0x803, {0, 28, 28}, 0), idx(0x801, {0}, 0)},
          {"images_of_no_height", idx(0x803, {3, 0, 28}, 0), labels},
          {"images_of_no_width", idx(0x803, {3, 28, 0}, 0), labels},
          {"sizes_larger_than_any_file", idx(0x803, {4294967295, 4294967295, 4294967295}, 9), labels},
          {"sizes_whose_product_wraps", idx(0x803, {65536, 65536, 65536}, 9), labels},
          {"images_of_two_sizes", idx(0x802, {3, 28}, 84), labels},
          {"images_of_four_sizes", idx(0x804, {3, 1, 28, 28}, 3 * 784), labels},
          {"images_of_signed_bytes", idx(0x903, {3, 28, 28}, 3 * 784), labels},
          {"images_of_floats", idx(0xd03, {3, 28, 28}, 4 * 3 * 784), labels},
          {"other_byte_order", idx(0x03080000, {3, 28, 28}, 3 * 784), labels},
          {"labels_for_images", labels, labels},
          {"images_for_labels", images, images},
          {"a_label_too_few", images, idx(0x801, {2}, 2)},
          {"label_ten", images, labels.substr(0, 8) + "\1\2\n"},
          {"images_of_another_size", idx(0x803, {3, 20, 20}, 1200), labels},
          {"text", "no numbers at all", "nor here"},
          {"damaged_gzip", "\x1f\x8b\x08 rubbish", labels}};
}

INSTANTIATE_TEST_SUITE_P(Cases, BadMnist, testing::ValuesIn(bad_idx()),
                         [](const testing::TestParamInfo<BadIdx>& info) { return info.param.name; });

TEST(PackedMnist, NoMoreIsUnpackedThanTheHeaderDeclares) {
  const std::string images = idx(0x803, {3, 28, 28}, 3 * 784), labels = idx(0x801, {3}, 3);
  std::string zeros;
  for (const std::string member = gzip(std::string(1 << 20, '\0')); zeros.size() < 400 * member.size();)
    zeros += member;
  for (const auto& [packed, part] :
       {std::pair{gzip(images) + zeros, "unpacks to more than the 2368 bytes that its header declares"},
        {gzip(idx(0x803, {4000000, 28, 28}, 0)) + zeros, "which is more than the "},
        {zeros, "is not an IDX file"}}) {
    TemporaryFolder data;
    spill(data / "train-images-idx3-ubyte.gz", packed);
    spill(data / "train-labels-idx1-ubyte", labels);
    const Result result = sample({"train", "--data", data.path().string(), "--out", (data / "run").string()});
    EXPECT_EQ(result.code, 1);
    EXPECT_CONTAINS(result.err, part);
    EXPECT_LT(result.peak_bytes, 300 << 20);
  }
}

TEST(RealMnist, HasSixtyThousandTrainingAndTenThousandTestDigits) {
  const char* shared = std::getenv("TESSERA_SHARED");
  if (!shared) GTEST_SKIP() << "TESSERA_SHARED is not set: the real MNIST files are not at hand";
  const std::filesystem::path folder = std::filesystem::path(shared) / "data/mnist";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "there is no " << folder;
  const Dataset train = read_mnist(folder, Split::train), test = read_mnist(folder, Split::test);
  EXPECT_EQ(train.size(), 60000);
  EXPECT_EQ(test.size(), 10000);
  // The first labels as everybody knows them.
  EXPECT_EQ(std::vector(train.labels.begin(), train.labels.begin() + 5), (std::vector<std::int32_t>{5, 0, 4, 1, 9}));
  EXPECT_EQ(std::vector(test.labels.begin(), test.labels.begin() + 5), (std::vector<std::int32_t>{7, 2, 1, 0, 4}));
}

}  // namespace
}  // namespace tessera::runtime
