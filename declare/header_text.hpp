// The text of a declaration.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "declare/kind.hpp"

namespace tessera::declare {

/// A Vision Transformer in the words of models/.
struct Model {
  std::string of;  ///< what it is, for the first line
  Kind kind = Kind::vit;
  std::string made_of = "Vit";             ///< the template: Vit, Cait, Swin, SwinV2, SamEncoder or Dpt
  std::string include = "models/vit.hpp";  ///< that declares it and the block
  std::string block;                       ///< a Vit's template, a Dpt's spec of its head; empty: as by default
  std::string alias;                       ///< what a template of the model's own name stands for; empty: none
  /// Where blocks differ: what Qkv is in the alias, and in how many blocks, from the first on.
  std::vector<std::pair<std::string, int>> stacks;
  std::map<std::string, std::string> fields;  ///< of its spec, that are not as by default
  std::int64_t classes = 0;                   ///< 0: no head
  bool has_texts = false;                     ///< it is the image half of a model that was trained with texts too
};

std::string header_text(const Model& model, const Input& input, const std::string& name);

}  // namespace tessera::declare
