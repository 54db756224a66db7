// Data sets in one mapped file: the same images, damaged files, and more of them than memory holds.
#include "runtime/packed_data.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "runtime/digits.hpp"
#include "runtime/image.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

class PackedData : public testing::Test {
 protected:
  std::string path(const char* name) const { return (folder / name).string(); }
  std::vector<std::string> training(const std::string& out, const std::string& data) const {
    std::vector<std::string> arguments{"train", "--epochs", "2", "--out", path(out.c_str())};
    if (!data.empty()) arguments.insert(arguments.end(), {"--data", path(data.c_str())});
    return arguments;
  }
  /// The tensors of two runs are the same.
  void expect_same(const char* a, const char* b) const {
    const Safetensors one = read_safetensors(folder / a / "checkpoint.safetensors");
    const Safetensors other = read_safetensors(folder / b / "checkpoint.safetensors");
    for (const auto& [name, tensor] : one.tensors) EXPECT_TRUE(bytes_of(tensor) == bytes_of(other.at(name))) << name;
    for (const char* key : {"fingerprint", "test_fingerprint", "curve"})
      EXPECT_EQ(one.metadata.at(key), other.metadata.at(key));
  }
  TemporaryFolder folder;
};

TEST_F(PackedData, GivesTheImagesThatWerePacked) {
  Dataset train = draw_digits(50, 1, Split::train);
  const Dataset test = draw_digits(20, 1, Split::test);
  train.names = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  write_packed_data(folder / "digits", train, test);
  for (const Split split : {Split::train, Split::test}) {
    const Dataset& wanted = split == Split::train ? train : test;
    const Dataset data = read_packed_data(folder / "digits", split);
    EXPECT_EQ(data.source, "packed data in " + path("digits"));
    EXPECT_EQ(data.labels, wanted.labels);
    EXPECT_EQ(data.names, train.names);
    EXPECT_TRUE(std::ranges::equal(data.bytes(), wanted.pixels));
    EXPECT_EQ(data.fingerprint(), wanted.fingerprint());
  }
  Dataset few = read_packed_data(folder / "digits", Split::train), first = train;
  few.keep(7);
  first.keep(7);
  EXPECT_EQ(few.fingerprint(), first.fingerprint());
}

TEST_F(PackedData, TrainsAsTheDataThatWasPacked) {
  const Result packed = sample({"pack", "--digits", "300", "-o", path("digits.packed")});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_CONTAINS(packed.out, "digits.packed holds 300 training and 50 test images of built-in digits");
  ASSERT_EQ(sample({"train", "--digits", "300", "--epochs", "2", "--out", path("drawn")}).code, 0);
  const Result result = sample(training("mapped", "digits.packed"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_CONTAINS(result.out, "packed data in " + path("digits.packed"));
  expect_same("drawn", "mapped");
  EXPECT_EQ(sample({"eval", "--out", path("mapped")}).code, 0);
  // Once more, over the file that is there.
  EXPECT_EQ(sample({"pack", "--digits", "30", "-o", path("digits.packed")}).code, 0);
  EXPECT_CONTAINS(sample({"train", "--resume", "--epochs", "3", "--out", path("mapped")}).err,
                  "are not those that the run in");
}

TEST_F(PackedData, ImageFoldersArePackedByWayOfTheDisk) {
  for (const char* split : {"train", "test"})
    for (int i = 0; i < 12; ++i) {
      const std::filesystem::path to = folder / "photos" / split / (i % 2 ? "dark" : "light");
      std::filesystem::create_directories(to);
      const Bytes png = encode_png(Bytes(40 * 30, static_cast<std::uint8_t>(i % 2 ? i : 250 - i)), 1, 40, 30);
      spill(to / (std::to_string(i) + ".png"), std::string(png.begin(), png.end()));
    }
  const Result packed = sample({"pack", "--data", path("photos"), "-o", path("photos.packed")});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(sample(training("folder", "photos")).code, 0);
  const Result result = sample(training("mapped", "photos.packed"));
  EXPECT_EQ(result.code, 0) << result.err;
  expect_same("folder", "mapped");
  EXPECT_EQ(read_packed_data(folder / "photos.packed", Split::train).names,
            (std::vector<std::string>{"dark", "light"}));
  // A run goes on with the file in the folder's place.
  EXPECT_EQ(
      sample({"train", "--resume", "--epochs", "3", "--data", path("photos.packed"), "--out", path("folder")}).code, 0);

  std::filesystem::create_directory(folder / "empty");
  const std::shared_ptr<std::uint8_t> room = room_on_disk(folder / "empty", 1 << 20);
  room.get()[(1 << 20) - 1] = 7;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "empty"));  // it has no name, and goes with its holder
  EXPECT_CONTAINS(sentence([&] { room_on_disk(folder / "empty", std::int64_t{1} << 60); }), "cannot write ");
}

