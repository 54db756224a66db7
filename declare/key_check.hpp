// A checkpoint's keys and shapes beside one another, and beside those that a declaration has.
#pragma once

#include <map>
#include <string>

#include "declare/declare.hpp"

namespace tessera::declare {

/// All blocks are one declaration: throws a runtime::Error where one lacks a key that another has, or has another
/// shape.
void check_blocks(const Checkpoint& checkpoint);

/// Throws a runtime::Error that names what is missing, of another shape or, in the file, too much.
void check_keys(const Checkpoint& checkpoint, const std::map<std::string, runtime::Shape>& expected);

}  // namespace tessera::declare
