#include "declare/key_check.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::printed;
using runtime::Shape;
using runtime::text;

void check_blocks(const Checkpoint& checkpoint) {
  std::map<std::string, std::set<std::int64_t>> having;
  std::int64_t blocks = 0;
  for (const auto& [key, unused] : checkpoint.shapes) {
    const std::size_t dot = key.find('.', 7);
    if (!key.starts_with("blocks.") || dot == std::string::npos) continue;
    const std::string digits = key.substr(7, dot - 7);
    const auto is_digit = [](char c) { return '0' <= c && c <= '9'; };
    if (digits.empty() || digits.size() > 4 || !std::all_of(digits.begin(), digits.end(), is_digit) ||
        (digits[0] == '0' && digits != "0"))
      continue;
    having[key.substr(dot + 1)].insert(std::stoll(digits));
    blocks = std::max<std::int64_t>(blocks, std::stoll(digits) + 1);
  }
  for (std::int64_t i = 0; i < blocks; ++i)
    for (const auto& [rest, those] : having) {
      const auto block = [&, &name = rest](std::int64_t number) { return text("blocks.", number, ".", name); };
      if (!those.contains(i))
        fail(checkpoint.where, ": has no ", checkpoint.named(block(i)), ", and has ",
             checkpoint.named(block(*those.begin())));
      if (rest.starts_with("attn.k_proj.") || rest.starts_with("attn.v_proj.")) continue;
      const Shape &first = checkpoint.shapes.at(block(0)), &own = checkpoint.shapes.at(block(i));
      if (own != first)
        fail(checkpoint.where, ": ", checkpoint.named(block(i)), " is ", printed(own), " and ",
             checkpoint.named(block(0)), " ", printed(first), ": blocks that differ are no declaration");
    }
}

void check_keys(const Checkpoint& checkpoint, const std::map<std::string, runtime::Shape>& expected) {
  std::string unsaid;
  int more = 0;
  for (const auto& [key, unused] : checkpoint.shapes) {
    if (expected.contains(key)) continue;
    // A bias by itself: what told of its layer is missing.
    const std::string weight = key.ends_with(".bias") ? key.substr(0, key.size() - 4) + "weight" : key;
    if (!checkpoint.has(weight))
      fail(checkpoint.where, ": has no ", checkpoint.named(weight), ", and has ", checkpoint.named(key));
    if (++more <= 3) unsaid += (unsaid.empty() ? "" : ", ") + checkpoint.named(key);
  }
  for (const auto& [key, wanted] : expected) {
    const auto found = checkpoint.shapes.find(key);
    if (found == checkpoint.shapes.end())
      fail(checkpoint.where, ": has no ", checkpoint.named(key), " ", printed(wanted));
    if (found->second == wanted) continue;
    const auto in_file = [&, &name = key](Shape shape) {
      if (checkpoint.keys.transposes(name)) std::reverse(shape.begin(), shape.end());
      return printed(shape);
    };
    fail(checkpoint.where, ": ", checkpoint.named(key), " is ", in_file(found->second), " instead of ",
         in_file(wanted));
  }
  if (more > 3) unsaid += text(" and ", more - 3, " more");
  if (more) fail(checkpoint.where, ": no declaration says ", unsaid);
}

}  // namespace tessera::declare