TEST_F(PackedData, ModelsAreNotOverwritten) {
  ASSERT_EQ(sample({"train", "--digits", "100", "--epochs", "1", "--out", path("run")}).code, 0);
  const Result result = sample({"pack", "--digits", "10", "-o", path("run/checkpoint.safetensors")});
  EXPECT_EQ(result.code, 1);
  EXPECT_CONTAINS(result.err, "it is the checkpoint of a training run, which would be lost");
}

TEST_F(PackedData, DamagedFilesAreOneSentence) {
  const auto pixels = [](std::vector<std::int64_t> shape) {
    Tensor tensor{"U8", shape, Bytes(static_cast<std::size_t>(elements(shape)))};
    return tensor;
  };
  const auto labels = [](std::vector<std::int32_t> numbers) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(numbers.data());
    return Tensor{"I32", {static_cast<std::int64_t>(numbers.size())}, Bytes(first, first + 4 * numbers.size())};
  };
  Safetensors sound;
  sound.metadata = {{"format", "tessera packed data 1"},
                    {"classes", "10"},
                    {"class_names", ""},
                    {"train.fingerprint", "1"},
                    {"test.fingerprint", "2"}};
  for (const char* split : {"train.", "test."}) {
    sound.tensors[std::string(split) + "pixels"] = pixels({2, 1, 28, 28});
    sound.tensors[std::string(split) + "labels"] = labels({0, 9});
  }
  const auto refused = [&](const Safetensors& file, const std::string& why) {
    write_safetensors(folder / "damaged", file);
    const Result result = sample(training("run", "damaged"));
    EXPECT_EQ(result.code, 1);
    EXPECT_CONTAINS(result.err, why);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run/checkpoint.safetensors"));
  };
  const auto with = [&](const std::string& name, Tensor tensor) {
    Safetensors file = sound;
    file.tensors[name] = std::move(tensor);
    return file;
  };
  const auto saying = [&](const std::string& key, const std::string& value) {
    Safetensors file = sound;
    file.metadata[key] = value;
    return file;
  };
  write_safetensors(folder / "sound", sound);
  EXPECT_EQ(read_packed_data(folder / "sound", Split::test).size(), 2);
  refused(saying("format", "pt"), "holds no packed data: pack makes such a file of a folder");
  refused(saying("classes", "-1"), "the packed data's 'classes' is damaged");
  refused(saying("classes", "9"), "training label 1 is 9 of 9 classes");
  refused(saying("classes", "11"), "tells 10 classes apart");
  refused(saying("train.fingerprint", "x"), "the packed data's 'train.fingerprint' is damaged");
  refused(saying("train.fingerprint", "4294967296"), "the packed data's 'train.fingerprint' is damaged");
  Safetensors unnamed = sound;
  unnamed.metadata.erase("classes");
  refused(unnamed, "the packed data does not say its 'classes'");
  refused(with("train.labels", labels({0, -1})), "training label 1 is -1 of 10 classes");
  refused(with("train.labels", labels({0})), "has 2 training images and 1 labels");
  refused(with("train.labels", pixels({2})), "the training labels are U8 [2]");
  refused(with("test.pixels", pixels({2, 784})), "the test pixels are U8 [2, 784]");
  refused(with("test.pixels", pixels({2, 1, 28, 27})), "reads images of 1x28x28");
  // Of nothing, a shape may claim anything, and a split have no images.
  for (const char* split : {"train.", "test."}) {
    Safetensors none = with(std::string(split) + "pixels", pixels({0, std::int64_t{1} << 62, 28, 28}));
    none.tensors[std::string(split) + "labels"] = labels({});
    refused(none, "pixels are [0, 4611686018427387904, 28, 28], which holds nothing");
    none = with(std::string(split) + "pixels", pixels({0, 1, 28, 28}));
    none.tensors[std::string(split) + "labels"] = labels({});
    refused(none, "pixels are [0, 1, 28, 28], which holds nothing");
  }
  Safetensors half = sound;
  half.tensors.erase("test.pixels");
  refused(half, "there are no test pixels");
  // What waits for ever, or has no end, is not opened.
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0666), 0);
  EXPECT_CONTAINS(sentence([&] { read_packed_data(folder / "pipe", Split::test); }), "it is no regular file");
  write_safetensors(folder / "damaged", sound);
  const std::string whole = slurp(folder / "damaged");
  spill(folder / "damaged", whole.substr(0, whole.size() - 10));
  EXPECT_CONTAINS(sample(training("run", "damaged")).err, "(is it truncated?)");
}

