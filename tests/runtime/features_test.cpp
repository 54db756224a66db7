// embed, similar and probe on the command line. The sample model's features are its pictures' bytes over 255, so that
// every number is known.
#include "runtime/features.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint.hpp"
#include "runtime/image.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime {
namespace {

class FeatureCommand : public testing::Test {
 protected:
  FeatureCommand() {
    // Pictures of one brightness above, of another one below: 28 x 28, as the model reads them.
    picture("pictures/bright/a.png", 200, 10);
    picture("pictures/bright/b.png", 180, 12);
    picture("pictures/bright/c.png", 220, 30);
    picture("pictures/dark/d.png", 10, 200);
    picture("pictures/dark/e.png", 30, 210);
    picture("pictures/dark/f.png", 5, 100);
    parameters("weights.safetensors", 0.5f);
  }
  void picture(const std::string& name, int above, int below) {
    std::filesystem::create_directories((folder / name).parent_path());
    Bytes pixels;
    for (int i = 0; i < 28 * 28; ++i) pixels.push_back(static_cast<std::uint8_t>(i < 14 * 28 ? above : below));
    const Bytes png = encode_png(pixels, 1, 28, 28);
    spill(folder / name, std::string(png.begin(), png.end()));
  }
  void parameters(const std::string& name, float value) {
    const std::vector<float> numbers(SAMPLE_PARAMETER_FLOATS, value);
    save_model(folder / name, sample_model(), numbers.data(), std::nullopt);
  }
  std::string at(const std::string& name) const { return (folder / name).string(); }
  Result run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--checkpoint", at("weights.safetensors")});
    return sample(arguments);
  }
  void embed_all() {
    const Result done = run({"embed", at("pictures"), "-o", at("f.safetensors")});
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.out, at("f.safetensors") + ": 6 pictures, 784 features each\n");
  }
  /// One sentence on standard error, and nothing written to the place.
  void refused(const Result& result, const std::string& said, const std::string& place = "") {
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.err, "sample: " + said + "\n");
    if (!place.empty()) {
      EXPECT_FALSE(std::filesystem::exists(folder / place)) << place;
    }
    EXPECT_TRUE(partial_files(folder.path()).empty());
  }
  TemporaryFolder folder;
};

TEST_F(FeatureCommand, EmbedWritesFeaturesNamesAndOrigin) {
  embed_all();
  const Safetensors file = read_safetensors(folder / "f.safetensors");
  ASSERT_EQ(file.at("features").shape, (Shape{6, 784}));
  const std::vector<float> numbers = file.at("features").floats();
  EXPECT_FLOAT_EQ(numbers[0], 200.0f / 255);
  EXPECT_FLOAT_EQ(numbers[783], 10.0f / 255);
  EXPECT_FLOAT_EQ(numbers[4 * 784], 30.0f / 255);
  const auto names = nlohmann::json::parse(file.metadata.at("pictures"));
  ASSERT_EQ(names.size(), 6u);
  EXPECT_EQ(names[0], at("pictures/bright/a.png"));
  EXPECT_EQ(names[5], at("pictures/dark/f.png"));
  EXPECT_EQ(file.metadata.at("model"), "sample");
  EXPECT_EQ(file.metadata.at("declaration_hash"), "5a3b1e0000000001");
  EXPECT_EQ(file.metadata.at("input_crop"), "0");
  // The same pictures, one by one, of a list that is longer than what is embedded at once.
  std::vector<std::string> list{"embed"};
  for (int i = 0; i < 40; ++i) list.push_back(at(i % 2 ? "pictures/dark/d.png" : "pictures/bright/a.png"));
  list.insert(list.end(), {"-o", at("list.safetensors")});
  ASSERT_EQ(run(list).code, 0);
  const std::vector<float> many = read_safetensors(folder / "list.safetensors").at("features").floats();
  ASSERT_EQ(many.size(), 40u * 784);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_FLOAT_EQ(many[i * 784], (i % 2 ? 10.0f : 200.0f) / 255) << i;
  // Equal input, equal bytes; what was written before is replaced.
  const std::string before = slurp(folder / "f.safetensors");
  embed_all();
  EXPECT_EQ(slurp(folder / "f.safetensors"), before);
}

