#include "runtime/taming_keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runtime/error.hpp"

namespace tessera::runtime {

namespace {

constexpr std::string_view transformer_front = "transformer.", first_stage_front = "first_stage_model.",
                           condition_front = "cond_stage_model.";

bool has_parameter(const Model& model, std::string_view key) {
  return std::ranges::any_of(model.parameters, [&](const tessera_parameter& row) { return row.name == key; });
}

bool is_of_part(std::string_view key, std::string_view part) {
  return key.starts_with(part) && key.size() > part.size() && key[part.size()] == '.';
}

/// Whether a key is of a part of the VQGAN that this program of it does not have.
bool is_of_another_half(std::string_view key, const Model& model) {
  constexpr std::array<std::string_view, 6> parts{"encoder",         "decoder",  "quant_conv",
                                                  "post_quant_conv", "quantize", "loss"};
  return std::ranges::any_of(parts, [&](std::string_view part) {
    return is_of_part(key, part) && std::ranges::none_of(model.parameters, [&](const tessera_parameter& row) {
             return is_of_part(row.name, part);
           });
  });
}

}  // namespace

Safetensors from_taming(Safetensors file, const Model& model, std::vector<std::string>& left_out) {
  const bool transformer = has_parameter(model, "tok_emb.weight") && has_parameter(model, "pos_emb");
  const bool vqgan = has_parameter(model, "quantize.embedding.weight");
  if (!transformer && !vqgan) return file;
  const std::string_view front = transformer ? transformer_front : first_stage_front;
  const bool fronted = std::ranges::any_of(file.tensors, [&](const auto& one) { return one.first.starts_with(front); });
  const auto is_left_out = [&](const std::string& key) {
    if (!transformer)
      return (fronted && !key.starts_with(front)) || is_of_another_half(key.substr(fronted ? front.size() : 0), model);
    return key.ends_with(".attn.mask") || key.starts_with(first_stage_front) || key.starts_with(condition_front);
  };
  std::map<std::string, Tensor> tensors;
  for (auto& [key, tensor] : file.tensors) {
    if (is_left_out(key)) {
      left_out.push_back(key);
      continue;
    }
    const std::string name = key.starts_with(front) ? key.substr(front.size()) : key;
    if (!tensors.emplace(name, std::move(tensor)).second)
      fail(file.where, ": holds ", printable(name), " with and without ", printable(std::string(front)),
           " in front of it");
  }
  file.tensors = std::move(tensors);
  return file;
}

Safetensors as_taming(Safetensors file) {
  std::map<std::string, Tensor> tensors;
  for (auto& [key, tensor] : file.tensors) tensors.emplace(std::string(transformer_front) + key, std::move(tensor));
  file.tensors = std::move(tensors);
  return file;
}

}  // namespace tessera::runtime
