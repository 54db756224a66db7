// Packed parameters beside a checkpoint: found by the next process, and by none for which they do not hold.
#include "runtime/packed_parameters.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/file.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

class PackedParametersFile : public testing::Test {
 protected:
  PackedParametersFile() {
    std::iota(numbers.begin(), numbers.end(), 0.5f);
    write_file(checkpoint, "a checkpoint");
    settle();
  }
  /// Until the file's times tell every later change.
  static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(3100)); }

  static Model model_of(const char* (*isa)(), std::int64_t floats = least) {
    Model model;
    model.isa = isa;
    model.packed_forward_floats = floats;
    return model;
  }
  bool found(const Model& by) const {
    const PackedParameters packed(checkpoint, by);
    return packed.floats() && std::equal(numbers.begin(), numbers.end(), packed.floats());
  }
  void keep() const { PackedParameters(checkpoint, model).keep(numbers.data()); }

  static constexpr std::int64_t least = 1 << 20;  // floats
  const Model model = model_of([] { return "avx2"; });
  std::vector<float> numbers = std::vector<float>(least);
  TemporaryFolder folder;
  const std::filesystem::path checkpoint = folder / "checkpoint.safetensors", file = folder / "checkpoint.avx2.packed";
};

TEST_F(PackedParametersFile, HoldsForOneCheckpointProgramAndInstructionSet) {
  EXPECT_FALSE(found(model));
  keep();
  EXPECT_TRUE(found(model));
  EXPECT_TRUE(partial_files(folder.path()).empty());
  EXPECT_FALSE(found(model_of([] { return "scalar"; })));
  EXPECT_FALSE(found(model_of([] { return "avx2"; }, least + 16)));
  // As another program would have left it.
  std::string content = slurp(file);
  const std::size_t last = content.find('\0');
  content[last - 2] ^= 1;
  write_file(file, content);
  EXPECT_FALSE(found(model));
  keep();
  EXPECT_TRUE(found(model));
}

TEST_F(PackedParametersFile, IsOfNoUseOnceTheCheckpointChanges) {
  const PackedParameters before(checkpoint, model);
  keep();
  ASSERT_TRUE(found(model));
  write_file(checkpoint, "b checkpoint");  // of the same size
  EXPECT_FALSE(found(model));
  keep();  // its times may not tell it from what it becomes next
  EXPECT_FALSE(found(model));
  settle();
  EXPECT_FALSE(found(model));
  before.keep(numbers.data());  // of what the checkpoint was
  EXPECT_FALSE(found(model));
  keep();
  EXPECT_TRUE(found(model));
}

TEST_F(PackedParametersFile, IsWrittenAnewWhereItIsShorterAndNotWhereItIsAnothers) {
  keep();
  for (const std::uintmax_t bytes : {std::uintmax_t{4096}, std::uintmax_t{4096 + 4 * least - 1}}) {
    std::filesystem::resize_file(file, bytes);
    EXPECT_FALSE(found(model));
    keep();
    EXPECT_TRUE(found(model));
  }
  for (const std::string& content : {std::string("notes"), std::string(10000, 'n')}) {
    write_file(file, content);
    keep();
    EXPECT_EQ(slurp(file), content);
    EXPECT_FALSE(found(model));
  }
  std::filesystem::remove(file);
  std::filesystem::create_symlink("nowhere", file);
  keep();
  EXPECT_TRUE(std::filesystem::is_symlink(file));
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST_F(PackedParametersFile, IsNotWrittenWhereItIsNotWorthItOrCannotBe) {
  PackedParameters(checkpoint, model_of([] { return "avx2"; }, least - 1)).keep(numbers.data());
  EXPECT_FALSE(std::filesystem::exists(file));
  PackedParameters(folder / "none.safetensors", model).keep(numbers.data());
  EXPECT_FALSE(std::filesystem::exists(folder / "none.avx2.packed"));
  // No file can have the name that this would have.
  const std::filesystem::path longest = folder / (std::string(250, 'x') + ".st");
  std::filesystem::rename(checkpoint, longest);
  settle();
  PackedParameters(longest, model).keep(numbers.data());
  EXPECT_EQ(list_folder(folder.path()).size(), 1u);
}

}  // namespace
}  // namespace tessera::runtime
