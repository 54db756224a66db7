// Memory as kernels get it in tests.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace tessera::cuda_host {

/// An array that starts as not-a-number and lies between two pages that nobody may touch, close to the second: a kernel
/// that goes past its end is found out (to 16 bytes, to which it is aligned).
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, [[maybe_unused]] bool scratch = false) : count_(count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (count * sizeof(T) + 15) / 16 * 16, pages = (bytes + page - 1) / page * page;
    mapped_ = pages + 2 * page;
    void* const all = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<unsigned char*>(all);
    if (pages > 0) {
      mprotect(memory_ + page, pages, PROT_READ | PROT_WRITE);
      std::memset(memory_ + page, 0xff, pages);
    }
    first_ = reinterpret_cast<T*>(memory_ + page + pages - bytes);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    if (count_ > 0) std::memcpy(first_, values.data(), count_ * sizeof(T));
  }
  ~DeviceArray() { munmap(memory_, mapped_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return first_; }
  std::span<T> span() { return {first_, count_}; }
  std::vector<T> values() const { return {first_, first_ + count_}; }
  T& operator[](std::size_t i) { return first_[i]; }

 private:
  std::size_t count_, mapped_ = 0;
  unsigned char* memory_ = nullptr;
  T* first_ = nullptr;
};

}  // namespace tessera::cuda_host
