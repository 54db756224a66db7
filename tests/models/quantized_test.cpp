// Products of int8 and of int4: what they are to be is computed here, number by number; a ViT comes near single
// precision; training is that of single precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "block_vit.h"
#include "block_vit_int8.h"
#include "keys_vit.h"
#include "keys_vit_int8.h"
#include "runtime/philox.hpp"
#include "small_layers.h"
#include "small_layers_int4.h"
#include "small_layers_int8.h"
#include "small_vit_int4.h"
#include "small_vit_int8.h"
#include "tests/models/instruction_sets.hpp"
#include "tests/models/precision_run.hpp"

namespace tessera::test {
namespace {

const EmittedModel small_layers = TESSERA_EMITTED_MODEL(small_layers, SMALL_LAYERS, "", 0),
                   small_vit = TESSERA_EMITTED_MODEL(small_vit, SMALL_VIT, "", 0),
                   block_vit = TESSERA_EMITTED_MODEL(block_vit, BLOCK_VIT, "", 0),
                   block_vit_int8 = TESSERA_EMITTED_MODEL(block_vit_int8, BLOCK_VIT_INT8, "", 0),
                   keys_vit = TESSERA_EMITTED_MODEL(keys_vit, KEYS_VIT, "", 0),
                   keys_vit_int8 = TESSERA_EMITTED_MODEL(keys_vit_int8, KEYS_VIT_INT8, "", 0);

constexpr int tokens = 37, width = 42, classes = 45, pixels = tokens * width;

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

/// Numbers as integers times a scale, less what has been taken off them before.
struct Scaled {
  std::vector<int> numbers;
  float scale = 0, middle = 0;
  double at(std::size_t i) const { return static_cast<double>(numbers[i]) * scale + middle; }
};
Scaled scaled(const float* from, int count, float scale, float middle, int least, int most) {
  Scaled s{{}, scale, middle};
  for (int i = 0; i < count; ++i) {
    const float number = scale == 0 ? 0 : std::nearbyint((from[i] - middle) / scale);
    s.numbers.push_back(static_cast<int>(std::clamp(number, static_cast<float>(least), static_cast<float>(most))));
  }
  return s;
}
Scaled row_of_int8(const float* from, int count) {
  const auto [least, most] = std::minmax_element(from, from + count);
  return scaled(from, count, (*most - *least) / 254, (*most + *least) * 0.5f, -127, 127);
}
/// A weight's column as it is packed.
std::vector<double> column_of_int8(const float* from, int count) {
  const auto [least, most] = std::minmax_element(from, from + count);
  const Scaled column = scaled(from, count, std::max(-*least, *most) / 127, 0, -127, 127);
  std::vector<double> weights;
  for (std::size_t i = 0; i < column.numbers.size(); ++i) weights.push_back(column.at(i));
  return weights;
}
float as_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}
std::vector<double> column_of_int4(const float* from, int count) {
  std::vector<double> weights;
  for (int first = 0; first < count; first += 32) {
    const int size = std::min(count - first, 32);
    const auto [least, most] = std::minmax_element(from + first, from + first + size);
    // Of the number farthest from zero -8 is made.
    const float farthest = -*least > std::max(*most, 0.0f) ? *least : std::max(*most, 0.0f);
    const Scaled group = scaled(from + first, size, as_bf16(farthest / -8), 0, -8, 7);
    for (std::size_t i = 0; i < group.numbers.size(); ++i) weights.push_back(group.at(i));
  }
  return weights;
}

/// A precision whose weights are integers times scales, and what its models are held against.
struct Weights {
  const char* name;
  codegen::Precision precision;
  EmittedModel layers, vit;
  std::vector<double> (*column)(const float* from, int count);
  int least, most;  ///< its integers
  double near;      ///< how far from single precision a ViT may be, in parts of its outputs' norm
  double smaller;   ///< its packed parameters beside those of single precision, at most
};
const Weights precisions[] = {
    {"int8", codegen::Precision::int8, TESSERA_EMITTED_MODEL(small_layers_int8, SMALL_LAYERS_INT8, "", 0),
     TESSERA_EMITTED_MODEL(small_vit_int8, SMALL_VIT_INT8, "", 0), column_of_int8, -127, 127, 0.03, 0.5},
    {"int4", codegen::Precision::int4, TESSERA_EMITTED_MODEL(small_layers_int4, SMALL_LAYERS_INT4, "", 0),
     TESSERA_EMITTED_MODEL(small_vit_int4, SMALL_VIT_INT4, "", 0), column_of_int4, -8, 7, 0.12, 0.3}};

struct Run {
  const Weights* weights;
  std::string isa;
};
void PrintTo(const Run& run, std::ostream* out) { *out << run.weights->name << " " << run.isa; }

/// On the instruction sets that a precision is emitted for.
class Quantized : public OnIsaOf<Run> {
  std::string asked_for() const override { return GetParam().isa; }
  std::string isa() const override { return of.layers.isa(); }

