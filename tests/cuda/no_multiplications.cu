// A kernel that the gate refuses: a product with nothing on tensor cores in it.
template <int, int, int, int>
__device__ void tensor_product(float* out) {
  out[threadIdx.x] = 0;
}

__global__ void __launch_bounds__(32) empty_product(float* out) {
  tensor_product<32, 32, 2, 2>(out);
}

template <int, int, int, int, int, int, bool, bool>
__device__ void warpgroup_product(float* out) {
  out[threadIdx.x] = 0;
}

#define TESSERA_THREADS_OF_WARPGROUPS(count) count
__global__ void __launch_bounds__(TESSERA_THREADS_OF_WARPGROUPS(288), 1) empty_warpgroups(float* out) {
  warpgroup_product<128, 256, 2, 1, 4, 2, true, false>(out);
}