TEST_F(FeatureCommand, SimilarTellsCosinesTheLargestFirst) {
  embed_all();
  picture("query.png", 100, 6);
  const auto cosine = [](double a, double b, double c, double d) {
    return (a * c + b * d) / std::sqrt((a * a + b * b) * (c * c + d * d));
  };
  const Result json = run({"similar", at("query.png"), "--index", at("f.safetensors"), "--json", "--top", "4"});
  ASSERT_EQ(json.code, 0) << json.err;
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["query"], at("query.png"));
  ASSERT_EQ(answer["neighbours"].size(), 4u);
  EXPECT_EQ(answer["neighbours"][0]["picture"], at("pictures/bright/b.png"));
  EXPECT_NEAR(answer["neighbours"][0]["cosine"], cosine(100, 6, 180, 12), 1e-6);
  EXPECT_EQ(answer["neighbours"][1]["picture"], at("pictures/bright/a.png"));
  EXPECT_NEAR(answer["neighbours"][1]["cosine"], cosine(100, 6, 200, 10), 1e-6);
  EXPECT_EQ(answer["neighbours"][3]["picture"], at("pictures/dark/e.png"));
  EXPECT_NEAR(answer["neighbours"][3]["cosine"], cosine(100, 6, 30, 210), 1e-6);
  const Result table = run({"similar", at("query.png"), "--index", at("f.safetensors"), "--top", "2"});
  EXPECT_EQ(table.out, " 1.000  " + at("pictures/bright/b.png") + "\n 1.000  " + at("pictures/bright/a.png") + "\n");
}

TEST_F(FeatureCommand, ZeroFeaturesAreLikeNothing) {
  picture("pictures/dark/black.png", 0, 0);
  ASSERT_EQ(run({"embed", at("pictures"), "-o", at("f.safetensors")}).code, 0);
  const Result all = run({"similar", at("pictures/dark/d.png"), "--index", at("f.safetensors"), "--top", "100"});
  EXPECT_EQ(std::count(all.out.begin(), all.out.end(), '\n'), 6) << all.out;
  EXPECT_EQ(all.out.find("black.png"), std::string::npos);
  refused(run({"similar", at("pictures/dark/black.png"), "--index", at("f.safetensors")}),
          "the features of " + at("pictures/dark/black.png") +
              " are all zero: they have no direction, and nothing is like them");
}

TEST_F(FeatureCommand, ContactSheetIsOneFileWithTheQueryAndItsNeighbours) {
  embed_all();
  std::filesystem::remove(folder / "pictures/bright/b.png");
  const Result drawn =
      run({"similar", at("pictures/bright/a.png"), "--index", at("f.safetensors"), "--top", "3", "-o", at("s.html")});
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  const std::string page = slurp(folder / "s.html");
  std::size_t pictures = 0;
  for (std::size_t i = page.find("data:image/png"); i != std::string::npos; i = page.find("data:image/png", i + 1))
    ++pictures;
  EXPECT_EQ(pictures, 3u);  // the query and two neighbours; the third can no longer be read
  for (const char* part : {"bright/a.png", "bright/b.png", "bright/c.png", "1.000", "cannot be read", "query"})
    EXPECT_CONTAINS(page, part);
  for (const char* part : {"http:", "https:"})
    for (std::size_t i = page.find(part); i != std::string::npos; i = page.find(part, i + 1))
      EXPECT_EQ(page.substr(i, 18), "http://www.w3.org/") << page.substr(i, 60);
}

