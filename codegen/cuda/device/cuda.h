// What a kernel asks of the machine, and how the host starts it: the twin for nvcc. The twin for a CPU without a GPU is
// tests/cuda/host/device.hpp; kernels call these names alone, so that both run the same text.
#include <cuda.h>  // the types of tensor maps alone
#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <utility>

#pragma nv_diag_suppress 177  // a model has no use for every function below

#define TESSERA_DEVICE __device__ __forceinline__
#define TESSERA_UNROLL _Pragma("unroll")
#define TESSERA_UNROLL_BY_4 _Pragma("unroll 4")
#define TESSERA_ROLLED _Pragma("unroll 1")

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
/// Both at once, by one fast instruction: a number that bf16 has.
TESSERA_DEVICE float in_bf16(float value) {
  std::uint32_t upper_half;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(upper_half) : "f"(value), "f"(0.0f));
  return __uint_as_float(upper_half);
}
/// Of two, by one instruction: the first in the lower half.
TESSERA_DEVICE std::uint32_t rounded_pair(float first, float second) {
  std::uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}
TESSERA_DEVICE float widened(bf16 value) { return __uint_as_float(std::uint32_t{value.bits} << 16); }

/// a - b, never one operation with what makes a: its bits do not hang on what stands around it.
TESSERA_DEVICE float difference(float a, float b) { return __fsub_rn(a, b); }
/// 2^x to some 22 bits, by one instruction.
TESSERA_DEVICE float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
/// 1 / x to some 23 bits, by one instruction.
TESSERA_DEVICE float reciprocal(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
}

TESSERA_DEVICE int thread_x() { return static_cast<int>(threadIdx.x); }
TESSERA_DEVICE int threads() { return static_cast<int>(blockDim.x); }
TESSERA_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
TESSERA_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
TESSERA_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }
/// How many of them there are along x.
TESSERA_DEVICE int blocks_x() { return static_cast<int>(gridDim.x); }

/// A number that all lanes of the warp have: what follows from it need not be made, or branched upon, by lane.
TESSERA_DEVICE int same_in_warp(int number) { return __shfl_sync(0xffffffffu, number, 0); }

/// The same number; what follows from it is made where it is needed, and not kept in registers from an earlier place.
TESSERA_DEVICE int made_anew(int number) {
  asm volatile("" : "+r"(number));
  return number;
}

/// Waits for all threads of the block; what they wrote to memory before it, all of them see behind it.
TESSERA_DEVICE void barrier() { __syncthreads(); }
/// The same for the threads of a warp.
TESSERA_DEVICE void warp_barrier() { __syncwarp(); }

/// The value of the lane whose number differs by these bits. All lanes of the warp call it together.
TESSERA_DEVICE float shuffle_xor(float value, int bits) { return __shfl_xor_sync(0xffffffffu, value, bits); }
TESSERA_DEVICE std::uint32_t shuffle_xor(std::uint32_t value, int bits) {
  return __shfl_xor_sync(0xffffffffu, value, bits);
}

/// 16 bytes by one store, to a multiple of 16.
TESSERA_DEVICE void store_16_bytes(void* to, const std::uint32_t (&words)[4]) {
  *static_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

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

// ---- sm_90a: warpgroups, which are four warps, multiply what tensor maps bring -------------------------------------

/// Whether this is compiled for sm_90a. Elsewhere a kernel that needs it is empty, and has launch bounds by which
/// can_launch finds that out.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TESSERA_WARPGROUPS true
#else
#define TESSERA_WARPGROUPS false
#endif
#define TESSERA_THREADS_OF_WARPGROUPS(count) (TESSERA_WARPGROUPS ? (count) : 32)
#define TESSERA_MAP const __grid_constant__ CUtensorMap

/// The block's shared memory, from a multiple of 1024 bytes on.
template <class T>
TESSERA_DEVICE T* shared_tiles() {
  extern __shared__ __align__(1024) unsigned char tessera_tiles[];
  return reinterpret_cast<T*>(tessera_tiles);
}
/// As descriptors and instructions name shared memory.
TESSERA_DEVICE std::uint32_t shared_address(const void* place) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(place));
}

