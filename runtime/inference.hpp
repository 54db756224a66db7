// A model applied to images, on the CPU or on a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/gpu.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Throws an Error with the model's own words when `code` is not 0.
void check(const Model& model, int code);

/// The parameters in the form that the model's kernels read where nothing is trained.
Arena packed(const Model& model, const float* parameters);

/// What one row of outputs says about each class: softmax of the row, or the row itself where the model's outputs are
/// probabilities already.
std::vector<float> probabilities(const Model& model, std::span<const float> row);

/// The `top` classes, the likeliest first, of equal ones that of the smaller number.
std::vector<std::int32_t> likeliest(std::span<const float> probabilities, std::int64_t top);

/// What goes on inside a model for one image.
struct Inspection {
  std::vector<float> maps;        ///< [attention.layers, heads, rows, columns]; rows sum to one
  std::vector<float> magnitudes;  ///< by layer of Model::layers: the mean of |x| of what it gives
};

/// A model with its parameters, and memory for what it is applied to. All pointers are to the CPU's memory; a number of
/// images may be any from 1 to `batch`. `model` and `gpu` must outlive this, `parameters` where it reads them.
class Inference {
 public:
  /// On the GPU or, where it is null, on the CPU. Throws an Error where `batch` images are too many for a GPU.
  Inference(const Model& model, const float* parameters, std::int64_t batch, const Gpu* gpu);
  /// On the CPU, of parameters that are packed already and must outlive this.
  static Inference of_packed(const Model& model, const float* packed, std::int64_t batch);

  /// The packed parameters that the CPU reads; null on the GPU.
  const float* packed() const { return cpu_ ? cpu_->packed : nullptr; }
  /// Whether the parameters are read still: else they are packed, or on the GPU, and can be given back.
  bool reads_parameters() const { return cpu_ && cpu_->parameters; }

  /// outputs [count, classes] of images [count, C, H, W].
  void forward(const float* images, std::int64_t count, float* outputs) const;
  /// As forward, and the mean loss over the images, of a model that has one.
  void evaluate(const float* images, const std::int32_t* labels, std::int64_t count, float* outputs, float* loss) const;
  Inspection inspect(const float* image) const;
  /// Features [count, embedding.features] of images, of a model that has some, with tokens and pooling as Model::embed
  /// gives them. Each is overwritten; what the model does not have is empty.
  struct Embedded {
    std::vector<float> features, tokens, pooling;
  };
  void embed(const float* images, std::int64_t count, Embedded& result) const;

 private:
  struct OnCpu {
    const float* parameters;   ///< null: all that is read is packed
    std::optional<Arena> own;  ///< what is packed, unless it is somebody else's
    const float* packed;
    Arena scratch;
  };
  struct OnGpu {
    const Gpu& gpu;
    GpuParameters parameters;
    GpuMemory images, labels, outputs, maps, magnitudes, features, tokens, pooling, loss, scratch;
  };
  explicit Inference(const Model& model) : model_(model) {}
  std::int64_t image_floats() const { return model_.image_shape[0] * model_.image_shape[1] * model_.image_shape[2]; }

  const Model& model_;
  std::optional<OnCpu> cpu_;
  std::optional<OnGpu> gpu_;
};

}  // namespace tessera::runtime
