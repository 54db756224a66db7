// The program of a model whose parameters are worth a file once they are packed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/image.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"
#include "vit_tiny.h"

namespace tessera::runtime {
namespace {

class VitTinyProgram : public testing::Test {
 protected:
  VitTinyProgram() {
    std::vector<float> parameters(VIT_TINY_PARAMETER_FLOATS);
    EXPECT_EQ(vit_tiny_init(parameters.data(), 7), VIT_TINY_OK);
    std::map<std::string, TensorView> tensors;
    for (const tessera_parameter& row : vit_tiny_parameters) {
      const Shape shape(row.shape, row.shape + row.rank);
      const auto bytes = reinterpret_cast<const std::uint8_t*>(parameters.data() + row.offset);
      tensors[row.name] = {"F32", shape, {bytes, 4 * static_cast<std::size_t>(elements(shape))}};
    }
    std::filesystem::create_directory(run);
    write_safetensors(checkpoint, {}, tensors);
    std::this_thread::sleep_for(std::chrono::milliseconds(3100));  // until its times tell every later change
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const std::filesystem::path& path : list_folder(run)) names.push_back(path.filename().string());
    return names;
  }
  Result predict(std::vector<std::string> more) const {
    more.insert(more.begin(), {"predict", picture.string()});
    return sample(more);
  }
  TemporaryFolder folder;
  const std::filesystem::path run = folder / "run", checkpoint = run / "checkpoint.safetensors",
                              picture = folder / "a.png";
};

TEST_F(VitTinyProgram, PredictLeavesPackedParametersBesideTheCheckpointOfARunAlone) {
  const Bytes png = encode_png(std::vector<std::uint8_t>(192, 77), 3, 8, 8);
  spill(picture, {png.begin(), png.end()});
  const Result first = predict({"--checkpoint", checkpoint.string()});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(files(), std::vector<std::string>{"checkpoint.safetensors"});
  const std::string packed = std::string("checkpoint.") + vit_tiny_isa() + ".packed";
  for (const char* time : {"packed", "mapped"}) {
    const Result answer = predict({"--out", run.string()});
    EXPECT_EQ(answer.out, first.out) << time;
    EXPECT_EQ(files(), (std::vector<std::string>{packed, "checkpoint.safetensors"})) << time;
  }
  // It is read: with other numbers, the answer is another one.
  std::string content = slurp(run / packed);
  std::fill(content.begin() + 4096, content.end(), '\0');
  write_file(run / packed, content);
  EXPECT_NE(predict({"--out", run.string()}).out, first.out);
  setenv("TESSERA_ISA", "scalar", 1);
  EXPECT_EQ(predict({"--out", run.string()}).code, 0);
  unsetenv("TESSERA_ISA");
  EXPECT_EQ(files().size(), std::string(vit_tiny_isa()) == "scalar" ? 2u : 3u);
}

}  // namespace
}  // namespace tessera::runtime
