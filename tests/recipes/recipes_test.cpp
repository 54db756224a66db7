// Twelve batches of training under every recipe, against PyTorch's optimisers and schedulers.
#include "tests/recipes/recipes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "probes.h"
#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

constexpr std::int64_t batches = 12, images_in_batch = 5, pixels = 6, classes = 3, batches_per_epoch = 3;
constexpr std::int64_t arena_floats = 112;  // of the probe's parameters, each from a multiple of 16 on

/// The emitted functions of one probe.
struct Probed {
  std::string name;
  Recipe recipe;
  std::span<const tessera_parameter> parameters;
  int (*update)(float*, float*, const float*, float*, std::int64_t, float);
  float (*learning_rate)(double, std::int64_t, std::int64_t, std::int64_t);
  int (*of_labels)(const float*, const float*, const float*, const std::int32_t*, std::int64_t, std::int64_t,
                   std::uint64_t, std::int64_t, float*, float*, float*, void*) = nullptr;
  int (*of_targets)(const float*, const float*, const float*, const float*, std::int64_t, std::int64_t, std::uint64_t,
                    std::int64_t, float*, float*, float*, void*) = nullptr;

  void set(decltype(of_labels) f) { of_labels = f; }
  void set(decltype(of_targets) f) { of_targets = f; }
};

void PrintTo(const Probed& probed, std::ostream* out) { *out << probed.name; }

std::vector<Probed> probes() {
  std::vector<Probed> all;
#define TESSERA_PROBE(name)                                                                                    \
  all.push_back(                                                                                               \
      {#name, recipes::name, probe_##name##_parameters, probe_##name##_update, probe_##name##_learning_rate}); \
  all.back().set(probe_##name##_loss_and_gradients);
  TESSERA_RECIPES(TESSERA_PROBE)
#undef TESSERA_PROBE
  return all;
}

const runtime::Safetensors& golden() {
  static const runtime::Safetensors file =
      runtime::read_safetensors(std::string(paths::golden) + "/recipes/recipes.safetensors");
  return file;
}

std::int64_t size_of(const tessera_parameter& row) {
  std::int64_t size = 1;
  for (std::int32_t d = 0; d < row.rank; ++d) size *= row.shape[d];
  return size;
}

/// Aligned floats.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : memory_(static_cast<float*>(::operator new(4 * static_cast<std::size_t>(count), std::align_val_t(64)))) {
    std::fill_n(memory_.get(), count, 0.0f);
  }
  float* get() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<float, Free> memory_;
};

class Recipes : public testing::TestWithParam<Probed> {
 protected:
  const Probed& probe() const { return GetParam(); }

  std::vector<float> numbers(const std::string& name) const { return golden().at(probe().name + "." + name).floats(); }

  /// One batch's gradients; answers its loss.
  float gradients_of(std::int64_t batch) {
    static const std::vector<float> images = golden().at("images").floats();
    static const std::vector<std::int64_t> labels = golden().at("labels").integers();
    const float* const x = images.data() + batch * images_in_batch * pixels;
    const std::int64_t* const y = labels.data() + batch * images_in_batch;
    float loss = 0, outputs[images_in_batch * classes];
    if (probe().of_labels) {
      const std::vector<std::int32_t> narrow(y, y + images_in_batch);
      EXPECT_EQ(probe().of_labels(parameters.get(), nullptr, x, narrow.data(), images_in_batch, 1, 1, 1, outputs, &loss,
                                  gradients.get(), scratch.get()),
                0);
      return loss;
    }
    const auto even = static_cast<float>(probe().recipe.labels.smoothing / classes);
    std::vector<float> targets(images_in_batch * classes, even);
    for (std::int64_t i = 0; i < images_in_batch; ++i)
      targets[static_cast<std::size_t>(i * classes + y[i])] += 1 - static_cast<float>(classes) * even;
    EXPECT_EQ(probe().of_targets(parameters.get(), nullptr, x, targets.data(), images_in_batch, 1, 1, 1, outputs, &loss,
                                 gradients.get(), scratch.get()),
              0);
    return loss;
  }

  void expect_parameters(const std::string& prefix, const float* arena) const {
    for (const tessera_parameter& row : probe().parameters) {
      const std::vector<float> theirs = numbers(prefix + row.name);
      ASSERT_EQ(static_cast<std::int64_t>(theirs.size()), size_of(row));
      for (std::size_t i = 0; i < theirs.size(); ++i)
        EXPECT_NEAR(arena[row.offset + static_cast<std::int64_t>(i)], theirs[i], 2e-5)
            << prefix << row.name << " " << i;
    }
  }

  Floats parameters{arena_floats}, gradients{arena_floats}, sum{arena_floats}, state{3 * arena_floats},
      scratch{1 << 16};
};

TEST_P(Recipes, TrainAsPyTorchDoes) {
  for (const tessera_parameter& row : probe().parameters) {
    const std::vector<float> start = golden().at(std::string("params.") + row.name).floats();
    ASSERT_LE(row.offset + static_cast<std::int64_t>(start.size()), arena_floats);
    std::copy(start.begin(), start.end(), parameters.get() + row.offset);
  }
  const std::vector<float> losses = numbers("losses"), rates = numbers("rates");
  const std::int64_t parts = probe().recipe.accumulate;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    EXPECT_NEAR(gradients_of(batch), losses[static_cast<std::size_t>(batch)], 2e-5) << "batch " << batch;
    for (std::int64_t i = 0; i < arena_floats; ++i)
      sum.get()[i] = (batch % parts ? sum.get()[i] : 0) + gradients.get()[i] / static_cast<float>(parts);
    if ((batch + 1) % parts) continue;
    const std::int64_t step = (batch + 1) / parts;
    const float rate =
        probe().learning_rate(probe().recipe.optimizer.learning_rate, step, batches_per_epoch, batches / parts);
    EXPECT_NEAR(rate, rates[static_cast<std::size_t>(step - 1)], 1e-6) << "step " << step;
    ASSERT_EQ(probe().update(parameters.get(), nullptr, sum.get(), state.get(), step, rate), 0);
  }
  expect_parameters("", parameters.get());
  // The average stands behind Adam's two moments.
  if (probe().recipe.average > 0) expect_parameters("average.", state.get() + 2 * arena_floats);
}

INSTANTIATE_TEST_SUITE_P(Probe, Recipes, testing::ValuesIn(probes()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tessera::test
