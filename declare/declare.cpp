#include "declare/declare.hpp"

#include <utility>

#include "declare/block.hpp"
#include "declare/ends.hpp"
#include "declare/findings.hpp"
#include "declare/front.hpp"
#include "declare/header_text.hpp"
#include "declare/input.hpp"
#include "declare/key_check.hpp"

namespace tessera::declare {

namespace {

/// Whether CLIP's or SigLIP's images and texts were trained together, as the library's name or the architecture's says.
bool is_trained_with_texts(const std::string& library, const std::string& architecture) {
  const auto says = [](const std::string& name, const char* word) { return name.find(word) != std::string::npos; };
  return says(library, "CLIP") || says(library, "SigLIP") || says(architecture, "_clip_") ||
         says(architecture, "_siglip_");
}

}  // namespace

Declaration declare(const Checkpoint& checkpoint, const Config& config, const std::string& name) {
  Findings found(checkpoint, config);
  check_blocks(checkpoint);
  find_stem(found);
  find_tokens(found);
  find_block(found);
  find_ends(found);
  check_keys(checkpoint, found.expected);
  found.model.of = !config.architecture.empty()  ? "timm's " + config.architecture
                   : checkpoint.keys.are_timms() ? "A Vision Transformer"
                                                 : "A Vision Transformer of " + checkpoint.library();
  found.model.has_texts = is_trained_with_texts(checkpoint.library(), config.architecture);
  const Input input = input_of(checkpoint, config, found.assumptions);
  return {header_text(found.model, input, name), std::move(found.assumptions)};
}

}  // namespace tessera::declare
