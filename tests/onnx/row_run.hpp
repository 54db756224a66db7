// The generated kernels of a row on numbers from a file, with every instruction set.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/safetensors.hpp"
#include "tests/onnx/kernels.hpp"
#include "tests/onnx/row.hpp"

namespace tessera::test {

inline bool runs_here(const std::string& isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "avx2") return avx2;
  if (isa == "avx512")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  EXPECT_EQ(isa, "scalar") << "nothing here tests whether this processor runs it";
  return isa == "scalar";
}

/// Memory as the kernels want it: aligned, and no longer than they asked for. It starts as not-a-number, so that
/// reading what nobody wrote shows; and so does writing past the end.
class Memory {
 public:
  explicit Memory(std::int64_t reals) : reals_(static_cast<std::size_t>(reals)) {
    memory_.reset(static_cast<float*>(::operator new((reals_ + guard) * sizeof(float), std::align_val_t(64))));
    std::fill_n(memory_.get(), reals_, NAN);
    std::fill_n(memory_.get() + reals_, guard, 12345.0F);
  }
  ~Memory() {
    const float* end = memory_.get() + reals_;
    EXPECT_TRUE(std::all_of(end, end + guard, [](float r) { return r == 12345.0F; })) << "written past the end";
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  float* get() { return memory_.get(); }

 private:
  static constexpr std::size_t guard = 64;
  struct Free {
    void operator()(float* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::size_t reals_;
  std::unique_ptr<float, Free> memory_;
};

inline std::vector<std::int64_t> with_batch(const std::vector<Dim>& shape, std::int64_t batch) {
  std::vector<std::int64_t> dims;
  for (const Dim& dim : shape) dims.push_back(dim.known() ? dim.value() : batch);
  return dims;
}

/// Integers as reals, too.
inline std::vector<float> numbers_of(const runtime::Tensor& tensor) {
  if (tensor.is_real()) return tensor.floats();
  const std::vector<std::int64_t> whole = tensor.integers();
  return {whole.begin(), whole.end()};
}

/// One tensor of a row's numbers.
struct Numbers {
  std::string key;
  std::vector<std::int64_t> shape;
  runtime::Tensor tensor;
};

/// The first of `wanted` that `found` has otherwise: by more than this share of the largest finite one. Infinities and
/// what is no number have to be the same.
inline std::optional<std::size_t> first_that_differs(const std::vector<float>& wanted, const std::vector<float>& found,
                                                     float tolerance = 1e-5F) {
  float largest = 0;
  for (const float number : wanted)
    if (std::isfinite(number)) largest = std::max(largest, std::fabs(number));
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const bool same = std::isnan(wanted[k])      ? std::isnan(found[k])
                      : std::isfinite(wanted[k]) ? std::fabs(found[k] - wanted[k]) <= tolerance * largest
                                                 : found[k] == wanted[k];
    if (!same) return k;
  }
  return std::nullopt;
}

/// The kernels of a row beside its numbers.
class RowRun {
 public:
  explicit RowRun(const RowKernels& of) : kernels(of) {}

  /// Takes the row, and its own first axis for the batch where it has one.
  void take(RecordedRow recorded) {
    row = std::move(recorded);
    // What follows the inputs that the declaration takes are ONNX's axes, shapes and lengths.
    ASSERT_GE(inputs.size(), row.inputs.size());
    for (std::size_t i = row.inputs.size(); i < inputs.size(); ++i)
      ASSERT_EQ(inputs[i].tensor.dtype, "I64") << inputs[i].key << " is not taken";
    for (std::size_t i = row.inputs.size(); i-- > 0;)
      if (has_batch(row.inputs[i].shape)) batch = inputs[i].shape.at(0);
  }

  /// The row's inputs, as the kernels want them.
  void take_inputs(float* parameters, float* images, std::vector<std::int32_t>& labels) {
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      const RowInput& input = row.inputs[i];
      const auto& [key, shape, tensor] = inputs[i];
      ASSERT_EQ(with_batch(input.shape, batch), shape) << key;
      if (input.kind == RowInput::Kind::labels) {
        for (const std::int64_t label : tensor.integers()) labels.push_back(static_cast<std::int32_t>(label));
        continue;
      }
      const std::vector<float> numbers = numbers_of(tensor);
      if (input.kind == RowInput::Kind::parameter) {
        std::copy(numbers.begin(), numbers.end(), parameters + input.offset);
        continue;
      }
      const std::int64_t reals = reals_of(input.shape);
      for (std::int64_t b = 0; b < batch; ++b)
        std::copy_n(numbers.begin() + b * reals, reals, images + b * row.image_reals + input.offset);
    }
  }

  void expect_results(const float* outputs) {
    ASSERT_EQ(row.results.size(), wanted.size());
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto& [key, shape, tensor] = wanted[i];
      const std::int64_t reals = reals_of(row.results[i]);
      if (key.empty()) {  // nobody says what it is
        offset += reals;
        continue;
      }
      ASSERT_EQ(with_batch(row.results[i], batch), shape) << key;
      const std::vector<float> numbers = numbers_of(tensor);
      std::vector<float> found;
      for (std::int64_t image = 0; image < static_cast<std::int64_t>(numbers.size()) / reals; ++image)
        found.insert(found.end(), outputs + image * row.output_reals + offset,
                     outputs + image * row.output_reals + offset + reals);
      if (const auto k = first_that_differs(numbers, found, tolerance))
        FAIL() << key << ": element " << *k << " is " << found[*k] << ", not " << numbers[*k];
      offset += reals;
    }
  }

  void expect_the_numbers_with_every_instruction_set() {
    for (const auto& [isa, function] : kernels.functions) {
      SCOPED_TRACE(isa);
      if (!runs_here(isa)) continue;
      Memory parameters(row.parameter_reals), images(batch * row.image_reals), outputs(batch * row.output_reals);
      Memory scratch(kernels.scratch_reals + batch * kernels.scratch_reals_of_image);
      std::vector<std::int32_t> labels;
      ASSERT_NO_FATAL_FAILURE(take_inputs(parameters.get(), images.get(), labels));
      function(parameters.get(), images.get(), labels.data(), batch, outputs.get(), nullptr, scratch.get());
      expect_results(outputs.get());
    }
  }

  const RowKernels& kernels;
  std::vector<Numbers> inputs, wanted;
  RecordedRow row;
  std::int64_t batch = 1;
  float tolerance = 1e-5F;  ///< of the largest number
};

}  // namespace tessera::test
