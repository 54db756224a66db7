// The same bits from the emitted vit_cifar, dropout and all, whatever the number of threads: images that are left over
// when each thread has equally many are partitioned, row by row of every kernel. Nor does it matter how large the
// caches are, by which work is cut up.
#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/philox.hpp"
#include "vit_cifar.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;

/// Scratch memory that starts as not-a-number.
runtime::Arena scratch(std::int64_t bytes) {
  runtime::Arena arena(bytes, VIT_CIFAR_ALIGNMENT);
  std::fill_n(arena.floats(), bytes / 4, NAN);
  return arena;
}

/// Everything that the entry points write for a batch, one array after the other.
Floats run(std::int64_t batch, std::int64_t at_once) {
  const auto numbers = [&](std::int64_t an_image) { return Floats(static_cast<std::size_t>(batch * an_image), NAN); };
  Floats parameters(VIT_CIFAR_PARAMETER_FLOATS), images = numbers(VIT_CIFAR_IMAGE_FLOATS);
  EXPECT_EQ(vit_cifar_init(parameters.data(), 3), VIT_CIFAR_OK);
  runtime::Random random(5, 0, 0);
  for (float& pixel : images) pixel = static_cast<float>(random.uniform(-1, 1));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch), 7);
  const runtime::Arena packed = runtime::Arena::of_floats(VIT_CIFAR_PACKED_FLOATS, VIT_CIFAR_ALIGNMENT);
  EXPECT_EQ(vit_cifar_pack(parameters.data(), packed.floats()), VIT_CIFAR_OK);

  std::vector<Floats> all{numbers(VIT_CIFAR_OUTPUT_FLOATS),    numbers(VIT_CIFAR_OUTPUT_FLOATS),
                          Floats(VIT_CIFAR_PARAMETER_FLOATS),  numbers(VIT_CIFAR_IMAGE_FLOATS),
                          numbers(VIT_CIFAR_ATTENTION_FLOATS), numbers(VIT_CIFAR_LAYERS),
                          numbers(VIT_CIFAR_OUTPUT_FLOATS),    Floats(2, NAN)};
  const float *p = parameters.data(), *w = packed.floats(), *x = images.data();
  EXPECT_EQ(vit_cifar_forward(p, w, x, batch, all[0].data(), scratch(VIT_CIFAR_FORWARD_SCRATCH_BYTES(batch)).data()),
            VIT_CIFAR_OK);
  EXPECT_EQ(vit_cifar_loss_and_gradients(p, w, x, labels.data(), batch, at_once, 1, 2, all[1].data(), &all[7][0],
                                         all[2].data(), scratch(VIT_CIFAR_TRAIN_SCRATCH_BYTES(at_once)).data()),
            VIT_CIFAR_OK);
  EXPECT_EQ(vit_cifar_input_gradient(p, w, x, labels.data(), batch, all[6].data(), &all[7][1], all[3].data(),
                                     scratch(VIT_CIFAR_INPUT_GRADIENT_SCRATCH_BYTES(batch)).data()),
            VIT_CIFAR_OK);
  EXPECT_EQ(vit_cifar_inspect(p, w, x, batch, all[4].data(), all[5].data(),
                              scratch(VIT_CIFAR_INSPECT_SCRATCH_BYTES(batch)).data()),
            VIT_CIFAR_OK);
  Floats joined;
  for (const Floats& part : all) joined.insert(joined.end(), part.begin(), part.end());
  return joined;
}

class Teams : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    setenv("TESSERA_ISA", GetParam().c_str(), 1);
    if (vit_cifar_isa() != GetParam()) GTEST_SKIP() << "this processor cannot run " << GetParam();
  }
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    omp_set_num_threads(1);
  }
};

TEST_P(Teams, OfAnySizeGiveTheBitsOfOneThread) {
  for (const std::int64_t batch : {1, 2, 4}) {
    omp_set_num_threads(1);
    const Floats alone = run(batch, batch);
    for (const float number : alone) ASSERT_TRUE(std::isfinite(number)) << "batch " << batch;
    for (const int threads : {2, 3, 7}) {
      omp_set_num_threads(threads);
      const Floats together = run(batch, batch);
      EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)), 0)
          << threads << " threads, batch " << batch;
    }
  }
}

TEST_P(Teams, GiveTheBitsOfAllImagesAtOnceWithAnyFewerOfThem) {
  for (const std::int64_t batch : {5, 17}) {
    omp_set_num_threads(1);
    const Floats whole = run(batch, batch);
    const std::int64_t fewest = (batch + 15) / 16;
    for (const auto& [threads, at_once] :
         {std::pair{1, fewest}, std::pair{3, fewest}, std::pair{3, batch / 2}, std::pair{3, batch}}) {
      omp_set_num_threads(threads);
      const Floats parts = run(batch, at_once);
      EXPECT_EQ(std::memcmp(parts.data(), whole.data(), whole.size() * sizeof(float)), 0)
          << threads << " threads, batch " << batch << ", " << at_once << " at once";
    }
  }
}

/// The bits of everything, as one number, and how many images go at once, from a process that is told how large its
/// L2 is before it asks.
std::pair<std::uint64_t, std::int64_t> run_with_l2(const char* bytes) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TESSERA_L2_BYTES", bytes, 1);
    std::pair<std::uint64_t, std::int64_t> result{14695981039346656037u, vit_cifar_images_at_once(256)};
    for (const float number : run(2, 2)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      result.first = (result.first ^ bits) * 1099511628211u;
    }
    const bool written = write(ends[1], &result, sizeof result) == sizeof result;
    _exit(written && !testing::Test::HasFailure() ? 0 : 1);
  }
  close(ends[1]);
  std::pair<std::uint64_t, std::int64_t> result{};
  EXPECT_EQ(read(ends[0], &result, sizeof result), static_cast<ssize_t>(sizeof result));
  close(ends[0]);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return result;
}

TEST_P(Teams, GiveTheSameBitsWhateverASecondCacheHolds) {
  const auto small = run_with_l2("65536"), large = run_with_l2("268435456");
  EXPECT_EQ(small.first, large.first);
  EXPECT_LT(small.second, large.second) << "images at once";
}

INSTANTIATE_TEST_SUITE_P(Isas, Teams, testing::Values("scalar", "avx2", "avx512"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
