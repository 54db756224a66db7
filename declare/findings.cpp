#include "declare/findings.hpp"

#include <algorithm>

#include "declare/architecture.hpp"
#include "declare/kind.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::printable;
using runtime::printed;
using runtime::Shape;
using runtime::text;

Findings::Findings(const Checkpoint& of, const Config& with) : checkpoint(of), config(with) {
  if (!checkpoint.keys.wrapper.empty())
    assume(text("keys are read without ", printable(checkpoint.keys.wrapper), ", which stands before each"));
  if (!checkpoint.keys.are_timms()) assume(text("keys are those of ", library()));
  if (!library().starts_with(config.library))
    fail(config.where, ": is a configuration of ", config.library, ", and the checkpoint's keys are those of ",
         library());
  if (!config.facts.empty()) {
    facts = config.facts;
  } else if (config.architecture.empty() && !checkpoint.keys.are_timms()) {
    assume_usual();
  } else if (config.architecture.empty()) {
    const Kind kind = kind_of(checkpoint);
    assume(kind == Kind::vit
               ? "no configuration names the architecture: activation, epsilon and positions are those of "
                 "ViT"
               : text("no configuration names the architecture: epsilon is that of a ", name_of(kind)));
  } else if (const auto found = facts_of(config.architecture)) {
    facts = *found;
  } else {
    fail(config.where, ": timm has no plain Vision Transformer ", printable(config.architecture),
         ", and only its name would tell heads, activation and positions");
  }
  if (library() == "Hugging Face's CLIP with classes") facts["pool"] = "avg";
  for (const auto& [key, shape] : checkpoint.shapes)
    if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 1 || dim > (1 << 24); }))
      fail(checkpoint.where, ": ", named(key), " ", printed(shape), " has a dim that is not from 1 to 16777216");
  if (const auto& out = checkpoint.left_out; !out.empty())
    assume(text(printable(out[0]), out.size() > 1 ? text(" and ", out.size() - 1, " more are") : " is",
                " left out: images do not need ", out.size() > 1 ? "them" : "it",
                out.size() > 1 && trained_with_texts() ? ", and texts are out of scope" : ""));
}

bool Findings::trained_with_texts() const {
  const auto says = [](const std::string& name, const char* word) { return name.find(word) != std::string::npos; };
  const std::string whose = library();
  return (says(whose, "CLIP") || says(whose, "SigLIP") || says(whose, "BLIP") || says(config.architecture, "_clip_") ||
          says(config.architecture, "_siglip_")) &&
         !says(whose, "with classes");
}

/// Of another library without a configuration: what its published models are.
void Findings::assume_usual() {
  const std::string whose = library();
  const auto is = [&](const char* part) { return whose.find(part) != std::string::npos; };
  facts["layer_scale"] = "1";
  facts["gate"] = "silu";
  facts["activation"] = is("Hugging Face's CLIP") ? "quick_gelu" : is("SigLIP") ? "gelu_tanh" : "gelu";
  facts["epsilon"] = is("Hugging Face's ViT") || is("BEiT")                   ? "1e-12"
                     : is("CLIP") || is("BLIP") || is("DINOv3") || is("Swin") ? "1e-05"
                                                                              : "1e-06";
  if (is("DINOv3")) facts["rope"] = dino3_rope(100);
  // In keys of ViT and BEiT there are models of a class token and others.
  if (!is("Hugging Face's ViT") && !is("BEiT") && !is("SigLIP")) facts["pool"] = "token";
  assume(text("no configuration: the activation is ", facts["activation"], " and epsilon ", facts["epsilon"],
              ", as is usual for ", whose));
}

const Shape& Findings::shape(const std::string& key, std::size_t rank) const {
  const auto found = checkpoint.shapes.find(key);
  if (found == checkpoint.shapes.end())
    fail(checkpoint.where, ": has no ", named(key), ", which every ",
         kind_of(checkpoint) == Kind::vit ? "plain Vision Transformer of this kind" : name_of(kind_of(checkpoint)),
         " has in keys of ", library());
  if (found->second.size() != rank)
    fail(checkpoint.where, ": ", named(key), " ", printed(found->second), " has rank ", found->second.size(),
         " instead of ", rank);
  return found->second;
}

std::string Findings::fact(const std::string& word, const std::string& otherwise) const {
  const auto found = facts.find(word);
  return found == facts.end() ? otherwise : found->second;
}

void Findings::linear(const std::string& key, std::int64_t in, std::int64_t out, bool bias) {
  expect(key + ".weight", {out, in});
  if (bias) expect(key + ".bias", {out});
}

void Findings::norm(const std::string& key, std::int64_t of) {
  expect(key + ".weight", {of});
  if (!rms) expect(key + ".bias", {of});
  if (rms && has(key + ".bias"))
    fail(checkpoint.where, ": has no ", named(first_norm + ".bias"), ", and has ", named(key + ".bias"));
}

}  // namespace tessera::declare
