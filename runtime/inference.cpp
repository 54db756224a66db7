#include "runtime/inference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

/// The most that any use of so many images takes; an inspection is of one.
template <class Sizes>
std::int64_t scratch_bytes(const Sizes& of, std::int64_t batch) {
  const std::int64_t evaluate = of.evaluate_scratch_bytes ? of.evaluate_scratch_bytes(batch) : 0;
  const std::int64_t embed = of.embed_scratch_bytes ? of.embed_scratch_bytes(batch) : 0;
  return std::max({of.forward_scratch_bytes(batch), evaluate, embed, of.inspect_scratch_bytes(1)});
}

}  // namespace

void check(const Model& model, int code) {
  if (code != 0) fail(model.name, " cannot go on: ", model.error(code));
}

Arena packed(const Model& model, const float* parameters) {
  Arena result = Arena::of_floats(model.packed_forward_floats, model.alignment);
  check(model, model.pack_forward(parameters, result.floats()));
  return result;
}

std::vector<float> probabilities(const Model& model, std::span<const float> row) {
  std::vector<float> result(row.begin(), row.end());
  if (model.outputs_are_probabilities) return result;
  const float most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float& value : result) sum += value = std::exp(value - most);
  for (float& value : result) value = static_cast<float>(value / sum);
  return result;
}

