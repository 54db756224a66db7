#include "tests/runtime/sample_model.h"

#include <algorithm>
#include <cmath>

#include "runtime/philox.hpp"

namespace {

constexpr std::int64_t classes = 10, pixels = 784, weight = 16;  // weight's offset

void scores(const float* parameters, const float* image, float* row) {
  for (std::int64_t j = 0; j < classes; ++j) {
    float sum = parameters[j];
    for (std::int64_t i = 0; i < pixels; ++i) sum += parameters[weight + j * pixels + i] * image[i];
    row[j] = sum;
  }
}

/// Cross entropy of one row, whose probabilities go to `probability`.
float cross_entropy(const float* row, std::int32_t label, float* probability) {
  const float most = *std::max_element(row, row + classes);
  float sum = 0;
  for (std::int64_t j = 0; j < classes; ++j) sum += probability[j] = std::exp(row[j] - most);
  for (std::int64_t j = 0; j < classes; ++j) probability[j] /= sum;
  return most + std::log(sum) - row[label];
}

}  // namespace

extern "C" {

const tessera_parameter sample_parameters[SAMPLE_PARAMETERS] = {
    {"head.bias", 1, 0, {10}, 0, "[CLASSES=10]"},
    {"head.weight", 2, 1, {10, 784}, 16, "[CLASSES=10, IH*IW=784]"},
};

const char* const sample_layers[SAMPLE_LAYERS] = {"head"};

int64_t sample_scratch_bytes(int64_t) { return 256; }

int64_t sample_images_at_once(int64_t batch) { return batch; }
const char* sample_error(int code) { return code == 1 ? "the batch is empty" : "unknown error"; }
const char* sample_isa() { return "scalar"; }

int sample_init(float* parameters, uint64_t seed) {
  tessera::runtime::Random random(seed, 1000, 0);
  std::fill(parameters, parameters + SAMPLE_PARAMETER_FLOATS, 0.0f);
  for (std::int64_t i = 0; i < classes * pixels; ++i)
    parameters[weight + i] = static_cast<float>(random.uniform(-1, 1)) / 28;
  return 0;
}

int sample_pack_forward(const float*, float*) { return 0; }

int sample_forward(const float* parameters, const float*, const float* images, int64_t batch, float* outputs, void*) {
  if (batch < 1) return 1;
  for (std::int64_t b = 0; b < batch; ++b) scores(parameters, images + b * pixels, outputs + b * classes);
  return 0;
}

int sample_evaluate(const float* parameters, const float*, const float* images, const int32_t* labels, int64_t batch,
                    float* outputs, float* loss, void* scratch) {
  if (const int code = sample_forward(parameters, nullptr, images, batch, outputs, scratch)) return code;
  float sum = 0, probability[classes];
  for (std::int64_t b = 0; b < batch; ++b) sum += cross_entropy(outputs + b * classes, labels[b], probability);
  *loss = sum / static_cast<float>(batch);
  return 0;
}

int sample_inspect(const float* parameters, const float*, const float* images, int64_t batch, float*, float* magnitudes,
                   void*) {
  for (std::int64_t b = 0; b < batch; ++b) {
    float row[classes];
    scores(parameters, images + b * pixels, row);
    magnitudes[b] = 0;
    for (const float score : row) magnitudes[b] += std::abs(score) / classes;
  }
  return 0;
}

int sample_embed(const float*, const float*, const float* images, int64_t batch, float* features, float*, float*,
                 void*) {
  std::copy_n(images, batch * pixels, features);
  return 0;
}

int sample_loss_and_gradients(const float* parameters, const float*, const float* images, const int32_t* labels,
                              int64_t batch, uint64_t, int64_t, float* outputs, float* loss, float* gradients,
                              void* scratch) {
  if (const int code = sample_forward(parameters, nullptr, images, batch, outputs, scratch)) return code;
  std::fill(gradients, gradients + SAMPLE_PARAMETER_FLOATS, 0.0f);
  float sum = 0, probability[classes];
  for (std::int64_t b = 0; b < batch; ++b) {
    sum += cross_entropy(outputs + b * classes, labels[b], probability);
    for (std::int64_t j = 0; j < classes; ++j) {
      const float slope = (probability[j] - (j == labels[b] ? 1.0f : 0.0f)) / static_cast<float>(batch);
      gradients[j] += slope;
      for (std::int64_t i = 0; i < pixels; ++i) gradients[weight + j * pixels + i] += slope * images[b * pixels + i];
    }
  }
  *loss = sum / static_cast<float>(batch);
  return 0;
}

int sample_update(float* parameters, const float* gradients, float* optimizer, int64_t step, float learning_rate) {
  float *m = optimizer, *v = optimizer + SAMPLE_PARAMETER_FLOATS;
  const float m_scale = 1 / (1 - std::pow(0.9f, static_cast<float>(step)));
  const float v_scale = 1 / (1 - std::pow(0.999f, static_cast<float>(step)));
  for (std::int64_t i = 0; i < SAMPLE_PARAMETER_FLOATS; ++i) {
    m[i] = 0.9f * m[i] + 0.1f * gradients[i];
    v[i] = 0.999f * v[i] + 0.001f * gradients[i] * gradients[i];
    parameters[i] -= learning_rate * m[i] * m_scale / (std::sqrt(v[i] * v_scale) + 1e-8f);
  }
  return 0;
}

int sample_train_step(float* parameters, float*, float* gradients, float* optimizer, const float* images,
                      const int32_t* labels, int64_t batch, uint64_t seed, int64_t step, float learning_rate,
                      float* outputs, float* loss, void* scratch) {
  if (const int code = sample_loss_and_gradients(parameters, nullptr, images, labels, batch, seed, step, outputs, loss,
                                                 gradients, scratch))
    return code;
  return sample_update(parameters, gradients, optimizer, step, learning_rate);
}
}
