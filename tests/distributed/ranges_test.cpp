// The callback of NAME_loss_and_gradients_by_range, and what begins to move when it is called.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "ranks_mnist.h"
#include "ranks_probe.h"
#include "runtime/philox.hpp"
#include "runtime/tree_reduce.hpp"

namespace tessera::runtime {
namespace {

/// What a model is called with, and which ranges it tells of.
struct Told {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  std::vector<float> gradients, as_told;  ///< at the end; when each range was told
  std::thread::id thread;
};

std::vector<float> random_floats(std::int64_t count, std::uint64_t stream) {
  Random random(1, stream, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

struct Context {
  Told* told;
  const float* gradients;
};

void note(void* context, std::int64_t from, std::int64_t to) {
  const auto& [told, gradients] = *static_cast<Context*>(context);
  told->ranges.emplace_back(from, to);
  told->thread = std::this_thread::get_id();
  std::copy(gradients + from, gradients + to, told->as_told.begin() + from);
}

/// A model's own sizes and functions; `Wanted` is what its loss compares outputs with.
template <class Wanted>
struct Emitted {
  std::int64_t image_floats, floats, packed_floats;
  int (*init)(float*, std::uint64_t);
  int (*pack)(const float*, float*);
  int (*gradients)(const float*, const float*, const float*, const Wanted*, std::int64_t batch, std::int64_t at_once,
                   std::uint64_t, std::int64_t, float*, float*, float*, void*, tessera_range_ready, void*);
};

/// Of a batch of 20 images.
template <class Wanted>
Told told_by(const Emitted<Wanted>& model, const std::vector<Wanted>& wanted, std::int64_t scratch_bytes,
             std::int64_t at_once, bool tells) {
  const std::vector<float> images = random_floats(20 * model.image_floats, 1);
  std::vector<float> outputs(200);
  float loss = 0;
  const Arena parameters = Arena::of_floats(model.floats, 64), gradients = Arena::of_floats(model.floats, 64),
              packed = Arena::of_floats(model.packed_floats, 64);
  const Arena scratch(scratch_bytes, 64);
  EXPECT_EQ(model.init(parameters.floats(), 1), 0);
  EXPECT_EQ(model.pack(parameters.floats(), packed.floats()), 0);
  Told told;
  told.as_told.assign(static_cast<std::size_t>(model.floats), -7);
  Context context{&told, gradients.floats()};
  EXPECT_EQ(
      model.gradients(parameters.floats(), packed.floats(), images.data(), wanted.data(), 20, at_once, 1, 1,
                      outputs.data(), &loss, gradients.floats(), scratch.data(), tells ? note : nullptr, &context),
      0);
  told.gradients.assign(gradients.floats(), gradients.floats() + model.floats);
  return told;
}

Told mnist(std::int64_t at_once, bool tells = true) {
  const Emitted<std::int32_t> model{RANKS_MNIST_IMAGE_FLOATS,  RANKS_MNIST_PARAMETER_FLOATS,
                                    RANKS_MNIST_PACKED_FLOATS, ranks_mnist_init,
                                    ranks_mnist_pack,          ranks_mnist_loss_and_gradients_by_range};
  return told_by(model, std::vector<std::int32_t>(20, 3), RANKS_MNIST_TRAIN_SCRATCH_BYTES(at_once), at_once, tells);
}

Told probe(std::int64_t at_once, bool tells = true) {
  const Emitted<float> model{RANKS_PROBE_IMAGE_FLOATS,  RANKS_PROBE_PARAMETER_FLOATS,
                             RANKS_PROBE_PACKED_FLOATS, ranks_probe_init,
                             ranks_probe_pack,          ranks_probe_loss_and_gradients_by_range};
  return told_by(model, std::vector<float>(200, 0.1f), RANKS_PROBE_TRAIN_SCRATCH_BYTES(at_once), at_once, tells);
}

void expect_told(const Told& told, const Told& other, std::size_t least) {
  ASSERT_GE(told.ranges.size(), least);
  EXPECT_EQ(told.thread, std::this_thread::get_id());
  EXPECT_EQ(told.ranges, other.ranges) << "the ranges depend on how many images are worked on at once";
  auto sorted = told.ranges;
  std::sort(sorted.begin(), sorted.end());
  std::int64_t end = 0;
  for (const auto& [from, to] : sorted) {
    EXPECT_EQ(from, end) << "a gap, or an overlap";
    EXPECT_LT(from, to);
    end = to;
  }
  EXPECT_EQ(end, static_cast<std::int64_t>(told.gradients.size()));
  EXPECT_TRUE(told.as_told == told.gradients) << "a gradient was changed after it was told of";
  EXPECT_TRUE(other.as_told == told.gradients) << "other bits";
}

TEST(Ranges, AreDisjointCoverTheArenaAndAreFinalWhenTold) {
  // The head, the last block, a call for each of the others, what lies before them.
  expect_told(mnist(20), mnist(7), 6);
  expect_told(probe(20), probe(2), 2);
  // From the end of the model on: no block is told of after one before it.
  const Told told = mnist(20);
  EXPECT_EQ(told.ranges.front().first, 0);
}

TEST(Ranges, NobodyHasToListen) {
  const Told silent = mnist(20, false);
  EXPECT_TRUE(silent.ranges.empty());
  EXPECT_TRUE(silent.gradients == mnist(20).gradients);
}

/// An engine that notes what is begun.
struct Sent {
  const void* from;
  std::int64_t bytes;
};
std::vector<Sent> sent;
int received = 0;
const Ranks noting{.open =
                       [](int& rank, int& count) {
                         rank = 0;
                         count = 2;
                       },
                   .close = [] {},
                   .send = [](const void* from, std::int64_t bytes, int) { sent.push_back({from, bytes}); },
                   .receive =
                       [](void* to, std::int64_t bytes, int) {
                         std::memset(to, 0, static_cast<std::size_t>(bytes));
                         ++received;
                       },
                   .pending = [] { return -1; },
                   .tell = [](const Notice&, int) {},
                   .hear = [](Notice&, int&) { return false; }};

TEST(Ranges, AreOnTheirWayBeforeTheRestIsKnown) {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) ::unsetenv(name);
  ::setenv("PMI_SIZE", "2", 1);
  Model model;
  model.ranks = &noting;
  Communicator ranks;
  ranks.open(model);
  ::unsetenv("PMI_SIZE");
  constexpr std::int64_t floats = 1 << 17;
  TreeReduce reduce(ranks, floats, 64);
  std::vector<Arena> sums;
  sums.push_back(Arena::of_floats(floats, 64));
  std::iota(sums[0].floats(), sums[0].floats() + floats, 0.0f);
  std::vector<float> mean(static_cast<std::size_t>(floats), -1);

  reduce.begin({{0, 0, 0}}, sums, 2);
  EXPECT_TRUE(sent.empty());
  reduce.ready(0, 1 << 16);  // all of it is this rank's own: nothing to send, and the other's to receive
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(received, 1);
  reduce.ready(1 << 16, (1 << 16) + 100);  // too short for a message
  EXPECT_TRUE(sent.empty());
  reduce.ready((1 << 16) + 100, floats - 16);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].from, sums[0].floats() + (1 << 16));
  EXPECT_EQ(sent[0].bytes, 4 * ((1 << 16) - 16));
  reduce.ready(floats - 16, floats);
  reduce.end_ranges();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].bytes, 4 * 16);
  reduce.finish(0.5f, mean.data());
  EXPECT_EQ(reduce.sent(), bytes_of_step(floats, 2, 0, 2) - 4 * reduce.slice().size());  // its slice goes out later
  for (std::int64_t i = 0; i < reduce.slice().size(); ++i)
    ASSERT_EQ(mean[static_cast<std::size_t>(i)], 0.5f * static_cast<float>(i));
  ranks.close();
}

}  // namespace
}  // namespace tessera::runtime