std::vector<std::int32_t> likeliest(std::span<const float> probabilities, std::int64_t top) {
  std::vector<std::int32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::clamp<std::ptrdiff_t>(top, 1, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t a, std::int32_t b) {
    const float left = probabilities[static_cast<std::size_t>(a)], right = probabilities[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

Inference Inference::of_packed(const Model& model, const float* packed, std::int64_t batch) {
  Inference result(model);
  result.cpu_.emplace(OnCpu{nullptr, std::nullopt, packed, Arena(scratch_bytes(model, batch), model.alignment)});
  return result;
}

Inference::Inference(const Model& model, const float* parameters, std::int64_t batch, const Gpu* gpu) : model_(model) {
  if (!gpu) {
    Arena own = runtime::packed(model, parameters);
    const float* const packed = own.floats();
    cpu_.emplace(OnCpu{model.packed_forward_floats > 0 ? nullptr : parameters, std::move(own), packed,
                       Arena(scratch_bytes(model, batch), model.alignment)});
    return;
  }
  gpu->check_batch(batch);
  const auto floats = [&](std::int64_t count) { return GpuMemory::of_floats(*gpu, std::max<std::int64_t>(count, 1)); };
  gpu_.emplace(OnGpu{*gpu, GpuParameters(*gpu, model.parameter_floats), floats(batch * image_floats()), floats(batch),
                     floats(batch * model.classes), floats(model.attention.floats()),
                     floats(static_cast<std::int64_t>(model.layers.size())), floats(batch * model.embedding.features),
                     floats(batch * model.embedding.token_floats()), floats(batch * model.embedding.pooling_floats()),
                     floats(1), GpuMemory(*gpu, scratch_bytes(gpu->cuda(), batch))});
  gpu_->parameters.write(parameters);
}

void Inference::forward(const float* images, std::int64_t count, float* outputs) const {
  if (cpu_) {
    check(model_, model_.forward(cpu_->parameters, cpu_->packed, images, count, outputs, cpu_->scratch.data()));
  } else {
    const OnGpu& on = *gpu_;
    on.images.write(images, 4 * count * image_floats());
    on.gpu.check(on.gpu.cuda().forward(on.parameters.floats(), on.parameters.packed(), on.images.floats(), count,
                                       on.outputs.floats(), on.scratch.data(), on.gpu.stream()));
    on.outputs.read(outputs, 4 * count * model_.classes);
  }
  // Finite parameters may be so large that no answer comes of them.
  if (!std::all_of(outputs, outputs + count * model_.classes, [](float value) { return std::isfinite(value); }))
    fail("the answer of ", model_.name, " is not a number: these parameters cannot be used");
}

void Inference::evaluate(const float* images, const std::int32_t* labels, std::int64_t count, float* outputs,
                         float* loss) const {
  if (cpu_) {
    check(model_,
          model_.evaluate(cpu_->parameters, cpu_->packed, images, labels, count, outputs, loss, cpu_->scratch.data()));
    return;
  }
  const OnGpu& on = *gpu_;
  on.images.write(images, 4 * count * image_floats());
  on.labels.write(labels, 4 * count);
  on.gpu.check(on.gpu.cuda().evaluate(on.parameters.floats(), on.parameters.packed(), on.images.floats(),
                                      static_cast<const std::int32_t*>(on.labels.data()), count, on.outputs.floats(),
                                      on.loss.floats(), on.scratch.data(), on.gpu.stream()));
  on.outputs.read(outputs, 4 * count * model_.classes);
  on.loss.read(loss, 4);
}

Inspection Inference::inspect(const float* image) const {
  const auto layers = static_cast<std::int64_t>(model_.layers.size());
  if (cpu_) {
    const Arena input = Arena::of_floats(image_floats(), model_.alignment);
    const Arena maps = Arena::of_floats(model_.attention.floats(), model_.alignment);
    const Arena magnitudes = Arena::of_floats(layers, model_.alignment);
    std::copy_n(image, image_floats(), input.floats());
    check(model_, model_.inspect(cpu_->parameters, cpu_->packed, input.floats(), 1, maps.floats(), magnitudes.floats(),
                                 cpu_->scratch.data()));
    return {{maps.floats(), maps.floats() + model_.attention.floats()},
            {magnitudes.floats(), magnitudes.floats() + layers}};
  }
  const OnGpu& on = *gpu_;
  on.images.write(image, 4 * image_floats());
  on.gpu.check(on.gpu.cuda().inspect(on.parameters.floats(), on.parameters.packed(), on.images.floats(), 1,
                                     on.maps.floats(), on.magnitudes.floats(), on.scratch.data(), on.gpu.stream()));
  Inspection seen{std::vector<float>(static_cast<std::size_t>(model_.attention.floats())),
                  std::vector<float>(static_cast<std::size_t>(layers))};
  on.maps.read(seen.maps.data(), 4 * model_.attention.floats());
  on.magnitudes.read(seen.magnitudes.data(), 4 * layers);
  return seen;
}

void Inference::embed(const float* images, std::int64_t count, Embedded& result) const {
  const Embedding& of = model_.embedding;
  const auto sized = [&](std::vector<float>& numbers, std::int64_t floats) {
    numbers.resize(static_cast<std::size_t>(count * floats));
  };
  sized(result.features, of.features);
  sized(result.tokens, of.token_floats());
  sized(result.pooling, of.pooling_floats());
  float none = 0;  // where there are no such numbers
  const auto to = [&](std::vector<float>& numbers) { return numbers.empty() ? &none : numbers.data(); };
  if (cpu_) {
    check(model_, model_.embed(cpu_->parameters, cpu_->packed, images, count, to(result.features), to(result.tokens),
                               to(result.pooling), cpu_->scratch.data()));
    return;
  }
  const OnGpu& on = *gpu_;
  on.images.write(images, 4 * count * image_floats());
  on.gpu.check(on.gpu.cuda().embed(on.parameters.floats(), on.parameters.packed(), on.images.floats(), count,
                                   on.features.floats(), on.tokens.floats(), on.pooling.floats(), on.scratch.data(),
                                   on.gpu.stream()));
  on.features.read(result.features.data(), 4 * count * of.features);
  if (of.tokens) on.tokens.read(result.tokens.data(), 4 * count * of.token_floats());
  if (of.heads) on.pooling.read(result.pooling.data(), 4 * count * of.pooling_floats());
}

}  // namespace tessera::runtime
