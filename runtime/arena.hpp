// The memory a model works in.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
  Arena(std::int64_t bytes, std::int64_t alignment) {
    const auto size = static_cast<std::size_t>(size_product({bytes}));
    if (bytes < huge_page) {
      void* begin = nullptr;
      if (::posix_memalign(&begin, static_cast<std::size_t>(alignment), size)) throw std::bad_alloc();
      std::memset(begin, 0, size);
      memory_.reset(begin);
      begin_ = begin;
      return;
    }
    // calloc takes so much from the system, whose pages are zero: each is cleared when, and by the thread that, first
    // touches it, and not all of them once more by this one.
    constexpr auto page = static_cast<std::size_t>(huge_page);
    const std::size_t pages = (size + page - 1) / page * page;
    std::size_t room = pages + page;
    memory_.reset(std::calloc(room, 1));
    begin_ = memory_.get();
    if (!begin_ || !std::align(page, pages, begin_, room)) throw std::bad_alloc();
#if defined(__linux__)
    madvise(begin_, pages, MADV_HUGEPAGE);
#endif
  }
  static Arena of_floats(std::int64_t count, std::int64_t alignment) {
    return Arena(size_product({4, count}), alignment);
  }

  void* data() const { return begin_; }
  float* floats() const { return static_cast<float*>(begin_); }

 private:
  // Bytes: models walk through their memory in long strides. No alignment that is asked for is larger.
  static constexpr std::int64_t huge_page = 1 << 21;

  struct Release {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Release> memory_;
  void* begin_ = nullptr;
};

}  // namespace tessera::runtime