TEST_F(FeatureCommand, IndexOfAnotherOriginIsRefused) {
  embed_all();
  parameters("weights.safetensors", 0.25f);
  for (const char* command : {"similar", "probe"}) {
    std::vector<std::string> arguments{command, "--index", at("f.safetensors")};
    if (std::string(command) == "similar") arguments.push_back(at("pictures/dark/d.png"));
    const Result other = run(arguments);
    EXPECT_EQ(other.code, 1);
    EXPECT_CONTAINS(other.err, " was made with other parameters of sample than those that are used now (");
    EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1);
  }
  parameters("weights.safetensors", 0.5f);
  const auto changed = [&](const char* key, const std::string& value) {
    Safetensors file = read_safetensors(folder / "f.safetensors");
    file.metadata[key] = value;
    write_safetensors(folder / "g.safetensors", file);
    return run({"similar", at("pictures/dark/d.png"), "--index", at("g.safetensors")});
  };
  refused(changed("model", "vit"), at("g.safetensors") + " was made by another model, 'vit', and this is sample");
  refused(changed("declaration_hash", "0"), at("g.safetensors") +
                                                " was made with another declaration of sample ('0', this is "
                                                "'5a3b1e0000000001')");
  refused(changed("input_mean.1", "0.5"),
          at("g.safetensors") + " was made of pictures that were prepared in another way (input_mean.1)");
  refused(changed("format", "pt"), at("g.safetensors") + " holds no features: sample embed writes such files");
  refused(changed("pictures", "[1]"), at("g.safetensors") +
                                          " is damaged: its features are not F32 [pictures, 784], or it has not a name "
                                          "for each picture");
  refused(run({"similar", at("pictures/dark/d.png"), "--index", at("weights.safetensors")}),
          at("weights.safetensors") + " holds no features: sample embed writes such files");
}

TEST_F(FeatureCommand, FeaturesThatAreNoNumbersAreRefused) {
  embed_all();
  Safetensors file = read_safetensors(folder / "f.safetensors");
  std::vector<float> numbers = file.at("features").floats();
  numbers[5] = INFINITY;
  file.tensors["features"] = Tensor::of({6, 784}, std::span<const float>(numbers));
  write_safetensors(folder / "g.safetensors", file);
  refused(run({"similar", at("pictures/dark/d.png"), "--index", at("g.safetensors")}),
          "the features in " + at("g.safetensors") + " are not all finite numbers");
  // A head for differences as small as these has weights beyond single precision.
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i < 3 * 784 ? 3e-45F : 0;
  file.tensors["features"] = Tensor::of({6, 784}, std::span<const float>(numbers));
  write_safetensors(folder / "g.safetensors", file);
  refused(run({"probe", "--index", at("g.safetensors"), "-o", at("h.safetensors")}),
          "the weights of the fitted head are not all finite numbers", "h.safetensors");
}

TEST_F(FeatureCommand, BadInputIsOneSentenceAndNothingIsWritten) {
  spill(folder / "text.png", "no picture");
  std::filesystem::create_directories(folder / "empty");
  const Result none = run({"embed", at("pictures"), at("text.png"), "-o", at("g.safetensors")});
  EXPECT_EQ(none.code, 1);
  EXPECT_CONTAINS(none.err, at("text.png"));
  EXPECT_EQ(std::count(none.err.begin(), none.err.end(), '\n'), 1) << none.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "g.safetensors"));
  refused(run({"embed", at("empty"), "-o", at("g.safetensors")}),
          "there are no PNG, JPEG, BMP, PGM or PPM pictures in " + at("empty"), "g.safetensors");
  refused(run({"embed", at("pictures"), "-o", at("weights.safetensors")}),
          "cannot write " + at("weights.safetensors") + ": it is a safetensors file, whose parameters would be lost");
  embed_all();
  refused(run({"similar", at("pictures"), "--index", at("f.safetensors")}),
          at("pictures") + " is a folder of 6 pictures: similar takes one");
  refused(run({"similar", at("pictures/dark/d.png"), "--index", at("f.safetensors"), "-o", at("s.bmp")}),
          at("s.bmp") + " names no such picture: it has to end in .html", "s.bmp");
  picture("alone.png", 1, 2);
  ASSERT_EQ(run({"embed", at("pictures"), "-o", at("f.safetensors")}).code, 0);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"embed"},
                                             {"similar", "a.png"},
                                             {"similar"},
                                             {"probe"},
                                             {"embed", "a.png", "--test-images"},
                                             {"embed", "a.png", "--data", "b"},
                                             {"similar", "a.png", "--index", "b", "--top", "0"}}) {
    const Result result = sample(wrong);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_CONTAINS(sample({"simlar"}).err, "did you mean similar?");
  EXPECT_CONTAINS(sample({"embed", "a.png", "--outptu", "x"}).err, "did you mean --output?");
  EXPECT_CONTAINS(sample({"similar", "a.png", "--index", "x", "--jsn"}).err, "did you mean --json?");
}

