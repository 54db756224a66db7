// A GPU: the stream that all of a program's work on it goes through, and memory of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// What a Gpu is opened by, where a program has the table of a part of a model alone.
Model named(std::string part, const Cuda* cuda);

/// The GPU that a program was asked to compute on. What CUDA refuses throws, in one sentence.
class Gpu {
 public:
  /// Throws an Error where the program was built without CUDA, or where this machine has no GPU.
  explicit Gpu(const Model& model);

  const Cuda& cuda() const { return *model_.cuda; }
  void* stream() const { return stream_.get(); }
  const std::string& name() const { return name_; }

  /// Throws an Error in the model's words unless `code` is 0.
  void check(int code) const;
  /// Throws an Error where the model's kernels have no room for so many images at a time.
  void check_batch(std::int64_t batch) const;
  /// Until all work is done. Throws where any of it failed.
  void wait() const { cuda().wait(stream()); }

 private:
  const Model& model_;
  std::string name_;
  std::unique_ptr<void, void (*)(void*)> stream_;
};

/// Memory of a GPU, zero at the start. The GPU must outlive it.
class GpuMemory {
 public:
  GpuMemory(const Gpu& gpu, std::int64_t bytes);
  static GpuMemory of_floats(const Gpu& gpu, std::int64_t count) { return GpuMemory(gpu, 4 * count); }

  void* data() const { return memory_.get(); }
  float* floats() const { return static_cast<float*>(memory_.get()); }
  /// From the CPU's memory into the first bytes; `from` may be changed afterwards.
  void write(const void* from, std::int64_t bytes) const;
  /// The first bytes, after all work that was put into the stream before.
  void read(void* to, std::int64_t bytes) const;

 private:
  const Gpu* gpu_;
  std::unique_ptr<void, void (*)(void*)> memory_;
};

/// Parameters in a GPU's memory, with the copy of them that products read.
class GpuParameters {
 public:
  GpuParameters(const Gpu& gpu, std::int64_t count);

  float* floats() const { return floats_.floats(); }
  void* packed() const { return packed_.data(); }
  /// From the CPU's memory, and back.
  void write(const float* from) const;
  void read(float* to) const { floats_.read(to, 4 * count_); }

 private:
  const Gpu* gpu_;
  std::int64_t count_;
  GpuMemory floats_, packed_;
};

}  // namespace tessera::runtime
