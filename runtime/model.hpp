// What the runtime knows of a model: its emitted C API, as a table of functions and sizes that the emitted program
// fills in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// The same definition stands in every emitted header, so that several models can be used in one file.
#ifndef TESSERA_PARAMETER_DEFINED
#define TESSERA_PARAMETER_DEFINED
extern "C" {
typedef struct tessera_parameter {
  const char* name; /* the checkpoint key */
  int32_t rank;
  int32_t decay; /* 1 where weight decay applies */
  int64_t shape[8];
  int64_t offset;          /* in floats, from the start of the parameters, and of the gradients alike */
  const char* named_shape; /* "[D=192, C=3]" */
} tessera_parameter;
}
#endif
#ifndef TESSERA_CUDA_STEP_DEFINED
#define TESSERA_CUDA_STEP_DEFINED
extern "C" {
typedef struct tessera_cuda_step {
  uint64_t seed;
  int64_t step; /* counted from 1 */
  float learning_rate;
  int32_t stopped; /* not 0: update leaves everything as it is */
} tessera_cuda_step;
}
#endif

namespace tessera::runtime {

struct Batch;

/// Rows and columns of patches.
struct Grid {
  std::int64_t rows = 0, columns = 0;
  bool operator==(const Grid&) const = default;
};

/// The shape of the attention maps: what each token attends to. No layers: the model has no such maps.
struct AttentionMaps {
  std::int64_t layers = 0, heads = 0, rows = 0, columns = 0;
  std::int64_t floats() const { return layers * heads * rows * columns; }
};

/// What `embed` gives of an image: features; tokens [tokens, width], the class token and registers before those of the
/// patches; and what a learned query attends to, pooling [heads, keys]. Zeros: there are none.
struct Embedding {
  std::int64_t features = 0, tokens = 0, width = 0, heads = 0, keys = 0;
  std::int64_t layers = 0;  ///< whose tokens the features are, [layers, tokens, width]; 0: they are a row
  std::int64_t token_floats() const { return tokens * width; }
  std::int64_t pooling_floats() const { return heads * keys; }
};

/// What the outputs of a model tell of each pixel of its image: nothing, the inverse of how far it is away, up to a
/// factor and an offset, or how many metres.
enum class Depth : std::uint8_t { none, inverse, metres };

/// A model on a GPU: its emitted C API for CUDA (NAME_cuda.h), and what a program needs of CUDA beside it, so that the
/// runtime itself does not know CUDA. Work goes into a stream and is done in its order. What CUDA refuses throws a
/// std::runtime_error with one sentence; functions of the model return 0 or an error code that `error` puts into words.
struct Cuda {
  /// Opens the GPU: a stream on it, and its name, "NVIDIA H200". Throws where this machine has none.
  void* (*open)(std::string& name) = nullptr;
  void (*close)(void* stream) = nullptr;
  /// Another stream, whose copies run beside what the first one computes; `close` ends it.
  void* (*open_copies)() = nullptr;
  /// What is put into `stream` from here on begins when all is done that is in `other` by now.
  void (*wait_for)(void* stream, void* other) = nullptr;
  /// Keeps memory of the CPU where it is, so that copies from it need not be waited for, until `unpin`. Whether CUDA
  /// does: it may have no more room for that, and then copies are as before.
  bool (*pin)(void* memory, std::int64_t bytes) = nullptr;
  void (*unpin)(void* memory) = nullptr;
  /// Memory of the GPU, which holds anything. Throws where there is no room.
  void* (*allocate)(std::int64_t bytes) = nullptr;
  void (*release)(void* memory) = nullptr;
  void (*clear)(void* memory, std::int64_t bytes, void* stream) = nullptr;
  /// To the GPU: `from` may be changed afterwards, where it is pinned when the copy is done. From the GPU: `to` holds
  /// the bytes after `wait`.
  void (*copy_in)(void* to, const void* from, std::int64_t bytes, void* stream) = nullptr;
  void (*copy_out)(void* to, const void* from, std::int64_t bytes, void* stream) = nullptr;
  /// Until all work in the stream is done. Throws where any of it failed.
  void (*wait)(void* stream) = nullptr;
  /// What is put into the stream between these two is not done, but becomes a graph, which can be run many times.
  void (*begin_graph)(void* stream) = nullptr;
  void* (*end_graph)(void* stream) = nullptr;
  void (*run_graph)(void* graph, void* stream) = nullptr;
  void (*release_graph)(void* graph) = nullptr;