TEST_F(FeatureCommand, WhatIsReadIsNotWrittenOver) {
  embed_all();
  spill(folder / "labels.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  std::filesystem::create_directories(folder / "data");
  for (const char* part : {"train", "test"})
    std::filesystem::copy(folder / "pictures", folder / "data" / part, std::filesystem::copy_options::recursive);
  std::filesystem::create_symlink("pictures/dark/d.png", folder / "link.html");
  const std::string picture = at("pictures/dark/d.png"), index = at("f.safetensors"), labels = at("labels.txt");
  const auto all = [&] {
    std::string content;
    for (const std::string& file : {picture, index, labels, at("weights.safetensors"), at("data/test/dark/d.png")})
      content += slurp(file);
    return content;
  };
  const std::string before = all(), read = ": it is what is read";
  for (const auto& [arguments, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"embed", picture, "-o", picture}, picture + read},
           {{"embed", at("pictures"), "-o", picture}, picture + ": it lies in " + at("pictures") + ", which is read"},
           {{"embed", "--data", at("data"), "-o", at("data/test/dark/d.png")},
            at("data/test/dark/d.png") + ": it lies in " + at("data") + ", which is read"},
           {{"similar", picture, "--index", index, "-o", at("link.html")}, at("link.html") + read},
           {{"probe", "--index", index, "-o", index}, index + read},
           {{"eval", "--labels", labels, "--confusion", labels}, labels + read},
           {{"export", "--labels", labels, "--onnx", labels}, labels + read}}) {
    refused(run(arguments), "cannot write " + said);
    EXPECT_TRUE(all() == before) << said;
  }
  refused(sample({"pack", "--data", at("data"), "-o", at("data/test/dark/d.png")}),
          "cannot write " + at("data/test/dark/d.png") + ": it lies in " + at("data") + ", which is read");
  refused(sample({"summary", "--html", labels, "--times", labels}), "cannot write " + labels + read);
  EXPECT_TRUE(all() == before);
  // What embed has written among the pictures is replaced.
  ASSERT_EQ(run({"embed", at("pictures"), "-o", at("pictures/f.safetensors")}).code, 0);
  EXPECT_EQ(run({"embed", at("pictures"), "-o", at("pictures/f.safetensors")}).code, 0);
}

TEST_F(FeatureCommand, FoldersThatAnIndexNamesAreNotSearched) {
  embed_all();
  Safetensors file = read_safetensors(folder / "f.safetensors");
  nlohmann::json names = nlohmann::json::parse(file.metadata.at("pictures"));
  names[0] = at("pictures");  // a folder in a picture's place
  file.metadata["pictures"] = names.dump();
  write_safetensors(folder / "f.safetensors", file);
  const Result result =
      run({"similar", at("pictures/bright/a.png"), "--index", at("f.safetensors"), "-o", at("sheet.html")});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string sheet = slurp(folder / "sheet.html");
  EXPECT_CONTAINS(sheet, "cannot be read");
  EXPECT_EQ(sheet.find("cannot be read"), sheet.rfind("cannot be read"));  // the others are shown
}

