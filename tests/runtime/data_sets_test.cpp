// CIFAR-10's files and folders of pictures, and how a program tells them apart.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/cifar.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/image.hpp"
#include "runtime/image_folder.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime {
namespace {

std::string record(int label, int pixel) {
  return std::string(1, static_cast<char>(label)) + std::string(3072, static_cast<char>(pixel));
}

std::string png(std::uint8_t grey, std::int64_t height = 28, std::int64_t width = 28) {
  const Bytes content = encode_png(Bytes(static_cast<std::size_t>(height * width), grey), 1, height, width);
  return {content.begin(), content.end()};
}

class DataSets : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder / name).parent_path());
    spill(folder / name, content);
  }
  Dataset read(Split split, std::int64_t limit = 0) {
    return load({.folder = folder.path(), .limit = limit}, split, model, {});
  }
  std::string refusal(Split split = Split::train) {
    return sentence([&] { read(split); });
  }
  std::string here(const std::string& name = "") { return folder.path().string() + (name.empty() ? "" : "/" + name); }

  Model model = sample_model();
  TemporaryFolder folder;
};

TEST_F(DataSets, CifarsTrainingFilesAreOneAfterTheOther) {
  put("data_batch_2.bin", record(3, 30));
  put("data_batch_1.bin", record(1, 10) + record(2, 20));
  put("test_batch.bin", record(9, 90));
  put("batches.meta.txt", "airplane\n");
  const Dataset train = read(Split::train), test = read(Split::test);
  EXPECT_EQ(train.labels, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(train.image(2)[3071], 30);
  EXPECT_EQ(test.labels, (std::vector<std::int32_t>{9}));
  EXPECT_EQ(train.source, "CIFAR-10 in " + here());
  EXPECT_EQ(train.names.at(9), "truck");
  EXPECT_EQ(read(Split::train, 2).size(), 2);
}

TEST_F(DataSets, CifarsFilesMayBePacked) {
  std::filesystem::create_directories(folder.path());
  const std::string content = record(5, 50);
  gzFile file = gzopen((folder / "cifar10_train.bin.gz").c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  EXPECT_EQ(read(Split::train).labels, (std::vector<std::int32_t>{5}));
  EXPECT_EQ(refusal(Split::test),
            "there is no CIFAR-10 file of test images in " + here() + ": test_batch.bin, plain or .gz");
}

TEST_F(DataSets, PicturesInFoldersTakeTurnsAndAreFitted) {
  put("train/cat/b.png", png(20));
  put("train/cat/a.PNG", png(10, 56, 56));
  put("train/bird/z.png", png(30));
  put("train/cat/notes.txt", "no picture");
  put("train/.hidden/x.png", png(99));
  put("val/cat/c.png", png(40));
  const Dataset train = read(Split::train);
  EXPECT_EQ(train.names, (std::vector<std::string>{"bird", "cat"}));
  EXPECT_EQ(train.labels, (std::vector<std::int32_t>{0, 1, 1}));
  EXPECT_EQ(train.pixels.size(), std::size_t{3 * 784});
  for (const auto& [index, grey] : std::vector<std::pair<std::int64_t, int>>{{0, 30}, {1, 10}, {2, 20}})
    EXPECT_EQ(train.image(index)[400], grey) << index;
  EXPECT_EQ(train.source, "the image folder " + here() + ", 2 classes");
  EXPECT_EQ(read(Split::test).labels, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(read(Split::train, 2).labels, (std::vector<std::int32_t>{0, 1}));
}

TEST_F(DataSets, PicturesAreTheSameForAnyNumberOfThreads) {
  for (int i = 0; i < 40; ++i)
    for (const char* split : {"train/", "test/"})
      put(text(split, i % 3, "/", i, ".png"), png(static_cast<std::uint8_t>(i), 20 + i, 30));
  const auto with = [&](const std::string& threads) {
    const Result run =
        sample({"train", "--data", here(), "--epochs", "0", "--out", here(threads), "--threads", threads});
    EXPECT_EQ(run.code, 0) << run.err;
    return slurp(folder / threads / "checkpoint.safetensors");  // with the fingerprint of all pictures
  };
  EXPECT_EQ(with("1"), with("4"));
}

TEST_F(DataSets, ATestFolderAloneHasItsOwnClasses) {
  put("test/dog/a.png", png(1));
  EXPECT_EQ(read(Split::test).names, (std::vector<std::string>{"dog"}));
  EXPECT_EQ(refusal(Split::train), "the image folder " + here() + " has no folder train");
}

TEST_F(DataSets, WhatIsNoneIsNamed) {
  put("readme.txt", "nothing");
  EXPECT_EQ(refusal(), "there is no data set in " + here() +
                           ": neither MNIST's four IDX files, nor CIFAR-10's .bin files, nor folders train/CLASS and "
                           "test/CLASS of PNG or JPEG pictures");
  EXPECT_EQ(sentence([&] { load({.folder = folder / "no"}, Split::train, model, {}); }),
            "there is no folder " + here("no"));
  EXPECT_EQ(sentence([&] { load({.folder = folder / "readme.txt"}, Split::train, model, {}); }),
            here("readme.txt") + " holds no packed data, as pack makes it of a folder: " + here("readme.txt") +
                " is not a safetensors file: it has 7 bytes, the header alone needs 8");
}

/// Files to put down, the sentence they draw ("$" is the folder), and on which images.
struct BadFolder {
  const char* name;
  std::vector<std::pair<std::string, std::string>> files;
  std::string expected;
  Split split = Split::train;
};

class BadDataSets : public DataSets, public testing::WithParamInterface<BadFolder> {};

TEST_P(BadDataSets, DrawOneSentence) {
  const BadFolder& bad = GetParam();
  for (const auto& [name, content] : bad.files)
    if (name.ends_with('/'))
      std::filesystem::create_directories(folder / name);
    else
      put(name, content);
  std::string expected = bad.expected;
  for (std::size_t at; (at = expected.find('$')) != std::string::npos;) expected.replace(at, 1, here());
  EXPECT_EQ(refusal(bad.split).substr(0, expected.size()), expected);

  const std::string data = here();
  const TemporaryFolder out;
  const Result result = sample({"train", "--data", data, "--epochs", "0", "--out", (out / "run").string()});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("sample: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(out / "run"));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadDataSets,
    testing::Values(
        BadFolder{"empty_cifar_file", {{"data_batch_1.bin", ""}}, "$/data_batch_1.bin is empty"},
        BadFolder{"one_byte",
                  {{"data_batch_1.bin", "\1"}},
                  "$/data_batch_1.bin is truncated or not of CIFAR-10: it has 1 bytes"},
        BadFolder{"record_without_its_last_byte",
                  {{"data_batch_1.bin", record(1, 1).substr(1)}},
                  "$/data_batch_1.bin is truncated or not of CIFAR-10: it has 3072 bytes, no multiple of the 3073"},
        BadFolder{"byte_after_the_last_record",
                  {{"data_batch_1.bin", record(1, 1) + "x"}},
                  "$/data_batch_1.bin is truncated or not of CIFAR-10: it has 3074 bytes"},
        BadFolder{
            "cifar_100", {{"train.bin", std::string(3074 * 3, '\1')}}, "$/train.bin is truncated or not of CIFAR-10"},
        BadFolder{"label_ten",
                  {{"data_batch_1.bin", record(0, 0) + record(10, 0)}},
                  "$/data_batch_1.bin: the label of image 1 is 10, CIFAR-10's end at 9"},
        BadFolder{"label_255",
                  {{"test_batch.bin", record(255, 0)}},
                  "$/test_batch.bin: the label of image 0 is 255",
                  Split::test},
        BadFolder{"second_file_is_bad",
                  {{"data_batch_1.bin", record(0, 0)}, {"data_batch_2.bin", "??"}},
                  "$/data_batch_2.bin is truncated"},
        BadFolder{"no_training_file",
                  {{"test_batch.bin", record(0, 0)}},
                  "there is no CIFAR-10 file of training images in $"},
        BadFolder{"damaged_gzip", {{"data_batch_1.bin.gz", "\x1f\x8b\x08 rubbish"}}, "$/data_batch_1.bin.gz"},
        BadFolder{"folder_in_the_place_of_a_file", {{"data_batch_1.bin/", ""}}, "cannot read $/data_batch_1.bin"},
        BadFolder{"no_classes", {{"train/", ""}, {"test/a/x.png", png(1)}}, "there are no folders in $/train"},
        BadFolder{"pictures_without_classes", {{"train/a.png", png(1)}}, "there are no folders in $/train"},
        BadFolder{"class_without_pictures",
                  {{"train/cat/a.png", png(1)}, {"train/dog/", ""}},
                  "there are no PNG or JPEG pictures in $/train/dog"},
        BadFolder{"class_of_other_files",
                  {{"train/cat/a.gif", "GIF89a"}},
                  "there are no PNG or JPEG pictures in $/train/cat"},
        BadFolder{"class_that_training_lacks",
                  {{"train/cat/a.png", png(1)}, {"test/dog/a.png", png(1)}},
                  "$/test has a class 'dog', which the folder of training images does not have",
                  Split::test},
        BadFolder{
            "no_test", {{"train/cat/a.png", png(1)}}, "the image folder $ has no folder test or val", Split::test},
        BadFolder{"text_named_png", {{"train/cat/a.png", "no picture"}}, "$/train/cat/a.png is not a PNG, JPEG"},
        BadFolder{"empty_picture", {{"train/cat/a.jpg", ""}}, "$/train/cat/a.jpg is not a PNG, JPEG"},
        BadFolder{
            "truncated_picture", {{"train/cat/a.png", png(1).substr(0, 50)}}, "$/train/cat/a.png is not a PNG, JPEG"},
        BadFolder{"folder_named_png", {{"train/cat/a.png/", ""}}, "cannot read $/train/cat/a.png"},
        BadFolder{"file_named_train", {{"train", "x"}}, "there is no data set in $"},
        BadFolder{"empty_folder", {{"deep/", ""}}, "there is no data set in $"}),
    [](const testing::TestParamInfo<BadFolder>& info) { return info.param.name; });

TEST_F(DataSets, AProgramTrainsEvaluatesAndPredictsOnAFolderOfPictures) {
  for (const char* split : {"train", "test"})
    for (int i = 0; i < 6; ++i) {
      put(text(split, "/dark/", i, ".png"), png(static_cast<std::uint8_t>(i), 40, 30));
      put(text(split, "/light/", i, ".png"), png(static_cast<std::uint8_t>(250 - i), 30, 40));
    }
  const std::string out = here("run");
  const Result trained = sample({"train", "--data", here(), "--epochs", "3", "--batch", "4", "--out", out});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_CONTAINS(trained.out, "12 training and 12 test images (the image folder " + here() + ", 2 classes)");
  const Result evaluated = sample({"eval", "--out", out});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_CONTAINS(evaluated.out, "\nlight ");
  spill(folder / "names", "night\nday\n2\n3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_CONTAINS(sample({"eval", "--out", out, "--labels", here("names")}).out, "\nnight ");
  // The checkpoint knows the classes' names.
  EXPECT_CONTAINS(sample({"predict", "--out", out, "--topk", "10", here("test/dark/0.png")}).out, "  dark 0.");
  EXPECT_CONTAINS(slurp(folder / "run/report.html"), ">light</text>");

  put("train/dark/3.png", "no picture");
  put("train/dark/bad.png", "no picture either");
  const Result refused = sample({"train", "--data", here(), "--out", here("other")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_CONTAINS(refused.err, "dark/3.png is not a PNG, JPEG, BMP or PGM picture that can be read");
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
}

TEST_F(DataSets, ImagesThatDoNotFitTheModelAreRefused) {
  put("data_batch_1.bin", record(1, 1));
  put("test_batch.bin", record(1, 1));
  const Result refused = sample({"train", "--data", here(), "--out", here("run")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.err, "sample: sample reads images of 1x28x28, the CIFAR-10 in " + here() + " have 3x32x32\n");
}

TEST_F(DataSets, PicturesGoThroughWhatTheCheckpointSays) {
  put("a.png", png(200));
  const std::string out = here("run");
  ASSERT_EQ(sample({"train", "--digits", "60", "--epochs", "1", "--out", out}).code, 0);
  const auto predicted = [&] { return sample({"predict", "--out", out, here("a.png")}).out; };
  const std::string before = predicted();
  const std::filesystem::path file = std::filesystem::path(out) / "checkpoint.safetensors";
  Safetensors content = read_safetensors(file);
  ASSERT_EQ(content.metadata.at("input_mean.0"), "0");
  content.metadata["input_mean.0"] = "0.75";
  write_safetensors(file, content);
  EXPECT_NE(predicted(), before);
  content.metadata["input_crop"] = "2";
  write_safetensors(file, content);
  EXPECT_EQ(sample({"predict", "--out", out, here("a.png")}).err,
            "sample: " + file.string() + ": the checkpoint's 'input_crop' is damaged\n");
}

TEST(RealCifar, TheSubsetIsBalanced) {
  const char* shared = std::getenv("TESSERA_SHARED");
  if (!shared) GTEST_SKIP() << "TESSERA_SHARED is not set: the real CIFAR-10 files are not at hand";
  const std::filesystem::path folder = std::filesystem::path(shared) / "data/cifar10";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "there is no " << folder;
  for (const auto& [split, each] : {std::pair(Split::train, 1000), std::pair(Split::test, 200)}) {
    const Dataset data = read_cifar(folder, split);
    std::vector<int> counts(10);
    for (const std::int32_t label : data.labels) ++counts[static_cast<std::size_t>(label)];
    EXPECT_EQ(counts, std::vector<int>(10, each));
  }
}

}  // namespace
}  // namespace tessera::runtime
