// What the name of one of timm's architectures tells, and no checkpoint does.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::declare {

/// By the words of facts.txt; nothing for a name that timm does not have.
std::optional<std::map<std::string, std::string>> facts_of(std::string_view architecture);

}  // namespace tessera::declare
