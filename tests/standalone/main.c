/* A C99 user of the emitted vit_mnist, with no other file of the project: init, forward, and a look at the outputs. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "vit_mnist.h"

enum { batch = 3, pixels = 28 * 28, classes = 10 };

/* Memory aligned as the header demands (C99 has no aligned_alloc); lives until the program ends. */
static void* aligned(size_t bytes) {
  char* raw = malloc(bytes + VIT_MNIST_ALIGNMENT);
  if (!raw) exit(2);
  return raw + (VIT_MNIST_ALIGNMENT - (uintptr_t)raw % VIT_MNIST_ALIGNMENT);
}

int main(void) {
  float* parameters = aligned(VIT_MNIST_PARAMETER_FLOATS * sizeof(float));
  float* images = aligned(batch * pixels * sizeof(float));
  float* outputs = aligned(batch * classes * sizeof(float));
  void* scratch = aligned((size_t)VIT_MNIST_FORWARD_SCRATCH_BYTES(batch));
  int i, k, code;

  for (i = 0; i < batch * pixels; ++i) images[i] = (float)(i % 17) / 16;
  code = vit_mnist_init(parameters, 7);
  if (code == 0) code = vit_mnist_forward(parameters, NULL, images, batch, outputs, scratch);
  if (code != 0) {
    fprintf(stderr, "error %d: %s\n", code, vit_mnist_error(code));
    return 1;
  }
  for (i = 0; i < batch; ++i) {
    double sum = 0;
    for (k = 0; k < classes; ++k) sum += outputs[i * classes + k];
    if (!(fabs(sum - 1) < 1e-5)) {
      fprintf(stderr, "the probabilities of image %d sum to %g\n", i, sum);
      return 1;
    }
  }
  printf("%s: forward of %d images\n", vit_mnist_isa(), (int)batch);
  return 0;
}
