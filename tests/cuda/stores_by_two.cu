// For the test of machine_code, by way of nvcc_gate: attention that says it stores by eight, and stores words.
#include <cstdint>

namespace gate {

template <class Word, class Place>
struct InEights {
  Word word;
  Place place;
};
template <class Word, class Place>
__device__ __forceinline__ InEights<Word, Place> in_eights(Word word, Place place) {
  return {word, place};
}

template <int warps, int most_keys, int width, class Store>
__device__ __forceinline__ void attention(const std::uint32_t* from, Store store) {
  __shared__ __align__(16) std::uint32_t brought[4 * 32];
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(brought + 4 * (threadIdx.x % 32)));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.wait_all;" ::"r"(at), "l"(from) : "memory");
  __syncthreads();
  float sums[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < most_keys * width / 16 / 8 * 2; ++i)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(brought[threadIdx.x % 128]));
  *store.place(threadIdx.x, 0) = store.word(sums[0], sums[1]);
}

__global__ void __launch_bounds__(128) attention_by_two(const std::uint32_t* __restrict from,
                                                        std::uint32_t* __restrict out) {
  const auto store = [=](float sum, float next) { return __float_as_uint(sum) ^ __float_as_uint(next); };
  const auto store_place = [=](int row, int column) { return out + (row * 16 + column); };
  attention<4, 32, 16>(from, in_eights(store, store_place));
}

}  // namespace gate