 protected:
  const Weights& of = *GetParam().weights;
};
/// What has no parameter is alike in all of them.
class Int8 : public Quantized {};

/// What a row of x comes to with a column of w.
double product(const Weights& weights, const float* x, const float* w, int count) {
  const Scaled row = row_of_int8(x, count);
  const std::vector<double> column = weights.column(w, count);
  double sum = 0;
  for (std::size_t i = 0; i < column.size(); ++i) sum += row.at(i) * column[i];
  return sum;
}

TEST_P(Quantized, ProductsAreOfWholeNumbersTimesTheScalesOfRowAndColumn) {
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
  const Floats found = forward(of.layers, parameters, images);
  for (int image = 0; image < 3; ++image)
    for (int c = 0; c < classes; ++c) {
      const float* const x = &images[static_cast<std::size_t>(image * pixels)];
      double expected =
          named(parameters, "alone.bias")[c] + product(of, x, named(parameters, "alone.weight") + c * pixels, pixels);
      double size = std::abs(expected);
      for (int n = 0; n < tokens; ++n) {
        const double row = named(parameters, "rows.bias")[c] +
                           product(of, x + n * width, named(parameters, "rows.weight") + c * width, width);
        expected += row;
        size += std::abs(row);
      }
      // A number that lies half way between two whole ones may be taken for either: a rounding earlier decides.
      EXPECT_NEAR(found[static_cast<std::size_t>(image * classes + c)], expected, 2e-5 * size) << image << " " << c;
    }
}

TEST_P(Quantized, WholeNumbersGiveTheBitsOfSinglePrecision) {
  runtime::Random random(13, 0, 0);
  // Each row, and each column or group of one, goes from end to end, so that every scale is one and every middle zero.
  const auto number = [&](std::int64_t i, int least, int most) {
    if (i % 4 == 0) return static_cast<float>(i % 8 ? most : least);
    return std::floor(static_cast<float>(random.uniform(least, most + 1)));
  };
  const Floats parameters = parameters_of(
      small_layers, [&](bool weight, std::int64_t i) { return weight ? number(i, of.least, of.most) : 1.0f; });
  for (const int batch : {1, 2, 5}) {
    Floats images(static_cast<std::size_t>(batch * pixels));
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = number(static_cast<std::int64_t>(i), -127, 127);
    choose("scalar");
    const Floats expected = forward(small_layers, parameters, images);
    choose(GetParam().isa);
    for (const int threads : {1, 3}) {
      omp_set_num_threads(threads);
      EXPECT_TRUE(equal(forward(of.layers, parameters, images), expected));
    }
  }
}

TEST_P(Quantized, WhatIsNoNumberSpoilsItsImageAlone) {
  runtime::Random random(17, 0, 0);
  const auto any = [&] { return static_cast<float>(random.uniform(-1, 1)); };
  const Floats parameters = parameters_of(small_layers, [&](bool, std::int64_t) { return any(); });
  Floats images(3 * pixels);
  std::generate(images.begin(), images.end(), any);
  const Floats sound = forward(of.layers, parameters, images);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    images[pixels + 40] = bad;
    const Floats found = forward(of.layers, parameters, images);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i / classes == 1)
        EXPECT_FALSE(std::isfinite(found[i])) << i;
      else
        EXPECT_EQ(found[i], sound[i]) << i;
    }
  }
}

