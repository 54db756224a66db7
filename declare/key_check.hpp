// A checkpoint's keys and shapes beside one another, and beside those that a declaration has.
#pragma once

#include <map>
#include <string>

#include "declare/declare.hpp"

namespace tessera::declare {

/// Throws a runtime::Error where a block lacks a key that another has, or has another shape. Maps to keys and values
/// may have rows of their own in each block, for heads share them in groups.
void check_blocks(const Checkpoint& checkpoint);

/// Throws a runtime::Error that names what is missing, of another shape or, in the file, too much.
void check_keys(const Checkpoint& checkpoint, const std::map<std::string, runtime::Shape>& expected);

}  // namespace tessera::declare
