// What other libraries call tensors, and how they lay them out, beside timm: a table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

}  // namespace tessera::runtime