TEST_F(FeatureCommand, ProbeFitsAHeadThatPredictTakes) {
  embed_all();
  picture("tests/bright/x.png", 150, 20);
  picture("tests/dark/y.png", 3, 90);
  ASSERT_EQ(run({"embed", at("tests"), "-o", at("t.safetensors")}).code, 0);
  const Result fitted =
      run({"probe", "--index", at("f.safetensors"), "--test", at("t.safetensors"), "-o", at("h.safetensors")});
  ASSERT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_CONTAINS(fitted.out, "6 pictures of 2 classes, 784 features each; fitted to 4, held out 2\n");
  EXPECT_CONTAINS(fitted.out, "test accuracy 100.00% (2 of 2), loss ");
  const Safetensors head = read_safetensors(folder / "h.safetensors");
  EXPECT_EQ(head.at("head.weight").shape, (Shape{2, 784}));
  EXPECT_EQ(head.at("head.bias").shape, (Shape{2}));
  EXPECT_EQ(head.metadata.at("class_names"), "bright\ndark");
  const Result said = run({"predict", at("tests/dark/y.png"), "--head", at("h.safetensors"), "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(nlohmann::json::parse(said.out)[0]["classes"][0]["name"], "dark") << said.out;
  // The bits are those of every run, for any number of threads.
  const std::string before = slurp(folder / "h.safetensors");
  run({"probe", "--index", at("f.safetensors"), "-o", at("h.safetensors"), "--threads", "1"});
  EXPECT_EQ(slurp(folder / "h.safetensors"), before);

  picture("tests/grey/z.png", 99, 99);
  ASSERT_EQ(run({"embed", at("tests"), "-o", at("t.safetensors")}).code, 0);
  refused(run({"probe", "--index", at("f.safetensors"), "--test", at("t.safetensors"), "-o", at("g.safetensors")}),
          "there are test pictures of 'grey', which no training picture is of", "g.safetensors");
  refused(run({"predict", at("tests/dark/y.png"), "--head", at("f.safetensors")}),
          at("f.safetensors") + " holds no fitted head: sample probe writes such files");
  parameters("weights.safetensors", 0.25f);
  EXPECT_CONTAINS(run({"predict", at("tests/dark/y.png"), "--head", at("h.safetensors")}).err,
                  " was made with other parameters of sample");
}

TEST_F(FeatureCommand, DataSetsAreEmbeddedWithTheirClasses) {
  for (const char* split : {"train", "test"})
    for (const char* one : {"bright/a.png", "bright/b.png", "dark/d.png", "dark/e.png"}) {
      const std::string to = std::string("set/") + split + "/" + one;
      std::filesystem::create_directories((folder / to).parent_path());
      std::filesystem::copy_file(folder / "pictures" / one, folder / to);
    }
  const Result done = run({"embed", "--data", at("set"), "-o", at("train.safetensors")});
  ASSERT_EQ(done.code, 0) << done.err;
  ASSERT_EQ(run({"embed", "--data", at("set"), "--test-images", "--limit", "2", "-o", at("test.safetensors")}).code, 0);
  const auto names = nlohmann::json::parse(read_safetensors(folder / "test.safetensors").metadata.at("pictures"));
  EXPECT_EQ(names, (nlohmann::json{"bright/0", "dark/1"}));
  const Result fitted =
      run({"probe", "--index", at("train.safetensors"), "--test", at("test.safetensors"), "-o", at("h.safetensors")});
  ASSERT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_CONTAINS(fitted.out, "test accuracy 100.00% (2 of 2)");
  // The sheet shows the data set's own images.
  ASSERT_EQ(
      run({"similar", at("pictures/dark/f.png"), "--index", at("train.safetensors"), "--top", "2", "-o", at("s.html")})
          .code,
      0);
  EXPECT_EQ(slurp(folder / "s.html").find("cannot be read"), std::string::npos);
  Safetensors file = read_safetensors(folder / "train.safetensors");
  file.metadata["split"] = "all";
  write_safetensors(folder / "train.safetensors", file);
  refused(run({"similar", at("pictures/dark/f.png"), "--index", at("train.safetensors")}),
          at("train.safetensors") + " is damaged: it is of the 'all' images of " + at("set"));
}

}  // namespace
}  // namespace tessera::runtime
