// For the test of nvcc_gate: which element is taken is known only when the kernel runs, so that the array has to lie on a
// stack.
__global__ void needs_a_stack(const int* which, float* out) {
  float numbers[64];
  for (int i = 0; i < 64; ++i) numbers[i] = out[i];
  for (int i = 0; i < 64; ++i) numbers[which[i]] += 1;
  for (int i = 0; i < 64; ++i) out[i] = numbers[i];
}
