// For the test of nvcc_gate: the last bits of this sum depend on the order in which threads come.
__global__ void has_an_atomic(const float* numbers, float* sum) { atomicAdd(sum, numbers[threadIdx.x]); }
