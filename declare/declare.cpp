#include "declare/declare.hpp"

#include <utility>

#include "declare/block.hpp"
#include "declare/depth.hpp"
#include "declare/ends.hpp"
#include "declare/findings.hpp"
#include "declare/front.hpp"
#include "declare/header_text.hpp"
#include "declare/input.hpp"
#include "declare/key_check.hpp"
#include "declare/kind.hpp"
#include "declare/sam.hpp"
#include "declare/swin.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::text;

Declaration declare(const Checkpoint& checkpoint, const Config& config, const std::string& name) {
  Findings found(checkpoint, config);
  found.model.kind = kind_of(checkpoint);
  switch (found.model.kind) {
    case Kind::vit:
      check_blocks(checkpoint);
      find_stem(found);
      find_tokens(found);
      find_block(found);
      find_ends(found);
      break;
    case Kind::swin:
      find_swin(found);
      break;
    case Kind::sam:
      find_sam(found);
      break;
    case Kind::depth:
      find_depth(found);
      break;
  }
  check_keys(checkpoint, found.expected);
  const char* const kind = name_of(found.model.kind);
  found.model.of = !config.architecture.empty()  ? "timm's " + config.architecture
                   : checkpoint.keys.are_timms() ? text("A ", kind)
                                                 : text("A ", kind, " of ", checkpoint.library());
  found.model.has_texts = found.trained_with_texts();
  const Input input = input_of(checkpoint, config, found.assumptions);
  return {header_text(found.model, input, name), std::move(found.assumptions)};
}

}  // namespace tessera::declare
