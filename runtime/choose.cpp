#include "runtime/choose.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "runtime/philox.hpp"

namespace tessera::runtime {
namespace {

/// Finite, or minus infinity for a code that must not come; not all of them.
bool has_a_choice(std::span<const float> logits) {
  constexpr float none = -std::numeric_limits<float>::infinity();
  return std::ranges::all_of(logits, [](float z) { return z < std::numeric_limits<float>::infinity(); }) &&
         std::ranges::any_of(logits, [](float z) { return z > none; });
}

/// What one row is computed in: V probabilities and, at different times, V logits or V codes.
struct Row {
  std::span<double> probabilities;
  std::span<std::int32_t> order;
  std::span<float> sorted;
};

/// The smallest logit that stays: the k-th largest.
float smallest_kept(std::span<const float> logits, std::int64_t top_k, std::span<float> sorted) {
  std::ranges::copy(logits, sorted.begin());
  const auto kth = sorted.begin() + (top_k - 1);
  std::ranges::nth_element(sorted, kth, std::greater<>());
  return *kth;
}

/// Sets to zero what does not belong to the smallest set of most probable codes whose sum exceeds `most`; returns the
/// sum of those that stay.
double keep_nucleus(std::span<double> p, std::span<std::int32_t> order, double most) {
  std::size_t count = 0;
  for (std::size_t j = 0; j < p.size(); ++j)
    if (p[j] > 0) order[count++] = static_cast<std::int32_t>(j);
  const auto likely = order.first(count);
  const auto at = [](std::int32_t j) { return static_cast<std::size_t>(j); };
  std::ranges::sort(
      likely, [&](std::int32_t a, std::int32_t b) { return p[at(a)] > p[at(b)] || (p[at(a)] == p[at(b)] && a < b); });
  double before = 0, kept = 0;
  for (const std::int32_t j : likely) {
    const double share = p[at(j)];
    if (before > most)
      p[at(j)] = 0;
    else
      kept += share;
    before += share;
  }
  return kept;
}

std::int32_t drawn(std::span<const float> logits, float temperature, std::int64_t top_k, float top_p, float uniform,
                   const Row& row) {
  const bool all = top_k == 0 || top_k >= static_cast<std::int64_t>(logits.size());
  const float least = all ? -std::numeric_limits<float>::infinity() : smallest_kept(logits, top_k, row.sorted);
  // Divided by the temperature after the maximum is taken off: no quotient overflows.
  const double largest = *std::ranges::max_element(logits);
  const std::span<double> p = row.probabilities;
  double sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    p[j] = logits[j] >= least ? std::exp((static_cast<double>(logits[j]) - largest) / static_cast<double>(temperature))
                              : 0;
    sum += p[j];
  }
  for (double& share : p) share /= sum;
  if (top_p < 1) sum = keep_nucleus(p, row.order, static_cast<double>(top_p));
  std::int32_t last = 0;
  double until = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    if (p[j] <= 0) continue;
    last = static_cast<std::int32_t>(j);
    until += top_p < 1 ? p[j] / sum : p[j];
    if (until > static_cast<double>(uniform)) return last;
  }
  return last;  // the sum may end a rounding below one
}

int problem_of(std::span<const float> logits, std::size_t codes, float temperature, std::int64_t top_k, float top_p,
               std::span<const float> uniforms) {
  if (!(temperature > 0) || temperature == std::numeric_limits<float>::infinity())
    return TESSERA_CHOOSE_ERROR_TEMPERATURE;
  if (top_k < 0) return TESSERA_CHOOSE_ERROR_TOP_K;
  if (!(top_p > 0 && top_p <= 1)) return TESSERA_CHOOSE_ERROR_TOP_P;
  if (!std::ranges::all_of(uniforms, [](float u) { return u >= 0 && u < 1; })) return TESSERA_CHOOSE_ERROR_UNIFORM;
  for (std::size_t at = 0; at < logits.size(); at += codes)
    if (!has_a_choice(logits.subspan(at, codes))) return TESSERA_CHOOSE_ERROR_LOGITS;
  return TESSERA_CHOOSE_OK;
}

}  // namespace
}  // namespace tessera::runtime

extern "C" {

const char* tessera_choose_error(int code) {
  switch (code) {
    case TESSERA_CHOOSE_OK:
      return "no error";
    case TESSERA_CHOOSE_ERROR_NULL:
      return "a pointer is null";
    case TESSERA_CHOOSE_ERROR_SIZE:
      return "there must be at least one image and one code, and no more logits than memory can have";
    case TESSERA_CHOOSE_ERROR_TEMPERATURE:
      return "the temperature must be above 0, and finite";
    case TESSERA_CHOOSE_ERROR_TOP_K:
      return "top_k must not be negative (0 keeps all codes)";
    case TESSERA_CHOOSE_ERROR_TOP_P:
      return "top_p must be above 0 and at most 1";
    case TESSERA_CHOOSE_ERROR_UNIFORM:
      return "a uniform number is not in [0, 1)";
    case TESSERA_CHOOSE_ERROR_LOGITS:
      return "a row of logits holds a NaN or infinity, or no number at all: no token comes of it";
    default:
      return "unknown error code";
  }
}

int tessera_choose(const float* logits, std::int64_t batch, std::int64_t codes, float temperature, std::int64_t top_k,
                   float top_p, const float* uniforms, std::int32_t* tokens, void* scratch) {
  using namespace tessera::runtime;
  if (!logits || !tokens || !scratch) return TESSERA_CHOOSE_ERROR_NULL;
  if (batch < 1 || codes < 1 || codes > std::numeric_limits<std::int32_t>::max() ||
      batch > (std::numeric_limits<std::int64_t>::max() >> 4) / codes)
    return TESSERA_CHOOSE_ERROR_SIZE;
  const auto images = static_cast<std::size_t>(batch), width = static_cast<std::size_t>(codes);
  const std::span<const float> all(logits, images * width);
  if (const int code =
          problem_of(all, width, temperature, top_k, top_p, {uniforms, uniforms ? images : std::size_t{0}}))
    return code;
  auto* const numbers = static_cast<double*>(scratch);
  void* const behind = numbers + width;
  const Row row{{numbers, width}, {static_cast<std::int32_t*>(behind), width}, {static_cast<float*>(behind), width}};
  for (std::size_t i = 0; i < images; ++i) {
    const auto of_image = all.subspan(i * width, width);
    tokens[i] = uniforms ? drawn(of_image, temperature, top_k, top_p, uniforms[i], row)
                         : static_cast<std::int32_t>(std::ranges::max_element(of_image) - of_image.begin());
  }
  return TESSERA_CHOOSE_OK;
}

void tessera_uniforms(std::uint64_t seed, std::int64_t first, std::int64_t batch, std::int64_t position,
                      float* uniforms) {
  using namespace tessera::runtime;
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto image = static_cast<std::uint64_t>(first + i);
    const PhiloxBlock random = philox({static_cast<std::uint32_t>(position), sampling,
                                       static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(image >> 32)},
                                      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    uniforms[i] = static_cast<float>(random[0] >> 8) * 0x1p-24F;
  }
}

}  // extern "C"