/// 20 GB of black images, of which the disk holds nothing but the header.
std::int64_t write_sparse(const std::filesystem::path& path) {
  const std::int64_t images = 20'000'000'000 / 784, test = 100;
  std::int64_t at = 0;
  std::string header = R"({"__metadata__":{"format":"tessera packed data 1","classes":"10","class_names":"",)"
                       R"("train.fingerprint":"1","test.fingerprint":"2"})";
  for (const auto& [split, count] : {std::pair<std::string, std::int64_t>{"test", test}, {"train", images}}) {
    const auto entry = [&](const std::string& name, const std::string& dtype, const std::string& shape,
                           std::int64_t bytes) {
      header += ",\"" + split + "." + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
                R"(,"data_offsets":[)" + std::to_string(at) + "," + std::to_string(at + bytes) + "]}";
      at += bytes;
    };
    entry("labels", "I32", "[" + std::to_string(count) + "]", 4 * count);
    entry("pixels", "U8", "[" + std::to_string(count) + ",1,28,28]", 784 * count);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  spill(path, std::string(reinterpret_cast<const char*>(&length), 8) + header);
  std::filesystem::resize_file(path, 8 + length + static_cast<std::uint64_t>(at));
  return images;
}

/// The sample program with so many bytes of memory of its own; files that it maps do not count.
std::vector<std::string> with_memory(std::int64_t bytes, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"-c", "ulimit -d " + std::to_string(bytes / 1024) + " && exec \"$@\"", "sh",
                                   paths::sample_program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

TEST_F(PackedData, MoreImagesThanMemoryHoldsAreTrained) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "AddressSanitizer needs more memory of its own";
#endif
#endif
  const std::int64_t images = write_sparse(folder / "sparse");
  ASSERT_GT(std::filesystem::file_size(folder / "sparse"), 20'000'000'000u);
  std::vector<std::string> arguments = training("run", "sparse");
  arguments.insert(arguments.end(), {"--threads", "1", "--checkpoint-every", "2"});
  // Labels and the order of the images are 8 bytes each; pixels would be 784.
  Process process("/bin/sh", with_memory(std::int64_t{1} << 30, arguments), {});
  while (process.running() && !std::filesystem::exists(folder / "run/checkpoint.safetensors"))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.send(SIGINT);
  const Result result = process.wait();
  EXPECT_EQ(result.code, 130) << result.err << result.out;
  EXPECT_CONTAINS(result.out, "stopped after step");
  EXPECT_GT(images, 25'000'000);
  // What a process may not have it does not get: 100 MB are too few for the labels alone.
  const Result small = Process("/bin/sh", with_memory(100'000'000, training("small", "sparse")), {}).wait();
  EXPECT_EQ(small.code, 1);
  EXPECT_CONTAINS(small.err, "there is not enough memory");
}

}  // namespace
}  // namespace tessera::runtime
