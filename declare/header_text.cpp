#include "declare/header_text.hpp"

#include <array>
#include <string_view>

#include "codegen/embedded.hpp"
#include "runtime/error.hpp"
#include "runtime/text_reader.hpp"

namespace tessera::declare {

using runtime::text;

namespace {

/// Whether the header, "models/vit.hpp", or one of models/ that it includes declares something of this name.
bool declares(const std::string& header, const std::string& name) {
  runtime::TextReader lines{std::string(codegen::embedded(header))};
  constexpr std::string_view includes = "#include \"models/";
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view kind : {"struct ", "class ", "enum class ", "concept ", "using "}) {
      if (!line.starts_with(kind)) continue;
      const std::string_view declared = std::string_view(line).substr(kind.size());
      if (declared.starts_with(name) && declared.find_first_of(" :;{<") == name.size()) return true;
    }
    if (line.starts_with(includes) && declares(line.substr(10, line.size() - 11), name)) return true;
  }
  return false;
}

}  // namespace

std::string header_text(const Model& model, const Input& input, const std::string& name) {
  const auto& [of, kind, made_of, include, block_template, alias, stacks, fields, classes, has_texts] = model;
  // In the order of VitSpec, of SwinSpec and of SamSpec, as designated initializers have to be.
  static constexpr const char* order[] = {"image",
                                          "patch",
                                          "channels",
                                          "width",
                                          "heads",
                                          "head",
                                          "depth",
                                          "depths",
                                          "windows",
                                          "mlp",
                                          "window",
                                          "whole_every",
                                          "learned_positions",
                                          "neck",
                                          "classes",
                                          "rest",
                                          "hidden",
                                          "class_token",
                                          "distilled",
                                          "stem",
                                          "registers",
                                          "positions",
                                          "patch_positions",
                                          "norm",
                                          "norms",
                                          "qkv_bias",
                                          "qk_norm",
                                          "layer_scale",
                                          "activation",
                                          "final_norm",
                                          "pooling",
                                          "pooling_heads",
                                          "pooling_hidden",
                                          "features",
                                          "layers",
                                          "representation",
                                          "epsilon",
                                          "position_mlp",
                                          "pretrained_windows"};
  std::string spec;
  for (const char* field : order)
    if (const auto found = fields.find(field); found != fields.end())
      spec += text(spec.empty() ? "" : ",\n", "    .", field, " = ", found->second);
  std::string out =
      text("// ", of, ", as its checkpoint has it: written by `tessera declare`.\n",
           has_texts ? "// Images alone: texts, and zero-shot classification by them, are out of scope.\n" : "",
           "#pragma once\n\n#include \"", include, "\"\n\nnamespace tessera::models {\n\n");
  const auto demand_free = [&, &in = include](const std::string& made) {
    if (declares(in, made))
      runtime::fail("the name ", name, " cannot be had, since ", in, " has ", made, "; --name gives another");
  };
  demand_free(name);
  std::string block = block_template;
  if (!alias.empty()) {
    block = name + (stacks.empty() ? "Block" : "Layer");
    demand_free(block);
    out += text("template <class V", stacks.empty() ? "" : ", class Qkv", ">\nusing ", block, " = ", alias, ";\n\n");
  }
  if (!stacks.empty()) {
    std::string all;
    for (const auto& [qkv, count] : stacks)
      all += text(all.empty() ? "" : ",\n    ", "Stack<", block, "<V, ", qkv, ">, ", count, ">");
    block = name + "Blocks";
    demand_free(block);
    out += text("template <class V>\nusing ", block, " = Stacks<", all, ">;\n\n");
  }
  const std::string text_of_model =
      text(made_of, spec.empty() ? "<{" : "<{\n", spec, "}", block.empty() ? "" : ", " + block, ">");
  const auto [mean, deviation, crop, bilinear, fit] = input;
  if (input == input_of(kind)) {
    out += text("using ", name, " = ", text_of_model, ";\n");
  } else {
    const std::string prepared =
        text("{.mean = ", channels(mean), ", .deviation = ", channels(deviation), ", .crop = ", number(crop),
             bilinear ? ", .interpolation = Interpolation::bilinear" : "",
             fit == runtime::Fit::squash ? ", .fit = Fit::squash"
             : fit == runtime::Fit::pad  ? ", .fit = Fit::pad"
                                         : "",
             "}");
    out += text("struct ", name, " : ", text_of_model, " {\n");
    out += classes ? text("  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = ", prepared,
                          "};\n")
                   : text("  static constexpr Preprocessing input", prepared, ";\n");
    out += "};\n";
  }
  return out + "\n}  // namespace tessera::models\n";
}

}  // namespace tessera::declare