  // Of the model. Pointers are to the GPU's memory. What only training needs, and `evaluate`, is null where the
  // declaration has no loss.
  std::int64_t packed_bytes = 0;  ///< of the copy of the parameters that products read; 0: they read them as they are
  std::int64_t (*largest_batch)() = nullptr;
  std::int64_t (*forward_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*evaluate_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*train_scratch_bytes)(std::int64_t batch) = nullptr;  ///< of loss_and_gradients and of update
  std::int64_t (*inspect_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*embed_scratch_bytes)(std::int64_t batch) = nullptr;
  const char* (*error)(int code) = nullptr;
  /// Copies the parameters into the form that products read; `update` does so itself.
  int (*pack)(const float* parameters, void* packed, void* stream) = nullptr;
  int (*forward)(const float* parameters, const void* packed, const float* images, std::int64_t batch, float* outputs,
                 void* scratch, void* stream) = nullptr;
  int (*evaluate)(const float* parameters, const void* packed, const float* images, const std::int32_t* labels,
                  std::int64_t batch, float* outputs, float* loss, void* scratch, void* stream) = nullptr;
  int (*inspect)(const float* parameters, const void* packed, const float* images, std::int64_t batch, float* maps,
                 float* magnitudes, void* scratch, void* stream) = nullptr;
  int (*embed)(const float* parameters, const void* packed, const float* images, std::int64_t batch, float* features,
               float* tokens, float* pooling, void* scratch, void* stream) = nullptr;
  /// Reads the labels or, where the recipe softens them, the targets.
  int (*loss_and_gradients)(const float* parameters, const void* packed, const float* images,
                            const std::int32_t* labels, const float* targets, const tessera_cuda_step* step,
                            std::int64_t batch, float* outputs, float* loss, float* gradients, void* scratch,
                            void* stream) = nullptr;
  /// In place of `evaluate` and `loss_and_gradients`, of a model that reads tokens.
  int (*evaluate_tokens)(const float* parameters, const void* packed, const std::int32_t* tokens,
                         const std::int32_t* labels, std::int64_t batch, float* outputs, float* loss, void* scratch,
                         void* stream) = nullptr;
  int (*token_gradients)(const float* parameters, const void* packed, const std::int32_t* tokens,
                         const std::int32_t* labels, const tessera_cuda_step* step, std::int64_t batch, float* outputs,
                         float* loss, float* gradients, void* scratch, void* stream) = nullptr;
  /// In place of `loss_and_gradients`, of a phase of a training step: reads the factor of the adversarial losses,
  /// and gives the numbers of the phase's table of losses, too.
  int (*phase)(const float* parameters, const void* packed, const float* images, const float* factor,
               const tessera_cuda_step* step, std::int64_t batch, float* outputs, float* losses, float* loss,
               float* gradients, void* scratch, void* stream) = nullptr;
  /// Sets step->stopped where the loss or a gradient is not a number.
  int (*check)(const float* loss, const float* gradients, tessera_cuda_step* step, void* stream) = nullptr;
  /// The same of a phase, whose losses have to be numbers, too.
  int (*check_phase)(const float* losses, const float* loss, const float* gradients, tessera_cuda_step* step,
                     void* stream) = nullptr;
  /// sum = kept * sum + weight * gradients. Only where the recipe gathers several batches for a step.
  int (*gather)(float* sum, const float* gradients, float kept, float weight, void* stream) = nullptr;
  /// The same of `count` elements alone. Only where the program runs as several ranks.
  int (*gather_range)(float* sum, const float* gradients, std::int64_t count, float kept, float weight,
                      void* stream) = nullptr;
  int (*update)(float* parameters, void* packed, const float* gradients, float* optimizer,
                const tessera_cuda_step* step, void* scratch, void* stream) = nullptr;
  // Only where the program runs as several ranks.
  /// As update, of the parameters in [from, to) alone, whose state is all that `optimizer` holds.
  int (*update_range)(float* parameters, void* packed, const float* gradients, float* optimizer, std::int64_t from,
                      std::int64_t to, const double* squares, const tessera_cuda_step* step, void* scratch,
                      void* stream) = nullptr;
  /// squares [64]: the sums of squares of these chunks of the gradients. Null: nothing is clipped.
  int (*squares)(const float* gradients, std::int32_t first_chunk, std::int32_t last_chunk, double* squares,
                 void* stream) = nullptr;
};

/// A short message of one rank to another, beside the bytes that they exchange: a failure detector's.
struct Notice {
  /// `ping` asks whether a rank is alive and waits as well, `end` says that the sender has told the user why the run
  /// ends; both are acknowledged.
  enum class Kind : std::int64_t { ping, ack, end };
  Kind kind = Kind::ping;
  std::int64_t number = 0;  ///< of a ping or an end, from 1 on each rank; an ack has that of what it acknowledges
};

/// What a program needs of the engine (MPI) that moves bytes between ranks, the processes that train one model
/// together, so that the runtime itself does not know it. What the engine refuses throws a std::runtime_error with one
/// sentence.
struct Ranks {
  /// Joins the others: which rank this is, from 0, and how many there are.
  void (*open)(int& rank, int& count) = nullptr;
  /// Leaves, after the others have come here too.
  void (*close)() = nullptr;
  /// Begin to move bytes, which stay where they are until nothing is pending. What one rank sends another arrives in
  /// the order in which it was sent.
  void (*send)(const void* from, std::int64_t bytes, int rank) = nullptr;
  void (*receive)(void* to, std::int64_t bytes, int rank) = nullptr;
  /// A rank with which something that was begun is not done, or -1.
  int (*pending)() = nullptr;
  /// Sends a notice and waits for nobody. A rank that cannot be reached does not get it; nothing is thrown.
  void (*tell)(const Notice& notice, int rank) = nullptr;
  /// The next notice that has arrived, and whose it is; false where there is none.
  bool (*hear)(Notice& notice, int& rank) = nullptr;
};

/// What a program needs of the engine (NCCL) that moves bytes between the GPUs of ranks, so that the runtime itself
/// does not know it. What it refuses throws a std::runtime_error with one sentence. Nothing waits: `done` tells.
struct GpuRanks {
  static constexpr std::int64_t id_bytes = 128;
  /// Which GPU this process uses from now on: the one of that number, counted round and round.
  void (*choose)(int number) = nullptr;
  /// Makes what rank 0 gives to all: by it they find each other.
  void (*make_id)(void* id) = nullptr;
  void (*join)(const void* id, int rank, int count) = nullptr;
  void (*leave)() = nullptr;
  /// What is sent and received between `begin` and `end` moves together, in the order of the stream. What one rank
  /// sends another arrives in the order in which it was sent.
  void (*begin)() = nullptr;
  void (*send)(const void* from, std::int64_t bytes, int rank, void* stream) = nullptr;
  void (*receive)(void* to, std::int64_t bytes, int rank, void* stream) = nullptr;
  void (*end)() = nullptr;
  /// Whether all ranks have joined and all work in the stream, where one is given, is done.
  bool (*done)(void* stream) = nullptr;
  /// The same engine, once joined, as what carries bytes between ranks where there is no other, by way of the GPUs'
  /// memory; it does not open, tell or hear.
  const Ranks* ranks = nullptr;
};

/// Sizes and entry points of one emitted model. Every function returns 0 or an error code that `error` puts into words.
/// All memory is the caller's, aligned to `alignment` bytes. `batch` may be any number from 1 on. What only training
/// needs, and `evaluate`, is missing (zero, or null) where the declaration has no loss.
struct Model {
  std::string name;                    ///< "vit_mnist"
  std::uint64_t declaration_hash = 0;  ///< changes with the declaration
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_floats = 0;       ///< of the parameters, and of the gradients
  std::int64_t packed_floats = 0;          ///< of the copy of the parameters that `pack` makes
  std::int64_t packed_forward_floats = 0;  ///< of the one that `pack_forward` makes
  /// What the optimiser keeps, each as long as the parameters and zero at the start, one after the other: what their
  /// keys begin with in checkpoints. "average." is the moving average of the parameters, which is what is evaluated.
  std::vector<std::string> optimizer_state{};
  std::int64_t image_shape[3]{};  ///< channels, height, width
  Grid patches{};                 ///< that an image is cut into; zeros: it is not
  std::int64_t classes = 0;       ///< numbers in a row of outputs
  std::int64_t alignment = 64;
  bool outputs_are_probabilities = false;  ///< the rows of outputs already sum to one
  bool outputs_are_features = false;       ///< the model has no head: there are no classes
  Depth depth = Depth::none;               ///< outputs are a number for each pixel: there are no classes
  std::string summary;                     ///< the shape table, as text
  std::string optimizer{}, schedule{};     ///< what the declared recipe says of them, as text
  const char* onnx = nullptr;              ///< the forward pass as runtime/onnx.hpp reads it