/// A barrier in shared memory that counts arrivals and bytes. Its phases have parity 0, 1, 0, ...: each ends when so
/// many threads have arrived and all bytes that were announced are there; then the next one begins.
typedef std::uint64_t Gate;
TESSERA_DEVICE void gate_begin(Gate* gate, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(gate)), "r"(arrivals) : "memory");
}
/// At the gate of this block or, in a cluster of several, of one of them. It tells of multiplications that have been
/// waited for, not of anything that this thread wrote.
template <int cluster>
TESSERA_DEVICE void gate_arrive(Gate* gate, int block) {
  if constexpr (cluster == 1)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(gate)) : "memory");
  else
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(gate)),
        "r"(block)
        : "memory");
}
/// Announces bytes, and arrives.
TESSERA_DEVICE void gate_expect(Gate* gate, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(gate)), "r"(bytes)
               : "memory");
}
/// Waits until the phase of this parity has ended: the one before the first has parity 1.
TESSERA_DEVICE void gate_wait(Gate* gate, int parity) {
  std::uint32_t ended = 0;
  while (!ended)
    asm volatile(
        "{\n.reg .pred ended;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended;\n}"
        : "=r"(ended)
        : "r"(shared_address(gate)), "r"(parity)
        : "memory");
}
/// What this thread wrote to shared memory (gates, too) before it, asynchronous operations see behind it.
TESSERA_DEVICE void asynchronous_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}
/// Waits for all threads of all blocks of the cluster; what they did before it, also at gates of another block, is
/// done.
template <int cluster>
TESSERA_DEVICE void cluster_barrier() {
  if constexpr (cluster == 1)
    barrier();
  else
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
/// The same, but in a cluster of several blocks they know gates that have begun (asynchronous_fence) alone.
template <int cluster>
TESSERA_DEVICE void barrier_of_gates() {
  if constexpr (cluster == 1)
    barrier();
  else
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
/// Asks for a tensor map, which the first box would wait for.
TESSERA_DEVICE void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
/// Copies a box of a tensor map to shared memory (a multiple of 1024 bytes) without waiting: lines of 64 numbers, 128
/// bytes, eight of which change their eights' places (the eight at place i of line j lies at i ^ j % 8). What is
/// outside of the tensor is zero. The bytes of the whole box count for the gate. By one thread. Where there are several
/// `sharing` it, those blocks of the cluster whose bits are set have it at the same place, and its bytes count for the
/// gate of each.
template <int sharing>
TESSERA_DEVICE void copy_box(bf16* to, const CUtensorMap& map, Gate* gate, int blocks, int along, int across, int third,
                             int fourth) {
  if constexpr (sharing == 1)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
        "[%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(gate)), "r"(along), "r"(across), "r"(third), "r"(fourth)
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(gate)), "r"(along), "r"(across), "r"(third), "r"(fourth),
        "h"(static_cast<std::uint16_t>(blocks))
        : "memory");
}

/// As barrier, for so many threads; by its name, which is not 0, it differs from others.
template <int name, int count>
TESSERA_DEVICE void barrier_of() {
  asm volatile("bar.sync %0, %1;" ::"n"(name), "n"(count) : "memory");
}

/// Sums are the multiplications' from here on, until they have been waited for. All threads of a warpgroup call this
/// and what follows together.
TESSERA_DEVICE void multiplications_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// The multiplications since the last call become a group.
TESSERA_DEVICE void multiplications_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most `left` groups are under way.
template <int left>
TESSERA_DEVICE void multiplications_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
#define TESSERA_SUMS(i)                                                                                         \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define TESSERA_32_SUMS(i) TESSERA_SUMS(i), TESSERA_SUMS(i + 8), TESSERA_SUMS(i + 16), TESSERA_SUMS(i + 24)
// The operands %t0 to %t9.
#define TESSERA_TEN(t) \
  "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define TESSERA_MULTIPLY(columns, operands, left, right, left_across, right_across)                \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 {" operands "}, " left ", " right \
  ", 1, 1, 1, " left_across ", " right_across ";"