TEST_P(Quantized, WhatIsNoNumberInAWeightSpoilsItsColumnAlone) {
  const Floats images(pixels, 0.5f);
  for (const float bad : {NAN, INFINITY}) {
    const Floats parameters = parameters_of(
        small_layers, [&](bool weight, std::int64_t i) { return weight && i == 41 * width + 2 ? bad : 0.25f; });
    const Floats found = forward(of.layers, parameters, images);
    for (int c = 0; c < classes; ++c)
      // Element 41 * 42 + 2 is of column 41 of the one weight, and of column 1 of the other.
      EXPECT_EQ(std::isfinite(found[static_cast<std::size_t>(c)]), c != 41 && c != 1) << c;
  }
}

TEST_P(Quantized, VitIsNearSinglePrecisionAndTrainsInIt) {
  const VitRun vit;
  const Results found = run(of.vit, vit.parameters, vit.batch);
  choose("scalar");
  const Results expected = run(small_vit, vit.parameters, vit.batch);
  EXPECT_LE(distance(found.outputs, expected.outputs), of.near);
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

TEST_P(Quantized, BitsAreThoseOfOneThread) {
  const VitRun vit;
  const Results alone = run(of.vit, vit.parameters, vit.batch);
  for (const int threads : {2, 7}) {
    omp_set_num_threads(threads);
    EXPECT_TRUE(equal(run(of.vit, vit.parameters, vit.batch).outputs, alone.outputs));
  }
}

TEST_P(Int8, BitsOfAttentionByBlocksAreThoseOfOneThread) {
  const VitRun blocks(block_vit_init, BLOCK_VIT_PARAMETER_FLOATS, BLOCK_VIT_IMAGE_FLOATS);
  const Results alone = run(block_vit_int8, blocks.parameters, blocks.batch);
  for (const int threads : {2, 7}) {
    omp_set_num_threads(threads);
    EXPECT_TRUE(equal(run(block_vit_int8, blocks.parameters, blocks.batch).outputs, alone.outputs));
  }
}

TEST(QuantizedWeights, OfWhoOnlyInfersArePackedInAFewBits) {
  for (const Weights& of : precisions) {  // but for what fills up narrow rows
    EXPECT_LT(of.vit.packed_forward_floats, of.smaller * SMALL_VIT_PARAMETER_FLOATS) << of.name;
    EXPECT_GT(of.vit.packed_floats, of.vit.packed_forward_floats + SMALL_VIT_PACKED_FLOATS / 2) << of.name;
  }
}

std::vector<Run> runs(codegen::Precision precision) {
  std::vector<Run> all;
  for (const Weights& of : precisions)
    if (of.precision == precision)
      for (const std::string& isa : isas(instruction_sets_of(precision))) all.push_back({&of, isa});
  return all;
}
std::string named_run(const testing::TestParamInfo<Run>& info) {
  return std::string(info.param.weights->name) + "_" + info.param.isa;
}
INSTANTIATE_TEST_SUITE_P(Of8Bits, Quantized, testing::ValuesIn(runs(codegen::Precision::int8)), named_run);
INSTANTIATE_TEST_SUITE_P(Of4Bits, Quantized, testing::ValuesIn(runs(codegen::Precision::int4)), named_run);
INSTANTIATE_TEST_SUITE_P(Isas, Int8, testing::ValuesIn(runs(codegen::Precision::int8)), named_run);

}  // namespace
}  // namespace tessera::test
