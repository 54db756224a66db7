#include "declare/header_text.hpp"

#include <array>

#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::text;

std::string header_text(const Model& model, const Input& input, const std::string& name) {
  const auto& [of, include, block_template, alias, stacks, fields, classes, is_cait, has_texts] = model;
  // In the order of VitSpec, as designated initializers have to be.
  static constexpr const char* order[] = {
      "image",     "patch",         "channels",       "width",       "heads",           "head",
      "depth",     "mlp",           "classes",        "rest",        "hidden",          "class_token",
      "distilled", "stem",          "registers",      "positions",   "patch_positions", "norm",
      "norms",     "qkv_bias",      "qk_norm",        "layer_scale", "activation",      "final_norm",
      "pooling",   "pooling_heads", "pooling_hidden", "features",    "representation",  "epsilon"};
  std::string spec;
  for (const char* field : order)
    if (const auto found = fields.find(field); found != fields.end())
      spec += text(spec.empty() ? "" : ",\n", "    .", field, " = ", found->second);
  std::string out =
      text("// ", of, ", as its checkpoint has it: written by `tessera declare`.\n",
           has_texts ? "// Images alone: texts, and zero-shot classification by them, are out of scope.\n" : "",
           "#pragma once\n\n#include \"", include, "\"\n\nnamespace tessera::models {\n\n");
  std::string block = block_template;
  if (!alias.empty()) {
    block = name + (stacks.empty() ? "Block" : "Layer");
    out += text("template <class V", stacks.empty() ? "" : ", class Qkv", ">\nusing ", block, " = ", alias, ";\n\n");
  }
  if (!stacks.empty()) {
    std::string all;
    for (const auto& [qkv, count] : stacks)
      all += text(all.empty() ? "" : ",\n    ", "Stack<", block, "<V, ", qkv, ">, ", count, ">");
    block = name + "Blocks";
    out += text("template <class V>\nusing ", block, " = Stacks<", all, ">;\n\n");
  }
  const std::string text_of_model =
      text(is_cait ? "Cait" : "Vit", spec.empty() ? "<{" : "<{\n", spec, "}", block.empty() ? "" : ", " + block, ">");
  const auto [mean, deviation, crop, bilinear, squash] = input;
  if (mean == std::array{0.5, 0.5, 0.5} && deviation == mean && crop == 0.9 && !bilinear && !squash) {
    out += text("using ", name, " = ", text_of_model, ";\n");
  } else {
    const std::string prepared =
        text("{.mean = ", channels(mean), ", .deviation = ", channels(deviation), ", .crop = ", number(crop),
             bilinear ? ", .interpolation = Interpolation::bilinear" : "", squash ? ", .squash = true" : "", "}");
    out += text("struct ", name, " : ", text_of_model, " {\n");
    out += classes ? text("  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = ", prepared,
                          "};\n")
                   : text("  static constexpr Preprocessing input", prepared, ";\n");
    out += "};\n";
  }
  return out + "\n}  // namespace tessera::models\n";
}

}  // namespace tessera::declare
