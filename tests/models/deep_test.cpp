// Products whose depth goes by in blocks: outputs and gradients are those that are computed here, number by number.
#include "deep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "deep_in_odd_tiles.h"
#include "runtime/philox.hpp"
#include "tests/models/instruction_sets.hpp"
#include "tests/models/precision_run.hpp"

namespace tessera::test {
namespace {

const EmittedModel deep = TESSERA_EMITTED_MODEL(deep, DEEP, "", 0),
                   in_odd_tiles = TESSERA_EMITTED_MODEL(deep_in_odd_tiles, DEEP_IN_ODD_TILES, "", 0);

constexpr std::size_t tokens = 101, width = 24, middle = 6144, narrow = 45, classes = 18;

using Doubles = std::vector<double>;

/// a [rows, depth] times b [depth, columns].
Doubles product(const Doubles& a, const Doubles& b, std::size_t rows, std::size_t depth, std::size_t columns) {
  Doubles c(rows * columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < depth; ++k) {
      // By pointers: where it is not optimised each vector's operator[] is a call, of which there are millions.
      const double factor = a[r * depth + k], *const row = b.data() + k * columns;
      double* const sums = c.data() + r * columns;
      for (std::size_t j = 0; j < columns; ++j) sums[j] += factor * row[j];
    }
  return c;
}
Doubles transposed(const Doubles& a, std::size_t rows, std::size_t columns) {
  Doubles t(a.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) t[c * rows + r] = a[r * columns + c];
  return t;
}
double phi(double z) { return 0.5 * (1 + std::erf(z / std::sqrt(2.0))); }

class Deeper : public OnIsa {
 protected:
  std::string isa() const override { return deep.isa(); }
  Doubles named(const std::string& name, const Floats& from) const {
    for (const tessera_parameter& row : deep.parameters)
      if (row.name == name) {
        const float* first = from.data() + row.offset;
        return {first, first + row.shape[0] * (row.rank > 1 ? row.shape[1] : 1)};
      }
    throw std::out_of_range(name);
  }
};

TEST_P(Deeper, OutputsAndGradientsAreTheSumsOverTheWholeDepth) {
  runtime::Random random(13, 0, 0);
  Floats parameters(static_cast<std::size_t>(deep.parameter_floats));
  for (float& p : parameters) p = static_cast<float>(random.uniform(-0.1, 0.1));
  Batch batch{2, Floats(2 * tokens * width), {7, 15}};
  for (float& x : batch.images) x = static_cast<float>(random.uniform(-1, 1));

  const Doubles up = named("up.weight", parameters), up_bias = named("up.bias", parameters),
                down = named("down.weight", parameters), down_bias = named("down.bias", parameters),
                head = named("head.weight", parameters), head_bias = named("head.bias", parameters);
  Doubles outputs, of_images, of_up(up.size()), of_down(down.size());
  for (std::size_t image = 0; image < 2; ++image) {
    const float* first = batch.images.data() + image * tokens * width;
    const Doubles x(first, first + tokens * width);
    Doubles h = product(x, transposed(up, middle, width), tokens, width, middle);
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += up_bias[i % middle];
    Doubles z = product(h, transposed(down, narrow, middle), tokens, middle, narrow), g(z.size()), y(classes);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] += down_bias[i % narrow];
    for (std::size_t i = 0; i < z.size(); ++i) g[i] = z[i] * phi(z[i]);
    const Doubles of_tokens = product(g, transposed(head, classes, narrow), tokens, narrow, classes);
    for (std::size_t i = 0; i < of_tokens.size(); ++i) y[i % classes] += of_tokens[i] / tokens;
    for (std::size_t c = 0; c < classes; ++c) y[c] += head_bias[c];
    outputs.insert(outputs.end(), y.begin(), y.end());
    double sum = 0;
    for (double v : y) sum += std::exp(v);
    Doubles d_y(tokens * classes);
    for (std::size_t i = 0; i < d_y.size(); ++i) {
      const std::size_t c = i % classes;
      d_y[i] = (std::exp(y[c]) / sum - (static_cast<int>(c) == batch.labels[image])) / 2 / tokens;
    }
    Doubles d_z = product(d_y, head, tokens, classes, narrow);
    for (std::size_t i = 0; i < z.size(); ++i)
      d_z[i] *= phi(z[i]) + z[i] * std::exp(-0.5 * z[i] * z[i]) / std::sqrt(2 * M_PI);
    const Doubles d_h = product(d_z, down, tokens, narrow, middle), d_x = product(d_h, up, tokens, middle, width);
    of_images.insert(of_images.end(), d_x.begin(), d_x.end());
    const Doubles d_down = product(transposed(d_z, tokens, narrow), h, narrow, tokens, middle),
                  d_up = product(transposed(d_h, tokens, middle), x, middle, tokens, width);
    for (std::size_t i = 0; i < d_down.size(); ++i) of_down[i] += d_down[i];
    for (std::size_t i = 0; i < d_up.size(); ++i) of_up[i] += d_up[i];
  }

  const auto floats = [](const Doubles& d) { return Floats(d.begin(), d.end()); };
  for (const EmittedModel& model : {deep, in_odd_tiles}) {
    omp_set_num_threads(1);
    const Results alone = run(model, parameters, batch);
    EXPECT_LE(distance(alone.outputs, floats(outputs)), 2e-6);
    EXPECT_LE(distance(alone.image_gradients, floats(of_images)), 2e-6);
    EXPECT_LE(distance(floats(named("up.weight", alone.gradients)), floats(of_up)), 2e-6);
    EXPECT_LE(distance(floats(named("down.weight", alone.gradients)), floats(of_down)), 2e-6);
    for (const int threads : {2, 3, 7}) {  // more than images: they share an image's rows
      omp_set_num_threads(threads);
      const Results together = run(model, parameters, batch);
      EXPECT_TRUE(equal(together.outputs, alone.outputs));
      EXPECT_TRUE(equal(together.gradients, alone.gradients));
      EXPECT_TRUE(equal(together.image_gradients, alone.image_gradients));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Deeper, testing::ValuesIn(isas(instruction_sets)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
