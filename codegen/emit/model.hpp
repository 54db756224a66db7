// What the files around the kernels are written from: a model with its programs' plans, and what can be asked of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/plan/arena.hpp"
#include "codegen/plan/plan.hpp"

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
  std::int64_t layers = 0;  ///< whose tokens the features are; 0: they are a row
  std::int64_t token_reals() const { return tokens * width; }
  std::int64_t pooling_reals() const { return heads * keys; }
};
Embedding embedding_of(const ModelFiles& model);
/// The fields of the model's table for them.
std::string embedding_entry(const ModelFiles& model);
/// "4 layers, 197, 384": what is behind the batch.
std::string shape_of_features(const Embedding& embedding);

/// Whether its outputs are depths, a number a pixel, and the field of the model's table for that.
bool tells_depths(const ModelFiles& model);
std::string depth_entry(const ModelFiles& model);

/// What step keeps of an image: how much, and what, as "2 layers of [H=2, K=16, J=16] and [H=2, J=16, K=16]". No parts:
/// there is no step.
struct Cache {
  std::int64_t reals = 0;
  DType element = DType::real;
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

/// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/
std::uint64_t hash_text(const std::string& text);

/// Whether the rows of the outputs sum to one: the declaration ends in a softmax.
bool ends_in_softmax(const graph::Graph& declared);

}  // namespace tessera::codegen
