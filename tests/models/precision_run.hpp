// Running an emitted model in one precision, to hold it against another.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/philox.hpp"
#include "small_vit.h"
#include "tests/models/emitted_model.hpp"

namespace tessera::test {

using Floats = std::vector<float>;

/// Scratch memory that starts as not-a-number.
inline runtime::Arena scratch(std::int64_t bytes) {
  runtime::Arena arena(bytes, 64);
  std::fill_n(arena.floats(), bytes / 4, NAN);
  return arena;
}

struct Batch {
  std::int64_t size;
  Floats images;
  std::vector<std::int32_t> labels;
};
/// What the entry points write.
struct Results {
  Floats outputs, gradients, image_gradients;
  float loss = NAN;
};

inline Results run(const EmittedModel& m, const Floats& parameters, const Batch& batch) {
  const auto floats = [](std::int64_t n) { return Floats(static_cast<std::size_t>(n), NAN); };
  const runtime::Arena packed = runtime::Arena::of_floats(m.packed_floats, 64);
  std::fill_n(packed.floats(), m.packed_floats, NAN);
  EXPECT_EQ(m.pack(parameters.data(), packed.floats()), 0);
  const float *p = parameters.data(), *w = packed.floats(), *x = batch.images.data();
  Results r{floats(batch.size * m.output_floats), floats(m.parameter_floats),
            floats(static_cast<std::int64_t>(batch.images.size()))};
  Floats outputs = r.outputs;
  EXPECT_EQ(m.loss_and_gradients(p, w, x, batch.labels.data(), batch.size, batch.size, 1, 2, outputs.data(), &r.loss,
                                 r.gradients.data(), scratch(m.train_bytes(batch.size)).data()),
            0);
  // With as few images at once as may be the same bits.
  Floats again = floats(m.parameter_floats);
  const std::int64_t few = (batch.size + 15) / 16;
  EXPECT_EQ(m.loss_and_gradients(p, w, x, batch.labels.data(), batch.size, few, 1, 2, outputs.data(), &r.loss,
                                 again.data(), scratch(m.train_bytes(few)).data()),
            0);
  EXPECT_EQ(std::memcmp(again.data(), r.gradients.data(), sizeof(float) * again.size()), 0);
  EXPECT_EQ(m.input_gradient(p, w, x, batch.labels.data(), batch.size, outputs.data(), &r.loss,
                             r.image_gradients.data(), scratch(m.input_gradient_bytes(batch.size)).data()),
            0);
  EXPECT_EQ(m.forward(p, w, x, batch.size, r.outputs.data(), scratch(m.forward_bytes(batch.size)).data()), 0);
  return r;
}

/// What a forward pass gives alone.
inline Floats outputs_of(const EmittedModel& m, const Floats& parameters, const Batch& batch) {
  const runtime::Arena packed = runtime::Arena::of_floats(m.packed_floats, 64);
  Floats outputs(static_cast<std::size_t>(batch.size * m.output_floats), NAN);
  EXPECT_EQ(m.pack(parameters.data(), packed.floats()), 0);
  EXPECT_EQ(m.forward(parameters.data(), packed.floats(), batch.images.data(), batch.size, outputs.data(),
                      scratch(m.forward_bytes(batch.size)).data()),
            0);
  return outputs;
}

inline bool equal(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// |difference| / |expected|, over all.
inline double distance(const Floats& found, const Floats& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double(found[i]) - expected[i], 2);
    size += std::pow(double(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

/// A ViT's starting values, those of small_vit or of another model, and five images.
struct VitRun {
  Floats parameters;
  Batch batch;
  VitRun() : VitRun(small_vit_init, SMALL_VIT_PARAMETER_FLOATS, SMALL_VIT_IMAGE_FLOATS) {}
  VitRun(int (*init)(float*, std::uint64_t), std::int64_t parameter_floats, std::int64_t image_floats)
      : parameters(static_cast<std::size_t>(parameter_floats)),
        batch{5, Floats(static_cast<std::size_t>(5 * image_floats)), {3, 1, 4, 1, 5}} {
    EXPECT_EQ(init(parameters.data(), 3), 0);
    runtime::Random random(5, 0, 0);
    for (float& pixel : batch.images) pixel = static_cast<float>(random.uniform(-1, 1));
  }
};

/// A parameter with an instruction set, `asked_for`; `isa` is the one that a model takes when it is asked for.
template <class Parameter>
class OnIsaOf : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    choose(asked_for());
    if (isa() != asked_for()) GTEST_SKIP() << "this processor cannot run " << asked_for();
  }
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    omp_set_num_threads(1);
  }
  virtual std::string asked_for() const = 0;
  virtual std::string isa() const = 0;
  static void choose(const std::string& isa) { setenv("TESSERA_ISA", isa.c_str(), 1); }
};
/// The parameter is an instruction set.
class OnIsa : public OnIsaOf<std::string> {
  std::string asked_for() const override { return GetParam(); }
};

/// Those of these instruction sets that tests of precision run on: under an emulator of Arm, NEON alone.
inline std::vector<std::string> isas([[maybe_unused]] std::vector<std::string> on_x86) {
#if defined(__aarch64__)
  return {"neon"};
#else
  return on_x86;
#endif
}

}  // namespace tessera::test
