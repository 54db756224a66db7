#include "runtime/forward_pass.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/gpu.hpp"

namespace tessera::runtime {

namespace {

constexpr std::int64_t batch_images = 32;  // images

}  // namespace

struct PackedPass::OnGpu {
  OnGpu(const ForwardPass& pass, const float* from)
      : model(named("the forward pass", pass.cuda)),
        gpu(model),
        parameters(gpu, pass.parameter_floats),
        outputs(GpuMemory::of_floats(gpu, size_product({batch_images, pass.output_floats}))),
        scratch(gpu, pass.cuda->forward_scratch_bytes(batch_images)) {
    parameters.write(from);
  }

  Model model;  ///< by which the GPU is opened
  Gpu gpu;
  GpuParameters parameters;
  GpuMemory outputs, scratch;
  std::optional<GpuMemory> inputs;
};

PackedPass::PackedPass(const ForwardPass& pass, Arena parameters, bool on_gpu)
    : pass_(pass),
      parameters_(std::move(parameters)),
      packed_(Arena::of_floats(on_gpu ? 0 : pass.packed_floats, pass.alignment)),
      scratch_(on_gpu ? 0 : pass.scratch_bytes(batch_images), pass.alignment) {
  if (on_gpu)
    gpu_ = std::make_shared<OnGpu>(pass, parameters_.floats());
  else
    check(pass.pack(parameters_.floats(), packed_.floats()));
}

std::vector<float> PackedPass::operator()(std::span<const float> inputs, std::int64_t floats,
                                          const std::function<void(std::int64_t images)>& done) const {
  const std::int64_t count = static_cast<std::int64_t>(inputs.size()) / floats;
  std::vector<float> outputs(static_cast<std::size_t>(size_product({count, pass_.output_floats})));
  if (gpu_ && !gpu_->inputs) gpu_->inputs = GpuMemory::of_floats(gpu_->gpu, size_product({batch_images, floats}));
  for (std::int64_t i = 0; i < count; i += batch_images) {
    const std::int64_t batch = std::min(batch_images, count - i);
    const float* const from = inputs.data() + i * floats;
    float* const to = outputs.data() + i * pass_.output_floats;
    if (gpu_) {
      gpu_->inputs->write(from, 4 * batch * floats);
      gpu_->gpu.check(pass_.cuda->forward(gpu_->parameters.floats(), gpu_->parameters.packed(), gpu_->inputs->floats(),
                                          batch, gpu_->outputs.floats(), gpu_->scratch.data(), gpu_->gpu.stream()));
      gpu_->outputs.read(to, 4 * batch * pass_.output_floats);
    } else {
      check(pass_.forward(parameters_.floats(), packed_.floats(), from, batch, to, scratch_.data()));
    }
    if (done) done(batch);
  }
  return outputs;
}

void PackedPass::check(int code) const {
  if (code) fail(pass_.error(code));
}

}  // namespace tessera::runtime