/// sums += left [64 x 16] right [columns x 16]^T of a warpgroup, without waiting, in the fragments of PTX's
/// wgmma.m64nNk16: a thread's sums 4 j to 4 j + 3 are those of multiply_add for eight columns from 8 j on and the
/// warp's 16 rows. left and right are descriptors of shared memory. `left_across`: its lines run along the rows, not
/// along the depth.
template <int columns, bool left_across, bool right_across>
TESSERA_DEVICE void multiply_add_async(float (&sums)[columns / 2], std::uint64_t left, std::uint64_t right) {
  static_assert(columns == 64 || columns == 128 || columns == 192 || columns == 256);
  if constexpr (columns == 64)
    asm volatile(
        TESSERA_MULTIPLY("64", TESSERA_TEN() TESSERA_TEN(1) TESSERA_TEN(2) "%30, %31", "%32", "%33", "%34", "%35")
        : TESSERA_32_SUMS(0)
        : "l"(left), "l"(right), "n"(left_across), "n"(right_across));
  if constexpr (columns == 128)
    asm volatile(TESSERA_MULTIPLY("128",
                                  TESSERA_TEN() TESSERA_TEN(1) TESSERA_TEN(2) TESSERA_TEN(3) TESSERA_TEN(4)
                                      TESSERA_TEN(5) "%60, %61, %62, %63",
                                  "%64", "%65", "%66", "%67")
                 : TESSERA_32_SUMS(0), TESSERA_32_SUMS(32)
                 : "l"(left), "l"(right), "n"(left_across), "n"(right_across));
  if constexpr (columns == 192)
    asm volatile(TESSERA_MULTIPLY("192",
                                  TESSERA_TEN() TESSERA_TEN(1) TESSERA_TEN(2) TESSERA_TEN(3) TESSERA_TEN(4) TESSERA_TEN(
                                      5) TESSERA_TEN(6) TESSERA_TEN(7) TESSERA_TEN(8) "%90, %91, %92, %93, %94, %95",
                                  "%96", "%97", "%98", "%99")
                 : TESSERA_32_SUMS(0), TESSERA_32_SUMS(32), TESSERA_32_SUMS(64)
                 : "l"(left), "l"(right), "n"(left_across), "n"(right_across));
  if constexpr (columns == 256)
    asm volatile(TESSERA_MULTIPLY("256",
                                  TESSERA_TEN() TESSERA_TEN(1) TESSERA_TEN(2) TESSERA_TEN(3) TESSERA_TEN(4) TESSERA_TEN(
                                      5) TESSERA_TEN(6) TESSERA_TEN(7) TESSERA_TEN(8) TESSERA_TEN(9) TESSERA_TEN(10)
                                      TESSERA_TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127",
                                  "%128", "%129", "%130", "%131")
                 : TESSERA_32_SUMS(0), TESSERA_32_SUMS(32), TESSERA_32_SUMS(64), TESSERA_32_SUMS(96)
                 : "l"(left), "l"(right), "n"(left_across), "n"(right_across));
}
#undef TESSERA_SUMS
#undef TESSERA_32_SUMS
#undef TESSERA_TEN
#undef TESSERA_MULTIPLY

// ---- the host ------------------------------------------------------------------------------------------------------

typedef cudaStream_t Stream;

/// How many blocks of `size` hold so many.
inline unsigned blocks_for(std::int64_t count, int size) { return static_cast<unsigned>((count + size - 1) / size); }

inline int present_gpu() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}
inline int sm_count() {
  int count = 0;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, present_gpu());
  return count;
}
/// Whether a kernel since the last call of launch_code needed more shared memory than this GPU gives a block.
inline bool& shared_memory_missing() {
  static thread_local bool missing = false;
  return missing;
}
/// Lets a kernel have so much shared memory, if the GPU has it; CUDA is asked once.
inline bool allow_shared(const void* kernel, std::size_t bytes) {
  constexpr std::size_t without_asking = 48 * 1024;
  if (bytes <= without_asking) return true;
  static thread_local std::map<std::pair<int, const void*>, std::size_t> allowed;
  std::size_t& before = allowed[{present_gpu(), kernel}];
  if (bytes <= before) return true;
  int most = 0;
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, present_gpu());
  if (bytes > static_cast<std::size_t>(most)) {
    shared_memory_missing() = true;
    return false;
  }
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) == cudaSuccess)
    before = bytes;
  return true;
}

/// Starts a kernel. What goes wrong is told by launches_failed and launch_code.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream,
            Arguments... arguments) {
  if (!allow_shared(reinterpret_cast<const void*>(kernel), shared_bytes)) return;
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
}