  bool has_loss() const { return evaluate != nullptr; }
  bool has_classes() const { return !outputs_are_features && depth == Depth::none; }
  std::int64_t optimizer_floats() const { return static_cast<std::int64_t>(optimizer_state.size()) * parameter_floats; }
  /// Where the moving average stands in the optimiser's state; nothing where there is none.
  std::optional<std::int64_t> average_offset() const {
    for (std::size_t i = 0; i < optimizer_state.size(); ++i)
      if (optimizer_state[i] == "average.") return static_cast<std::int64_t>(i) * parameter_floats;
    return std::nullopt;
  }

  std::int64_t (*forward_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*evaluate_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*train_scratch_bytes)(std::int64_t at_once) = nullptr;
  std::int64_t (*images_at_once)(std::int64_t batch) = nullptr;  ///< in training
  std::int64_t (*inspect_scratch_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*embed_scratch_bytes)(std::int64_t batch) = nullptr;

  const char* (*error)(int code) = nullptr;
  const char* (*isa)() = nullptr;  ///< the kernels in use: "scalar", "avx2", "avx512"
  int (*init)(float* parameters, std::uint64_t seed) = nullptr;
  /// Copies the parameters into the form that training reads: `packed_floats`. Updates keep it so.
  int (*pack)(const float* parameters, float* packed) = nullptr;
  /// Copies the parameters into the form that `forward`, `evaluate`, `inspect` and `embed` read:
  /// `packed_forward_floats`.
  int (*pack_forward)(const float* parameters, float* packed) = nullptr;
  /// outputs [batch, classes] of images [batch, C, H, W].
  int (*forward)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* outputs,
                 void* scratch) = nullptr;
  /// As forward, and the mean loss over the batch.
  int (*evaluate)(const float* parameters, const float* packed, const float* images, const std::int32_t* labels,
                  std::int64_t batch, float* outputs, float* loss, void* scratch) = nullptr;
  /// A first training step of the recipe at a small learning rate, of packed parameters: what `bench` times.
  int (*train_step)(float* parameters, float* packed, float* gradients, float* optimizer, const Batch& batch,
                    float* outputs, float* loss, void* scratch) = nullptr;
  /// maps [batch, attention.layers, heads, rows, columns], whose rows sum to one, and magnitudes [batch,
  /// layers.size()], the means of |x| of what each layer gives.
  int (*inspect)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* maps,
                 float* magnitudes, void* scratch) = nullptr;
  /// Of images: features [batch, embedding.features], what the head reads or, without one, the outputs; tokens [batch,
  /// embedding.tokens, embedding.width]; pooling [batch, embedding.heads, embedding.keys], rows summing to one. Null:
  /// the model has no features.
  int (*embed)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* features,
               float* tokens, float* pooling, void* scratch) = nullptr;
  Embedding embedding{};
  AttentionMaps attention{};
  std::span<const char* const> layers{};  ///< keys of modules, in the order in which they run
  /// What the CUDA kernels should take on such a GPU, "A100" or "sm_80" and the like, as a table; null: none were
  /// emitted. Throws std::invalid_argument for another one.
  std::string (*predict)(const std::string& architecture, std::int64_t batch) = nullptr;
  const Cuda* cuda = nullptr;           ///< the same model on a GPU; null: the program was built without
  const GpuRanks* gpu_ranks = nullptr;  ///< what carries bytes between their GPUs; null: they compute on CPUs alone
  const Ranks* ranks = nullptr;         ///< what carries bytes between ranks; null: the program was built to run alone
  std::span<const char* const>
      isas{};  ///< where there are ranks: the instruction sets that `isa` may give, the widest last
};

