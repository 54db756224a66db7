// Products of int8: what they are to be is computed here, number by number; a ViT comes near single precision; training
// is that of single precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "block_vit.h"
#include "block_vit_int8.h"
#include "keys_vit.h"
#include "keys_vit_int8.h"
#include "runtime/philox.hpp"
#include "small_layers.h"
#include "small_layers_int8.h"
#include "small_vit_int8.h"
#include "tests/models/instruction_sets.hpp"
#include "tests/models/precision_run.hpp"

namespace tessera::test {
namespace {

const EmittedModel small_layers = TESSERA_EMITTED_MODEL(small_layers, SMALL_LAYERS, "", 0),
                   small_layers_int8 = TESSERA_EMITTED_MODEL(small_layers_int8, SMALL_LAYERS_INT8, "", 0),
                   small_vit = TESSERA_EMITTED_MODEL(small_vit, SMALL_VIT, "", 0),
                   small_vit_int8 = TESSERA_EMITTED_MODEL(small_vit_int8, SMALL_VIT_INT8, "", 0),
                   block_vit = TESSERA_EMITTED_MODEL(block_vit, BLOCK_VIT, "", 0),
                   block_vit_int8 = TESSERA_EMITTED_MODEL(block_vit_int8, BLOCK_VIT_INT8, "", 0),
                   keys_vit = TESSERA_EMITTED_MODEL(keys_vit, KEYS_VIT, "", 0),
                   keys_vit_int8 = TESSERA_EMITTED_MODEL(keys_vit_int8, KEYS_VIT_INT8, "", 0);

constexpr int tokens = 37, width = 42, classes = 45, pixels = tokens * width;

class Int8 : public OnIsa {
  std::string isa() const override { return small_layers_int8.isa(); }
};

Floats parameters_of(const EmittedModel& m, const auto& number) {
  Floats parameters(static_cast<std::size_t>(m.parameter_floats));
  for (const tessera_parameter& row : m.parameters)
    for (std::int64_t i = 0; i < row.shape[0] * (row.rank > 1 ? row.shape[1] : 1); ++i)
      parameters[static_cast<std::size_t>(row.offset + i)] = number(row.rank > 1, i);
  return parameters;
}
const float* named(const Floats& parameters, const std::string& name) {
  for (const tessera_parameter& row : small_layers.parameters)
    if (row.name == name) return parameters.data() + row.offset;
  throw std::out_of_range(name);
}

Floats forward(const EmittedModel& m, const Floats& parameters, const Floats& images) {
  const auto batch = static_cast<std::int64_t>(images.size()) / pixels;
  const runtime::Arena packed = runtime::Arena::of_floats(m.packed_forward_floats, 64);
  std::fill_n(packed.floats(), m.packed_forward_floats, NAN);
  EXPECT_EQ(m.pack_forward(parameters.data(), packed.floats()), 0);
  Floats outputs(static_cast<std::size_t>(batch * m.output_floats), NAN);
  EXPECT_EQ(m.forward(parameters.data(), packed.floats(), images.data(), batch, outputs.data(),
                      scratch(m.forward_bytes(batch)).data()),
            0);
  return outputs;
}

/// As integers, what they are to be multiplied by, and what has been taken off before.
struct Scaled {
  std::vector<int> numbers;
  float scale = 0, middle = 0;
  Scaled(const float* from, int count, bool row) {
    const auto [least, most] = std::minmax_element(from, from + count);
    middle = row ? (*most + *least) * 0.5f : 0;
    scale = row ? (*most - *least) / 254 : std::max(-*least, *most) / 127;
    for (int i = 0; i < count; ++i)
      numbers.push_back(scale > 0 ? static_cast<int>(std::nearbyint((from[i] - middle) / scale)) : 0);
  }
};
/// What a row of x comes to with a column of w.
double product(const float* x, const float* w, int count) {
  const Scaled row(x, count, true), column(w, count, false);
  double sum = 0;
  for (std::size_t i = 0; i < row.numbers.size(); ++i)
    sum += (static_cast<double>(row.numbers[i]) * row.scale + row.middle) * column.numbers[i] * column.scale;
  return sum;
}

TEST_P(Int8, ProductsAreOfWholeNumbersTimesTheScalesOfRowAndColumn) {
  runtime::Random random(11, 0, 0);
  // Rows and columns of many sizes; a row and a column of zeros.
  const Floats parameters = parameters_of(small_layers, [&](bool weight, std::int64_t i) {
    const std::int64_t column = i / width;
    return weight && column == 7 ? 0.0f : static_cast<float>(random.uniform(-1, 1) * std::exp2(double(i % 11) - 5));
  });
  Floats images(3 * pixels);
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] =
        i / width == 5 ? 0.0f : static_cast<float>(random.uniform(-1, 1) * std::exp2(double(i / width % 20) - 9));
  const Floats found = forward(small_layers_int8, parameters, images);
  for (int image = 0; image < 3; ++image)
    for (int c = 0; c < classes; ++c) {
      const float* const x = &images[static_cast<std::size_t>(image * pixels)];
      double expected =
          named(parameters, "alone.bias")[c] + product(x, named(parameters, "alone.weight") + c * pixels, pixels);
      double size = std::abs(expected);
      for (int n = 0; n < tokens; ++n) {
        const double row = named(parameters, "rows.bias")[c] +
                           product(x + n * width, named(parameters, "rows.weight") + c * width, width);
        expected += row;
        size += std::abs(row);
      }
      // A number that lies half way between two whole ones may be taken for either: a rounding earlier decides.
      EXPECT_NEAR(found[static_cast<std::size_t>(image * classes + c)], expected, 2e-5 * size) << image << " " << c;
    }
}

TEST_P(Int8, WholeNumbersGiveTheBitsOfSinglePrecision) {
  runtime::Random random(13, 0, 0);
  // Each row and column goes from -127 to 127, so that every scale is one and every middle zero.
  const auto number = [&](std::int64_t i, std::int64_t of_row) {
    if (i % of_row == 3) return 127.0f;
    return i % of_row == 8 ? -127.0f : std::floor(static_cast<float>(random.uniform(-9, 10)));
  };
  const Floats parameters =
      parameters_of(small_layers, [&](bool weight, std::int64_t i) { return weight ? number(i, width) : 1.0f; });
  for (const int batch : {1, 2, 5}) {
    Floats images(static_cast<std::size_t>(batch * pixels));
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = number(static_cast<std::int64_t>(i), width);
    choose("scalar");
    const Floats expected = forward(small_layers, parameters, images);
    choose(GetParam());
    for (const int threads : {1, 3}) {
      omp_set_num_threads(threads);
      EXPECT_TRUE(equal(forward(small_layers_int8, parameters, images), expected));
    }
  }
}

TEST_P(Int8, WhatIsNoNumberSpoilsItsImageAlone) {
  runtime::Random random(17, 0, 0);
  const auto any = [&] { return static_cast<float>(random.uniform(-1, 1)); };
  const Floats parameters = parameters_of(small_layers, [&](bool, std::int64_t) { return any(); });
  Floats images(3 * pixels);
  std::generate(images.begin(), images.end(), any);
  const Floats sound = forward(small_layers_int8, parameters, images);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    images[pixels + 40] = bad;
    const Floats found = forward(small_layers_int8, parameters, images);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i / classes == 1)
        EXPECT_FALSE(std::isfinite(found[i])) << i;
      else
        EXPECT_EQ(found[i], sound[i]) << i;
    }
  }
}

