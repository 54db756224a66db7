// The memory a model works in.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>

namespace tessera::runtime {

/// The product of sizes. Throws std::bad_alloc, as for any memory that there is not, where 63 bits do not hold it.
inline std::int64_t size_product(std::initializer_list<std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) throw std::bad_alloc();
  return product;
}

/// Aligned bytes, zero at the start.
class Arena {
 public:
  Arena(std::int64_t bytes, std::int64_t alignment)
      : Arena(bytes, std::align_val_t(bytes < 2 * huge_page ? alignment : std::max(alignment, huge_page))) {}
  static Arena of_floats(std::int64_t count, std::int64_t alignment) {
    return Arena(size_product({4, count}), alignment);
  }

  void* data() const { return memory_.get(); }
  float* floats() const { return reinterpret_cast<float*>(memory_.get()); }

 private:
  static constexpr std::int64_t huge_page = 1 << 21;  // bytes: models walk through their memory in long strides

  Arena(std::int64_t bytes, std::align_val_t alignment)
      : memory_(static_cast<std::byte*>(::operator new(static_cast<std::size_t>(size_product({bytes})), alignment)),
                Release{alignment}) {
#if defined(__linux__)
    if (bytes >= 2 * huge_page) madvise(memory_.get(), static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
#endif
    std::memset(memory_.get(), 0, static_cast<std::size_t>(bytes));
  }

  struct Release {
    std::align_val_t alignment;
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte[], Release> memory_;
};

}  // namespace tessera::runtime
