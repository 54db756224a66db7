/* What vit_mnist costs, told to the compiler: C11 and C++ alike. The numbers are counted by hand. */
#include <assert.h>

#include "vit_mnist.h"

/* Memory: what a caller of vit_mnist_train_step brings. */
static_assert(VIT_MNIST_TRAIN_BYTES(64, 4) < INT64_C(8) << 30, "a training step fits into 8 GiB");
static_assert(VIT_MNIST_PARAMETER_BYTES == 4 * VIT_MNIST_PARAMETER_FLOATS, "");
static_assert(VIT_MNIST_OPTIMIZER_BYTES == 4 * VIT_MNIST_OPTIMIZER_FLOATS, "");
static_assert(VIT_MNIST_TRAIN_BYTES(64, 4) == 2 * VIT_MNIST_PARAMETER_BYTES + VIT_MNIST_OPTIMIZER_BYTES +
                                                  64 * 4 * (28 * 28 + 1 + 10) + 4 + VIT_MNIST_TRAIN_SCRATCH_BYTES(4),
              "parameters, gradients and optimizer; images, labels and outputs; the loss; scratch");
static_assert(VIT_MNIST_FORWARD_BYTES(64) ==
                  VIT_MNIST_PARAMETER_BYTES + 64 * 4 * (28 * 28 + 10) + VIT_MNIST_FORWARD_SCRATCH_BYTES(64),
              "parameters, images, outputs, scratch");

/* FLOPs of an image, forward: 50 tokens of 8 numbers, 2 heads of 4, 2 blocks. */
enum {
  patches = 49 * (2 * 16 * 8 + 8) + 49 * 8, /* the map with its bias, and the positions of the patches */
  norm = 50 * (5 * 8 + 4 + 2 * 8),          /* mean, variance, deviation, and the scale and shift that are learned */
  maps = 2 * 3 * 50 * (2 * 4 * 4 + 4),      /* queries, keys and values of each head, with biases */
  scores = 2 * 50 * 50 * (2 * 4 + 1),       /* products, scaled */
  softmax = 2 * 50 * 50 * 5,                /* largest, difference, exponential, sum, quotient */
  values = 2 * 50 * 50 * 2 * 4,
  mlp = 50 * (2 * 8 * 32 + 32 + 32 + 2 * 32 * 8 + 8), /* two maps with biases, and the GELU between them */
  residuals = 2 * 50 * 8,
  head = 2 * 8 * 10 + 10 + 5 * 10, /* the map with its bias, and a softmax */
  forward = patches + 2 * (2 * norm + maps + scores + softmax + values + mlp + residuals) + head,
  class_token = 8 /* its position, once for all images */
};
static_assert(VIT_MNIST_FORWARD_FLOPS(64) == class_token + 64 * forward, "");
static_assert(VIT_MNIST_TRAIN_FLOPS(64) > 2 * VIT_MNIST_FORWARD_FLOPS(64), "backwards each product is two");

#ifdef EXPECTED_TO_FAIL
static_assert(VIT_MNIST_TRAIN_BYTES(64, 4) < INT64_C(1) << 18, "a training step does not fit into 256 KiB");
#endif
