// The emitted program on the real MNIST files, which are not part of the tree.
#include <cstdlib>

#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

TEST(VitMnistOnMnist, OneEpochTrains) {
  const char* shared = std::getenv("TESSERA_SHARED");
  if (!shared || !std::filesystem::exists(std::filesystem::path(shared) / "data/mnist"))
    GTEST_SKIP() << "TESSERA_SHARED names no folder with data/mnist: the MNIST files are not here";
  const TemporaryFolder folder;
  const std::string data = std::filesystem::path(shared) / "data/mnist", out = folder / "run";
  const Result trained = sample({"train", "--data", data, "--epochs", "1", "--out", out});
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* file : {"checkpoint.safetensors", "curve.csv", "curve.svg", "predictions.svg"})
    EXPECT_GT(std::filesystem::file_size(folder / "run" / file), 0u) << file;

  const Result evaluated = sample({"eval", "--data", data, "--out", out});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const std::size_t at = evaluated.out.find("\naccuracy");
  ASSERT_NE(at, std::string::npos) << evaluated.out;
  // Percent. Guessing finds 10; other seeds end the first epoch between 52 and 69.
  EXPECT_GT(std::atof(evaluated.out.c_str() + at + 9), 45) << evaluated.out;
}

}  // namespace
}  // namespace tessera::runtime
