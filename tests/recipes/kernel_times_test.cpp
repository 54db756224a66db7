// bench --kernels of an emitted program: where a run's time goes, in the terminal, as JSON and in the page of the
// model.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

// The first layer has nearly all FLOPs. What sanitizers do not inline is a row of its own.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr double least_of_the_first_layer = 0.02;
#else
constexpr double least_of_the_first_layer = 0.1;
#endif
#else
constexpr double least_of_the_first_layer = 0.1;
#endif

class KernelTimes : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Result measure(const std::string& program = paths::sample_program) const {
    return Process(
               program,
               {"bench", "--kernels", "--batch", "64", "--seconds", "1", "--threads", "1", "--to", at("times.json")},
               {})
        .wait();
  }
  Result draw(const std::string& times) const {
    return sample({"summary", "--html", at("model.html"), "--times", times});
  }
  TemporaryFolder folder_;
};

TEST_F(KernelTimes, AddUpToTheRunAndNameTheKernelThatHasTheWork) {
  const Result shown = measure();
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.err, "");
  for (const char* part : {"forward, batch 64, kernels ", "training step, batch 64, kernels ", " samples\n\nkernel ",
                           "of the time  of the FLOPs\n", "\nhidden_forward", "times.json holds these times"})
    EXPECT_CONTAINS(shown.out, part);
  const auto all = nlohmann::json::parse(slurp(at("times.json")));
  ASSERT_EQ(all["programs"].size(), 2U);
  EXPECT_EQ(all["programs"][0]["name"], "forward");
  for (const auto& program : all["programs"]) {
    EXPECT_GT(program["samples"].get<int>(), 20);  // a thousand a second where the machine is the test's alone
    double share = 0, flops = 0, milliseconds = 0, hidden = 0;
    for (const auto& row : program["kernels"]) {
      share += row["share"].get<double>();
      flops += row["flops_share"].get<double>();
      milliseconds += row["milliseconds"].get<double>();
      if (row["name"].get<std::string>().starts_with("hidden_")) hidden += row["share"].get<double>();
    }
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_NEAR(flops, 1, 1e-9);
    EXPECT_NEAR(milliseconds, program["milliseconds"].get<double>(), 1e-6);
    EXPECT_GT(hidden, least_of_the_first_layer) << program;
  }
}

TEST_F(KernelTimes, StandBesideTheKernelsInThePageWhereTheyAreGiven) {
  ASSERT_EQ(sample({"summary", "--html", at("model.html")}).code, 0);
  const std::string without = slurp(at("model.html"));
  EXPECT_EQ(without.find("of the time"), std::string::npos);
  EXPECT_CONTAINS(without, "<!--time forward hidden_forward-->");
  ASSERT_EQ(measure().code, 0);
  ASSERT_EQ(draw(at("times.json")).code, 0);
  const std::string with = slurp(at("model.html"));
  EXPECT_EQ(with.find("<!--time"), std::string::npos);
  const std::size_t kernel = with.find("<b>hidden_forward</b>"), end = with.find("</summary>", kernel);
  ASSERT_NE(end, std::string::npos);
  EXPECT_CONTAINS(with.substr(kernel, end - kernel), " %</b> of the time, ");
  EXPECT_CONTAINS(with, " ms</b>measured: training step, 64 images (");
}

TEST_F(KernelTimes, OfAnotherModelOrOfNoneAreOneSentence) {
  ASSERT_EQ(measure().code, 0);
  std::string times = slurp(at("times.json"));
  const std::size_t hash = times.find("\"declaration\": ") + 15;
  times[hash] = times[hash] == '1' ? '2' : '1';
  spill(at("other.json"), times);
  spill(at("none.json"), "{\"programs\": 3}");
  for (const auto& [file, why] :
       {std::pair{"other.json", "holds times of another declaration"}, {"none.json", "holds no times of kernels"}}) {
    const Result refused = draw(at(file));
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.err, "digit_probe: " + at(file) + " " + why + ": bench --kernels --to FILE writes such a file\n");
  }
  EXPECT_EQ(sample({"bench", "--seconds", "1"}).code, 2);  // which needs --kernels
}

TEST_F(KernelTimes, WithoutLineTablesOrAddr2lineAreOneSentence) {
  ASSERT_EQ(std::system(("strip -g -o " + at("stripped") + " " + paths::sample_program).c_str()), 0);
  const Result stripped = measure(at("stripped"));
  EXPECT_EQ(stripped.code, 1);
  EXPECT_EQ(stripped.err,
            "digit_probe: digit_probe was built without line tables, by which bench --kernels finds "
            "kernels: configure it with -DTESSERA_LINE_TABLES=ON\n");
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder_.path().c_str(), 1);
  const Result alone = measure();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(alone.code, 1);
  EXPECT_EQ(alone.err,
            "digit_probe: bench --kernels finds kernels by addr2line, which cannot be started (No such file "
            "or directory): it is in the package binutils\n");
}

}  // namespace
}  // namespace tessera::runtime
