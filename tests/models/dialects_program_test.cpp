// The program of a declaration that `tessera declare` wrote for a checkpoint of OpenCLIP reads that checkpoint as it is
// published, and computes what OpenCLIP does (tests/golden/dialects).
#include "dialect_open_clip.h"
#include "runtime/arena.hpp"
#include "runtime/matching.hpp"
#include "runtime/translation.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

const std::filesystem::path golden = std::filesystem::path(paths::golden) / "dialects";

class DialectsProgram : public testing::Test {
 protected:
  std::string at(const std::string& name) { return (folder / name).string(); }
  static std::string file(const char* model) { return (golden / model / "model.safetensors").string(); }
  TemporaryFolder folder;
};

TEST_F(DialectsProgram, ReadsACheckpointOfOpenClipAndComputesWhatItDoes) {
  const Result imported = sample({"import", file("open_clip"), "--out", at("run")});
  ASSERT_EQ(imported.code, 0) << imported.err;
  const std::string said = imported.out + imported.err;
  EXPECT_NE(said.find("keys of OpenCLIP are read as timm's\n"), std::string::npos) << said;
  EXPECT_NE(said.find("'ln_final.bias' and 17 more are left out: images do not need them\n"), std::string::npos)
      << said;
  const Result exported = sample({"export", "--out", at("run"), "-o", at("timm.safetensors")});
  ASSERT_EQ(exported.code, 0) << exported.err;

  const Safetensors ours = read_safetensors(at("timm.safetensors"));
  const Translation theirs = in_timms_keys(read_safetensors(file("open_clip")));
  ASSERT_EQ(ours.tensors.size(), theirs.file.tensors.size());
  Arena parameters = Arena::of_floats(DIALECT_OPEN_CLIP_PARAMETER_FLOATS, DIALECT_OPEN_CLIP_ALIGNMENT);
  for (const tessera_parameter& row : dialect_open_clip_parameters) {
    ASSERT_TRUE(theirs.file.has(row.name)) << row.name;
    EXPECT_EQ(bytes_of(ours.at(row.name)), bytes_of(theirs.file.at(row.name))) << row.name;
    const std::vector<float> numbers = ours.at(row.name).floats();
    std::copy(numbers.begin(), numbers.end(), parameters.floats() + row.offset);
  }

  const Safetensors io = read_safetensors(golden / "open_clip" / "io.safetensors");
  const std::vector<float> x = io.at("x").floats(), outputs = io.at("outputs").floats();
  Arena packed =
      Arena::of_floats(std::max<std::int64_t>(1, DIALECT_OPEN_CLIP_PACKED_FORWARD_FLOATS), DIALECT_OPEN_CLIP_ALIGNMENT);
  ASSERT_EQ(dialect_open_clip_pack_forward(parameters.floats(), packed.floats()), 0);
  Arena images = Arena::of_floats(static_cast<std::int64_t>(x.size()), DIALECT_OPEN_CLIP_ALIGNMENT);
  std::copy(x.begin(), x.end(), images.floats());
  Arena computed = Arena::of_floats(static_cast<std::int64_t>(outputs.size()), DIALECT_OPEN_CLIP_ALIGNMENT);
  Arena scratch = Arena::of_floats(DIALECT_OPEN_CLIP_FORWARD_SCRATCH_BYTES(2) / 4 + 1, DIALECT_OPEN_CLIP_ALIGNMENT);
  ASSERT_EQ(dialect_open_clip_forward(parameters.floats(), packed.floats(), images.floats(), 2, computed.floats(),
                                      scratch.floats()),
            0);
  float largest = 0, apart = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    largest = std::max(largest, std::abs(outputs[i]));
    apart = std::max(apart, std::abs(outputs[i] - computed.floats()[i]));
  }
  EXPECT_LE(apart, 1e-5f * largest);
  std::printf("  outputs %.1e\n", static_cast<double>(apart / largest));
}

TEST_F(DialectsProgram, RefusesWhatIsNotOfItsKeysInOneSentence) {
  const Result other = sample({"import", file("torchvision"), "--out", at("run")});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("differences"), std::string::npos) << other.err;
  Safetensors mixed = read_safetensors(file("open_clip"));
  mixed.tensors["conv_proj.weight"] = Tensor::of({1}, std::vector<float>{0});
  write_safetensors(at("mixed.safetensors"), mixed);
  const Result refused = sample({"import", at("mixed.safetensors"), "--out", at("run")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("mixes keys of OpenCLIP ("), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(at("run")));
}

}  // namespace
}  // namespace tessera::runtime
