#include "runtime/mixing.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::runtime {
namespace {

/// Uniform in (0, 1): its logarithm is finite.
double open_uniform(Random& random) { return (random.word() + 0.5) * 0x1p-32; }

/// A box of the image, pasted into another: rows and columns from first to before last.
struct Box {
  std::int64_t top, bottom, left, right;
  double share(std::int64_t height, std::int64_t width) const {
    return static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(height * width);
  }
};

/// Around a uniform centre, of 1 - kept of the image's area before it is cut off at the edges. Yun et al. 2019, (2).
Box draw_box(double kept, std::int64_t height, std::int64_t width, Random& random) {
  const double side = std::sqrt(1 - kept);
  auto along = [&](std::int64_t length) {
    const auto size = static_cast<std::int64_t>(side * static_cast<double>(length));
    const std::int64_t centre = random.below(static_cast<std::uint32_t>(length));
    return std::pair(std::max<std::int64_t>(centre - size / 2, 0), std::min(centre - size / 2 + size, length));
  };
  const auto [top, bottom] = along(height);
  const auto [left, right] = along(width);
  return {top, bottom, left, right};
}

}  // namespace

double beta(double alpha, Random& random) {
  if (alpha <= 1) {
    while (true) {
      const double x = std::pow(open_uniform(random), 1 / alpha), y = std::pow(open_uniform(random), 1 / alpha);
      if (x + y <= 1 && x + y > 0) return x / (x + y);
    }
  }
  const double sum = 2 * alpha, b = std::sqrt((sum - 2) / (2 * alpha * alpha - sum)), c = alpha + 1 / b;
  while (true) {
    const double u = open_uniform(random), w = open_uniform(random);
    const double v = b * std::log(u / (1 - u)), x = alpha * std::exp(v), r = c * v - 1.3862943611198906;
    if (r + sum * std::log(sum / (alpha + x)) >= std::log(u * u * w)) return x / (alpha + x);
  }
}

void mix(const Recipe& recipe, std::int64_t size, std::int64_t channels, std::int64_t height, std::int64_t width,
         std::int64_t classes, const std::int32_t* labels, float* images, float* targets, Random& random) {
  const std::int64_t pixels = channels * height * width;
  const bool both = recipe.mixup > 0 && recipe.cutmix > 0;
  const bool pastes = both ? random.below(2) == 1 : recipe.cutmix > 0;
  double kept = 1;
  if (pastes) {
    const Box box = draw_box(beta(recipe.cutmix, random), height, width, random);
    kept = 1 - box.share(height, width);
    for (std::int64_t i = 0; i < size / 2; ++i)
      for (std::int64_t row = 0; row < channels * height; ++row) {
        if (row % height < box.top || row % height >= box.bottom) continue;
        float *mine = images + i * pixels + row * width, *other = images + (size - 1 - i) * pixels + row * width;
        std::swap_ranges(mine + box.left, mine + box.right, other + box.left);
      }
  } else if (recipe.mixup > 0) {
    kept = beta(recipe.mixup, random);
    const auto a = static_cast<float>(kept), b = static_cast<float>(1 - kept);
    for (std::int64_t i = 0; i < size / 2; ++i) {
      float *mine = images + i * pixels, *other = images + (size - 1 - i) * pixels;
      for (std::int64_t p = 0; p < pixels; ++p) {
        const float x = mine[p], y = other[p];
        mine[p] = a * x + b * y;
        other[p] = a * y + b * x;
      }
    }
  }
  const double even = recipe.smoothing / static_cast<double>(classes), sure = 1 - recipe.smoothing;
  for (std::int64_t i = 0; i < size; ++i) {
    float* row = targets + i * classes;
    std::fill_n(row, classes, static_cast<float>(even));
    const std::int32_t mine = labels[i], other = labels[size - 1 - i];
    if (mine == other) {
      row[mine] = static_cast<float>(even + sure);
    } else {
      row[mine] = static_cast<float>(even + sure * kept);
      row[other] = static_cast<float>(even + sure * (1 - kept));
    }
  }
}

}  // namespace tessera::runtime