/// What training images go through before they are normalised, each by chance.
struct Augmentation {
  std::int64_t crop = 0;  ///< pixels of black around the image before a crop of its size is taken from it
  bool flip = false;      ///< left and right
  int operations = 0;     ///< of RandAugment (Cubuk et al. 2020): how many, one after the other
  int magnitude = 9;      ///< of RandAugment, from 0 to 30
  double erase = 0;       ///< the chance that a box is overwritten with noise (Zhong et al. 2020)

  bool any() const { return crop > 0 || flip || operations > 0 || erase > 0; }
};

/// How a picture is scaled: Pillow's filters of these names.
enum class Interpolation : std::uint8_t { bicubic, bilinear };

/// What becomes of a picture of other proportions: the middle is cut out, both sides are scaled, or the longer one is
/// and what is left below it or to the right is 0.
enum class Fit : std::uint8_t { cut, squash, pad };

/// What a picture goes through before the model reads it.
struct Preprocessing {
  std::array<double, 3> mean{}, deviation{1, 1, 1};  ///< a pixel in [0, 1] enters as (pixel - mean) / deviation
  double crop = 0;  ///< the share of a scaled picture's shorter side that is cut out of it; 0: all of it is fitted in
  Interpolation interpolation = Interpolation::bicubic;  ///< where it is cropped
  Fit fit = Fit::cut;                                    ///< where it is cropped
};

/// The most that a command line or a checkpoint may ask for.
inline constexpr std::int64_t most_batch = 1'000'000, most_epochs = 1'000'000;
inline constexpr double most_learning_rate = 1e6;

/// The declared training recipe.
struct Recipe {
  std::int64_t batch = 128;
  std::int64_t epochs = 5;
  double learning_rate = 0.005;
  std::uint64_t seed = 1;
  Preprocessing input{};
  std::int64_t accumulate = 1;  ///< batches whose gradients are averaged for one step
  std::int64_t patience = 0;    ///< epochs without a better test loss after which training stops; 0: never
  double smoothing = 0;         ///< the share of a label that goes to all classes alike (Szegedy et al. 2016)
  double mixup = 0;             ///< alpha of the Beta distribution: blended images (Zhang et al. 2018); 0: none
  double cutmix = 0;            ///< alpha of the Beta distribution: pasted boxes (Yun et al. 2019); 0: none
  Augmentation augment{};

  /// Whether training takes probabilities in the place of labels.
  bool softens() const { return smoothing > 0 || mixup > 0 || cutmix > 0; }
};

}  // namespace tessera::runtime
