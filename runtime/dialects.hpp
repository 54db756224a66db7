// Checkpoints of other libraries: their names and layouts -> timm's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// How a tensor becomes timm's.
enum class Layout : std::uint8_t {
  same,
  batched,          ///< of each image: dims of 1 in front, up to rank 3
  transposed,       ///< a matrix that is multiplied from the right
  part,             ///< one of those that are concatenated along the first dim, whose rules follow one another
  first_third,      ///< of three that are concatenated: the queries'
  last_two_thirds,  ///< the keys' and the values'
};

/// One name or family of names. In both patterns, # is a number, as often in one as in the other, and * at the end is
/// any rest; nothing in timm's place leaves the tensor out.
struct Rule {
  std::string_view theirs, timms;
  Layout layout = Layout::same;
  int place = 0, of = 1;  ///< of a part: which it is of how many
};

/// The keys of a library's models.
struct Dialect {
  std::string_view library;                ///< what people call it
  std::vector<std::string_view> prefixes;  ///< of the image model's keys, one of these
  std::vector<Rule> rules;                 ///< behind the prefix
  std::vector<Rule> others;                ///< of keys without it: heads, and what images do not need
  bool zero_head_bias = false;             ///< its head has no bias, and timm's is 0
  bool class_position = false;             ///< of tokens before patches, the class token alone has a position
};

/// The dialects, timm's own first.
std::span<const Dialect> dialects();

/// Whose keys a checkpoint has.
struct Keys {
  const Dialect* dialect = &dialects().front();
  std::string wrapper;  ///< before every key of the file: of training in PyTorch, as "module."
  std::string prefix;
  std::vector<const Rule*> used;  ///< by the file: of several names for one of timm's, these are the file's

  bool are_timms() const;
  /// The file's name of what timm calls `key`, whether the file has it or lacks it: the first of those that are
  /// concatenated. `key` itself where the library has nothing like it.
  std::string theirs(const std::string& key) const;
  /// Whether the file has timm's `key` as a matrix that is multiplied from the right.
  bool transposes(const std::string& key) const;
};

struct Translation {
  Safetensors file;                   ///< under timm's keys
  Keys keys;                          ///< that it had
  std::vector<std::string> left_out;  ///< its tensors that no image needs
};

/// Gives a file's tensors timm's names and layouts: of the dialects the one that has most of its keys, without
/// "module." (PyTorch's DistributedDataParallel), "_orig_mod." (torch.compile) and "model." (Lightning) where these
/// stand before every key. A key that no dialect has stays as it is. Where a learned position of the class token stands
/// before registers, which have none, it is added to the token, as timm does it. Throws an Error that names the keys
/// where those of two dialects are mixed, where two are the same one of timm's, and where one of several that timm
/// concatenates is missing.
Translation in_timms_keys(Safetensors file);

}  // namespace tessera::runtime
