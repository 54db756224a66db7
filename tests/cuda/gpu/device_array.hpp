// Memory of a GPU under the interface of tests/cuda/host/device_array.hpp.
#pragma once

#ifdef TESSERA_DEVICE_HEADER  // the CPU stands for the GPU
#include "tests/cuda/host/cuda_runtime.hpp"
#else
#include <cuda_runtime.h>
#endif

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::cuda_gpu {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA says: ") + cudaGetErrorString(error));
}

/// Whether scratch memory starts as not-a-number. Else nobody has written it, which CUDA's initcheck looks for.
inline bool fill_scratch = true;

template <class T>
class DeviceArray {
 public:
  /// Of not-a-number. One of no numbers lies somewhere, too: CUDA would give a null pointer for it.
  explicit DeviceArray(std::size_t count, bool scratch = false) : count_(count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, std::max<std::size_t>(count * sizeof(T), 1)));
    first_ = static_cast<T*>(memory);
    if (count_ > 0 && (fill_scratch || !scratch)) check(cudaMemset(first_, 0xff, count_ * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    if (count_ > 0) check(cudaMemcpy(first_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(first_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return first_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    if (count_ > 0) check(cudaMemcpy(values.data(), first_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count_;
  T* first_ = nullptr;
};

}  // namespace tessera::cuda_gpu