TEST_P(Int8, WhatIsNoNumberInAWeightSpoilsItsColumnAlone) {
  const Floats images(pixels, 0.5f);
  for (const float bad : {NAN, INFINITY}) {
    const Floats parameters = parameters_of(
        small_layers, [&](bool weight, std::int64_t i) { return weight && i == 41 * width + 2 ? bad : 0.25f; });
    const Floats found = forward(small_layers_int8, parameters, images);
    for (int c = 0; c < classes; ++c)
      // Element 41 * 42 + 2 is of column 41 of the one weight, and of column 1 of the other.
      EXPECT_EQ(std::isfinite(found[static_cast<std::size_t>(c)]), c != 41 && c != 1) << c;
  }
}

TEST_P(Int8, VitIsNearSinglePrecisionAndTrainsInIt) {
  const VitRun vit;
  const Results found = run(small_vit_int8, vit.parameters, vit.batch);
  choose("scalar");
  const Results expected = run(small_vit, vit.parameters, vit.batch);
  EXPECT_LE(distance(found.outputs, expected.outputs), 0.03);
  EXPECT_GT(distance(found.outputs, expected.outputs), 1e-3) << "nothing was rounded";
  EXPECT_LE(distance(found.gradients, expected.gradients), 1e-5);
  EXPECT_LE(distance(found.image_gradients, expected.image_gradients), 1e-5);
}

TEST_P(Int8, AttentionByBlocksIsAsNear) {
  const VitRun vit(block_vit_init, BLOCK_VIT_PARAMETER_FLOATS, BLOCK_VIT_IMAGE_FLOATS);
  const Results found = run(block_vit_int8, vit.parameters, vit.batch);
  choose("scalar");
  EXPECT_LE(distance(found.outputs, run(block_vit, vit.parameters, vit.batch).outputs), 0.03);
}

TEST_P(Int8, AttentionByBlocksOfKeysIsAsNearOnAnyNumberOfThreads) {
  VitRun vit(keys_vit_init, KEYS_VIT_PARAMETER_FLOATS, KEYS_VIT_IMAGE_FLOATS);
  vit.batch.size = 1;
  const Floats found = outputs_of(keys_vit_int8, vit.parameters, vit.batch);
  omp_set_num_threads(3);
  EXPECT_TRUE(equal(outputs_of(keys_vit_int8, vit.parameters, vit.batch), found));
  choose("scalar");
  EXPECT_LE(distance(found, outputs_of(keys_vit, vit.parameters, vit.batch)), 0.03);
}

TEST_P(Int8, BitsAreThoseOfOneThread) {
  const VitRun vit, blocks(block_vit_init, BLOCK_VIT_PARAMETER_FLOATS, BLOCK_VIT_IMAGE_FLOATS);
  const Results alone = run(small_vit_int8, vit.parameters, vit.batch),
                alone_by_blocks = run(block_vit_int8, blocks.parameters, blocks.batch);
  for (const int threads : {2, 7}) {
    omp_set_num_threads(threads);
    EXPECT_TRUE(equal(run(small_vit_int8, vit.parameters, vit.batch).outputs, alone.outputs));
    EXPECT_TRUE(equal(run(block_vit_int8, blocks.parameters, blocks.batch).outputs, alone_by_blocks.outputs));
  }
}

TEST(Int8, WhoOnlyInfersPacksLessThanHalf) {
  EXPECT_LT(small_vit_int8.packed_forward_floats,
            0.5 * SMALL_VIT_PARAMETER_FLOATS);  // a quarter, but for what fills up narrow rows
  EXPECT_GT(small_vit_int8.packed_floats, small_vit_int8.packed_forward_floats + SMALL_VIT_PACKED_FLOATS / 2);
}

INSTANTIATE_TEST_SUITE_P(Isas, Int8, testing::ValuesIn(isas(instruction_sets_of(codegen::Precision::int8))),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
