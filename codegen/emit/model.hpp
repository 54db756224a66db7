// The files around the kernels: the C header, the API's source, the training program. Each function returns a whole
// file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/emit/tree.hpp"
#include "codegen/plan/arena.hpp"

namespace tessera::codegen {

/// All that the files of one model are written from.
struct ModelFiles {
  std::string name;  ///< "vit_mnist"
  std::string real = "float";
  Precision precision = Precision::fp32;
  bool distributed = false;  ///< ranks update slices of the parameters
  std::uint64_t hash = 0;    ///< of the declaration
  graph::Graph forward;      ///< as declared, before any pass
  graph::Graph inspected;    ///< attention maps and magnitudes as outputs
  bool has_head = true;      ///< the outputs are a linear map of features: else, where it embeds, they are the features
  std::vector<Plan> plans;   ///< forward, evaluate, loss_and_gradients, input_gradient, update, inspect; where there is
                             ///< no loss, forward and inspect; where there are features, embed
  Arena arena;
  PackedArena packed;
  std::vector<Target> targets;
  Extent forward_flops, gradient_flops;        ///< of the declaration, before anything is left out
  std::map<std::string, Extent> module_flops;  ///< forward_flops by module

  const Plan& plan(ProgramKind kind) const;
  std::vector<std::int64_t> image_shape() const;   ///< without the batch; of tokens where the model reads these
  std::int64_t image_reals() const;                ///< of an image: pixels, or tokens
  std::vector<std::int64_t> output_shape() const;  ///< without the batch
  std::int64_t output_reals() const;               ///< of an image
  std::vector<std::int64_t> target_shape() const;  ///< of what the loss compares outputs with, where it is no label
  std::int64_t target_reals() const;               ///< of an image
  std::int64_t labels_of_image() const;            ///< 1, or as many as there are rows of outputs
  std::int64_t classes() const;  ///< that labels are of, where the loss reads them; else as many as outputs
  std::int64_t codes() const;    ///< that tokens are of: rows of the smallest table which they pick from
  std::string upper() const;     ///< "VIT_MNIST"
  /// Why the precision that was asked for changes nothing, as a sentence; empty: it changes something.
  std::string why_precision_is_idle() const;
};

/// Where the attention maps of inspect lie: [batch, layers, heads, rows, columns]. No layers: the model has none.
struct AttentionMaps {
  std::int64_t layers = 0, heads = 0, rows = 0, columns = 0;
  std::int64_t of_image() const { return layers * heads * rows * columns; }
};
AttentionMaps attention_maps(const ModelFiles& model);

/// What embed gives of an image: features, tokens [tokens, width], and what a learned query attends to, pooling [heads,
/// keys]. Zeros: the model has none.
struct Embedding {
  std::int64_t features = 0, tokens = 0, width = 0, heads = 0, keys = 0;
  std::int64_t token_reals() const { return tokens * width; }
  std::int64_t pooling_reals() const { return heads * keys; }
};
Embedding embedding_of(const ModelFiles& model);

/// What step keeps of an image: how much, and what, as "2 layers of [H=2, K=16, J=16] and [H=2, J=16, K=16]". No parts:
/// there is no step.
struct Cache {
  std::int64_t reals = 0;
  std::vector<std::string> parts;
};
Cache cache_of(const ModelFiles& model);

/// The layers whose magnitudes inspect gives, in the order in which they are computed: modules by their paths.
std::vector<std::string> layers(const ModelFiles& model);

/// Rows and columns of the patches that the model cuts its images into; zeros: it does not.
struct PatchGrid {
  std::int64_t rows = 0, columns = 0;
};
PatchGrid patch_grid(const ModelFiles& model);

/// The field of runtime/model.hpp's table that holds this grid; nothing where images are not cut.
std::string patches_entry(const ModelFiles& model);

/// runtime/model.hpp's Preprocessing as an initialiser; what is the usual there is not in it.
std::string preprocessing(const graph::Recipe& recipe);

/// Whether the rows of the outputs sum to one: the declaration ends in a softmax.
bool ends_in_softmax(const graph::Graph& declared);

/// The functions of the C API, without bodies; their comments are C comments' lines.
std::vector<tree::Function> api_functions(const ModelFiles& model);

/// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/
std::uint64_t hash_text(const std::string& text);

/// What a model costs: numbers that are known when it is generated, but for the batch. Bytes are those of memory that
/// the caller brings; FLOPs are the declaration's, counted as flops() in codegen/passes says: where the programs leave
/// out what nobody reads, they execute fewer.
struct Contract {
  std::int64_t parameters = 0;       ///< numbers that are learned
  std::int64_t parameter_bytes = 0;  ///< with the gaps between them; the gradients take as many
  std::int64_t optimizer_bytes = 0;  ///< of training, as are train_bytes and train_flops: zero where there is no loss
  Extent forward_bytes;  ///< packed parameters or, where there are none, parameters; images, outputs and scratch
  Extent train_bytes;    ///< parameters, as they are and packed, gradients, optimiser state, images, labels or targets,
                         ///< outputs, loss; not scratch, which is for as many images as are worked on at once
  Extent forward_flops;
  Extent train_flops;  ///< of one step: loss, gradients and update
};
Contract contract(const ModelFiles& model);

/// Every step of a declared graph with what it reads and its named shape; every parameter with its shape, size and
/// whether weight decay applies. A block that is repeated stands once, with how often it runs.
std::string shape_table(const graph::Graph& declared);
/// A row of its first part.
struct ShapeRow {
  graph::NodeId node;
  std::string path, step, shape;
  int layers = 1;
};
std::vector<ShapeRow> shape_rows(const graph::Graph& declared);
/// The shape table and the contract, the latter also at the recipe's batch (of one image, where nothing trains): what
/// NAME_summary() returns.
std::string summary(const ModelFiles& model);

std::string emit_header(const ModelFiles& model);
/// Declares the entry points of each instruction set, for NAME.cpp.
std::string emit_kernels_header(const ModelFiles& model);
std::string emit_api(const ModelFiles& model);
/// `cuda`: it can train on a GPU as well, where it is compiled with TESSERA_CUDA beside NAME_cuda_program.cu. `serve`:
/// it has the command serve.
std::string emit_program(const ModelFiles& model, bool cuda, bool serve);
/// NAME_model.h, NAME_model.cpp and NAME.py. `embedding`: the model without its head (passes/headless.hpp), or null.
std::string emit_model_header(const ModelFiles& model, const ModelFiles* embedding);
std::string emit_model(const ModelFiles& model, const ModelFiles* embedding);
std::string emit_python(const ModelFiles& model, const ModelFiles* embedding);
/// NAME_page.cpp: the page that the program's `summary --html` writes. HTML that needs no other file: what was declared
/// (the graph folded by module, named shapes, parameters, FLOPs) and what became of it (fusion, the memory plan over
/// time, the text of each kernel, which is taken from `kernels`, the emitted file of `target`; `standing`:
/// cpu/file.hpp).
std::string emit_page(const ModelFiles& model, const Target& target, const std::string& kernels,
                      const std::map<std::string, std::string>& standing);

}  // namespace tessera::codegen
