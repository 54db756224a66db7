#include "runtime/gpu.hpp"

#include <utility>

#include "runtime/error.hpp"

namespace tessera::runtime {

Model named(std::string part, const Cuda* cuda) {
  Model model;
  model.name = std::move(part);
  model.cuda = cuda;
  return model;
}

Gpu::Gpu(const Model& model) : model_(model), stream_(nullptr, nullptr) {
  if (!model.cuda)
    fail(
        "this program was built without CUDA and computes on the CPU only (CUDA in tessera_add_model lets it use a "
        "GPU)");
  stream_ = {model.cuda->open(name_), model.cuda->close};
}

void Gpu::check(int code) const {
  if (code != 0) fail(model_.name, " cannot go on: ", cuda().error(code));
}

void Gpu::check_batch(std::int64_t batch) const {
  if (const std::int64_t most = cuda().largest_batch(); batch > most)
    fail(model_.name, " takes at most ", most, " images at a time on a GPU, not ", batch);
}

GpuMemory::GpuMemory(const Gpu& gpu, std::int64_t bytes)
    : gpu_(&gpu), memory_(bytes > 0 ? gpu.cuda().allocate(bytes) : nullptr, gpu.cuda().release) {
  if (bytes > 0) gpu.cuda().clear(data(), bytes, gpu.stream());
}

void GpuMemory::write(const void* from, std::int64_t bytes) const {
  gpu_->cuda().copy_in(data(), from, bytes, gpu_->stream());
}

void GpuMemory::read(void* to, std::int64_t bytes) const {
  gpu_->cuda().copy_out(to, data(), bytes, gpu_->stream());
  gpu_->wait();
}

GpuParameters::GpuParameters(const Gpu& gpu, std::int64_t count)
    : gpu_(&gpu), count_(count), floats_(GpuMemory::of_floats(gpu, count)), packed_(gpu, gpu.cuda().packed_bytes) {}

void GpuParameters::write(const float* from) const {
  floats_.write(from, 4 * count_);
  gpu_->check(gpu_->cuda().pack(floats(), packed(), gpu_->stream()));
}

}  // namespace tessera::runtime