/// How many blocks of a kernel this GPU has room for at once, in clusters of so many; CUDA is asked once.
inline unsigned room_for(const void* kernel, const cudaLaunchConfig_t& configuration, unsigned cluster) {
  static thread_local std::map<std::pair<int, const void*>, unsigned> known;
  const auto [at, fresh] = known.try_emplace({present_gpu(), kernel}, cluster);
  if (!fresh) return at->second;
  int found = 0;
  if (cudaOccupancyMaxActiveClusters(&found, kernel, &configuration) == cudaSuccess && found > 0)
    at->second = static_cast<unsigned>(found) * cluster;
  return at->second;
}
/// The same for a kernel whose blocks along x share its tiles (warpgroup_product), in clusters of so many: as many as
/// find room at once, no more than there are. The grid counts the tiles of rows, those of columns, and groups.
template <class... Parameters, class... Arguments>
void launch_warpgroups(void (*kernel)(Parameters...), int cluster, dim3 grid, dim3 block, std::size_t shared_bytes,
                       Stream stream, Arguments... arguments) {
  const unsigned size = static_cast<unsigned>(cluster);
  if (!allow_shared(reinterpret_cast<const void*>(kernel), shared_bytes)) return;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(size, 1, grid.z);
  configuration.blockDim = block;
  configuration.dynamicSmemBytes = shared_bytes;
  configuration.stream = stream;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  const unsigned room = room_for(reinterpret_cast<const void*>(kernel), configuration, size) / grid.z / size * size;
  configuration.gridDim.x = std::min((grid.x + size - 1) / size * size * grid.y, std::max(room, size));
  cudaLaunchKernelEx(&configuration, kernel, static_cast<Parameters>(arguments)...);
}
/// Whether a kernel for warpgroups is there for this GPU; CUDA is asked once.
template <class... Parameters>
bool can_launch(void (*kernel)(Parameters...)) {
  static thread_local std::map<std::pair<int, const void*>, bool> known;
  const auto [at, fresh] = known.try_emplace({present_gpu(), reinterpret_cast<const void*>(kernel)});
  if (!fresh) return at->second;
  cudaFuncAttributes attributes;
  return at->second = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.maxThreadsPerBlock > 32;
}
/// Of tensor maps since the last call.
inline bool& maps_failed() {
  static thread_local bool failed = false;
  return failed;
}
/// Of four extents: neighbours in memory, and three whose numbers are so many apart, a multiple of 16 bytes. A box has
/// 64 neighbours of so many lines.
inline CUtensorMap tensor_map(const bf16* first, std::int64_t along, std::int64_t across, std::int64_t third,
                              std::int64_t fourth, std::int64_t to_across, std::int64_t to_third,
                              std::int64_t to_fourth, int lines) {
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  const auto bytes = [](std::int64_t numbers) { return static_cast<cuuint64_t>(numbers) * sizeof(bf16); };
  const cuuint64_t extents[4] = {static_cast<cuuint64_t>(along), static_cast<cuuint64_t>(across),
                                 static_cast<cuuint64_t>(third), static_cast<cuuint64_t>(fourth)};
  cuuint64_t strides[3] = {bytes(to_across), bytes(to_third), bytes(to_fourth)};
  for (int i = 1; i < 3; ++i)
    if (extents[i + 1] == 1) strides[i] = strides[i - 1] * extents[i];  // nobody goes there; as CUDA's manual has it
  const cuuint32_t box[4] = {64, static_cast<cuuint32_t>(lines), 1, 1}, each[4] = {1, 1, 1, 1};
  CUtensorMap map{};
  if (!encode || encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<bf16*>(first), extents, strides, box,
                        each, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    maps_failed() = true;
  return map;
}
/// Whether a launch since the last call was refused.
inline bool launches_failed() {
  const bool maps = maps_failed();
  maps_failed() = false;
  return cudaGetLastError() != cudaSuccess || maps;
}
/// The first of three codes where every launch since the last call was done, the third where shared memory was missing.
inline int launch_code(int done, int refused, int without_memory) {
  const bool failed = launches_failed();
  if (std::exchange(shared_memory_missing(), false)) return without_memory;
  return failed ? refused : done;
}

}  // namespace
