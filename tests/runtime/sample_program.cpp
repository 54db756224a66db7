// sample: the program. What follows is what the generator emits for a model, here for the one written by hand.
#include "runtime/program.hpp"
#ifdef SAMPLE_SERVES
#include "runtime/serve/command.hpp"
#endif
#include "tests/runtime/sample_model.h"

namespace {

using namespace tessera::runtime;

// The recipe, as declared. The command line can change the first four.
const Recipe declared{
    .batch = 64,
    .epochs = 2,
    .learning_rate = 0.002,
    .seed = 1,
    .input = {.mean = {0, 0, 0}, .deviation = {1, 1, 1}, .crop = 0},
};

int train_step(float* parameters, float* packed, float* gradients, float* optimizer, const Batch& batch, float* outputs,
               float* loss, void* scratch) {
  return sample_train_step(parameters, packed, gradients, optimizer, batch.images, batch.labels, batch.size, 1, 1,
                           1e-4f, outputs, loss, scratch);
}

// The forward pass in the words of ONNX, for export --onnx: see runtime/onnx.hpp.
const char onnx[] = R"onnx(
input images float B 1 28 28
output outputs float B 10
int64 #ints:-1,784 2 : -1 784
head#1 = Reshape images #ints:-1,784
head#2 = Einsum head#1 head.weight equation="ab,cb->ac"
outputs = Add head#2 head.bias
)onnx";

const Model model{
    .name = "sample",
    .declaration_hash = SAMPLE_DECLARATION_HASH,
    .parameters = sample_parameters,
    .parameter_floats = SAMPLE_PARAMETER_FLOATS,
    .optimizer_state = {"optimizer.m.", "optimizer.v."},
    .image_shape = {1, 28, 28},
    .classes = 10,
    .alignment = 64,
    .outputs_are_probabilities = false,
    .summary = "images [B, 784]\nhead   [B, 10]\n",
    .optimizer = "Adam",
    .schedule = "constant",
    .onnx = onnx,
    .forward_scratch_bytes = sample_scratch_bytes,
    .evaluate_scratch_bytes = sample_scratch_bytes,
    .train_scratch_bytes = sample_scratch_bytes,
    .images_at_once = sample_images_at_once,
    .inspect_scratch_bytes = sample_scratch_bytes,
    .error = sample_error,
    .isa = sample_isa,
    .init = sample_init,
    .pack = sample_pack_forward,
    .pack_forward = sample_pack_forward,
    .forward = sample_forward,
    .evaluate = sample_evaluate,
    .train_step = train_step,
    .inspect = sample_inspect,
    .layers = sample_layers,
};

/// The learning rate of a step, counted from 1: constant.
float learning_rate(const Recipe& recipe, std::int64_t) { return static_cast<float>(recipe.learning_rate); }

/// The training loop. Each epoch sees every image once, in an order that (seed, epoch) decides.
int train(Session& run) {
  const Recipe& recipe = run.recipe();
  if (run.is_new()) run.check(sample_init(run.parameters(), recipe.seed));

  for (std::int64_t epoch = run.epoch(); epoch < recipe.epochs; ++epoch) {
    run.begin_epoch();
    while (const Batch* batch = run.next_batch()) {
      const std::int64_t step = run.step();
      float loss = 0;
      run.check(sample_loss_and_gradients(run.parameters(), run.packed(), batch->images, batch->labels, batch->size,
                                          recipe.seed, step, run.outputs(), &loss, run.gradients(), run.scratch()));
      run.count(loss);  // ends the run where something is not a number
      run.check(sample_update(run.parameters(), run.gradients(), run.optimizer(), step, learning_rate(recipe, step)));
      if (!run.record()) return run.stop();
    }
    run.end_epoch();
  }
  return run.finish();
}

}  // namespace

#ifdef SAMPLE_SERVES
int main(int argc, char** argv) { return program(model, declared, train, argc, argv, serve::command(declared)); }
#else
int main(int argc, char** argv) { return program(model, declared, train, argc, argv); }
#endif
