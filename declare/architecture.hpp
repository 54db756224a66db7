// What the name of one of timm's architectures tells, or of another library's, and no checkpoint does.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::declare {

/// By the words of facts.txt; nothing for a name that timm does not have.
std::optional<std::map<std::string, std::string>> facts_of(std::string_view architecture);
/// DINOv3's rotary positions by the same words.
std::string dino3_rope(double temperature);

}  // namespace tessera::declare
