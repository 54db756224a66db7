// What a kernel asks of the machine, and how the host starts it: the twin for nvcc. The twin for a CPU without a GPU is
// tests/cuda/host/device.hpp; kernels call these names alone, so that both run the same text.
#include <cuda_runtime.h>

#pragma nv_diag_suppress 177  // a model has no use for every function below

#define TESSERA_DEVICE __device__ __forceinline__
#define TESSERA_UNROLL _Pragma("unroll")
#define TESSERA_UNROLL_BY_4 _Pragma("unroll 4")

namespace {

/// A number in brain floating point: the upper half of a float.
struct bf16 {
  std::uint16_t bits;
};

/// To the nearest bf16, a tie to the even one; and back.
TESSERA_DEVICE bf16 rounded(float value) {
  bf16 nearest;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(nearest.bits) : "f"(value));
  return nearest;
}
TESSERA_DEVICE float widened(bf16 value) { return __uint_as_float(std::uint32_t{value.bits} << 16); }

TESSERA_DEVICE int thread_x() { return static_cast<int>(threadIdx.x); }
TESSERA_DEVICE int threads() { return static_cast<int>(blockDim.x); }
TESSERA_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
TESSERA_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
TESSERA_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }

/// Waits for all threads of the block; what they wrote to memory before it, all of them see behind it.
TESSERA_DEVICE void barrier() { __syncthreads(); }

/// The value of the lane whose number differs by these bits. All lanes of the warp call it together.
TESSERA_DEVICE float shuffle_xor(float value, int bits) { return __shfl_xor_sync(0xffffffffu, value, bits); }

/// The block's shared memory: as many bytes as the launch asked for.
template <class T>
TESSERA_DEVICE T* shared_memory() {
  extern __shared__ __align__(128) unsigned char tessera_shared[];
  return reinterpret_cast<T*>(tessera_shared);
}

/// Copies 16 bytes to shared memory without waiting, `valid` of them (0 to 16) from `from`, the others zero.
TESSERA_DEVICE void copy_async(void* to, const void* from, int valid) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid) : "memory");
}
/// The copies of this thread since the last call become a group.
TESSERA_DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `left` groups of this thread are under way. Other threads' copies need a barrier behind it.
template <int left>
TESSERA_DEVICE void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/// Four 8 x 8 matrices from shared memory: lane i names row i % 8 of matrix i / 8 (16 bytes); each lane gets two
/// neighbours of row lane / 4 of every matrix. All lanes of the warp call it together.
TESSERA_DEVICE void load_matrices(std::uint32_t part[4], const bf16* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])
               : "r"(at)
               : "memory");
}
/// As load_matrices, each matrix transposed.
TESSERA_DEVICE void load_matrices_transposed(std::uint32_t part[4], const bf16* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])
               : "r"(at)
               : "memory");
}
/// sum += left [16 x 16] right [16 x 8] of a whole warp, in the fragments of PTX's mma.m16n8k16.
TESSERA_DEVICE void multiply_add(float sum[4], const std::uint32_t left[4], const std::uint32_t right[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

typedef cudaStream_t Stream;

/// How many blocks of `size` hold so many.
inline unsigned blocks_for(std::int64_t count, int size) { return static_cast<unsigned>((count + size - 1) / size); }

/// Starts a kernel. What goes wrong is told by launches_failed.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream,
            Arguments... arguments) {
  constexpr std::size_t without_asking = 48 * 1024;
  if (shared_bytes > without_asking)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
}
/// Whether a launch since the last call was refused.
inline bool launches_failed() { return cudaGetLastError() != cudaSuccess; }

}  // namespace
