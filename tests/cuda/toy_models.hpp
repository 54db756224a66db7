// The declared models at sizes at which their CUDA kernels run on the CPU in a moment.
#pragma once

#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_notebook.hpp"

namespace tessera::models {

/// tests/golden/vit_tiny_small
using ToyVit = Vit<{.image = 32, .patch = 8, .width = 24, .heads = 3, .depth = 2, .classes = 10}>;
/// Every product of it is wide enough for the CPU back end, too, to round its factors.
using ToyWideVit = Vit<{.image = 32, .patch = 8, .width = 32, .heads = 2, .depth = 2, .classes = 18}>;
/// tests/golden/cifar_vit_small, but with dropout.
using ToyCifarVit = CifarVit<{.image = 16, .width = 32, .heads = 4, .layers = 2, .mlp = 64, .dropout = 0.2}>;
/// tests/golden/notebook_vit_small
using ToyNotebookVit =
    NotebookVit<{.height = 32, .width = 24, .patch = 8, .token = 16, .heads = 4, .classes = 10, .blocks = 3}>;

/// Whose times tests/cuda/times_test.py writes tables of.
using TimedVit = Vit<{.image = 32, .width = 64, .heads = 2, .depth = 3}>;

}  // namespace tessera::models
