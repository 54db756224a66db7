#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "my_vit_model.h"

constexpr std::int64_t rows = 20, columns = 12, floats = MY_VIT_MODEL_EMBEDDING_FLOATS;

void check(int code) {
  if (code != 0) throw std::runtime_error(my_vit_model_error());
}

void draw_bar(std::uint8_t* picture, int label, int left) {
  for (int i = 0; i < rows * columns; ++i) {
    const auto y = i / columns, x = i % columns;
    for (int c = 0; c < 3; ++c) picture[3 * i + c] = y / 2 == label && left <= x && x < left + 6 ? 208 : 48;
  }
}

double cosine(const float* a, const float* b) {
  double ab = 0, aa = 0, bb = 0;
  for (int i = 0; i < floats; ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return ab / std::sqrt(aa * bb);
}

int main() try {
  my_vit_model* opened = nullptr;
  check(my_vit_model_open("weights.safetensors", &opened));
  const std::unique_ptr<my_vit_model, void (*)(my_vit_model*)> model(opened, my_vit_model_close);

  std::vector<std::uint8_t> pictures(3 * rows * columns * 3);  // two of class 3, one of class 8
  draw_bar(pictures.data(), 3, 1);
  draw_bar(pictures.data() + rows * columns * 3, 3, 5);
  draw_bar(pictures.data() + 2 * rows * columns * 3, 8, 1);
  std::vector<float> found(3 * floats);
  check(my_vit_model_embed(model.get(), pictures.data(), 3, columns, rows, 3 * columns, found.data()));

  const double alike = cosine(found.data(), found.data() + floats);
  const double other = cosine(found.data(), found.data() + 2 * floats);
  std::printf("one class %.3f, two classes %.3f\n", alike, other);
  return alike > other ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
