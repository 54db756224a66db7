// The axes of a ViT-Tiny, which the snippets share.
#pragma once

#include "dsl/tessera.hpp"

namespace tessera {

inline constexpr auto B = axis<"B">;
inline constexpr auto C = axis<"C", 3>;
inline constexpr auto P = axis<"P", 16>;
inline constexpr auto GH = axis<"GH", 14>;
inline constexpr auto GW = axis<"GW", 14>;
inline constexpr auto IH = axis<"IH", GH * P>;
inline constexpr auto IW = axis<"IW", GW * P>;
inline constexpr auto N = axis<"N", GH * GW>;
inline constexpr auto H = axis<"H", 3>;
inline constexpr auto K = axis<"K", 64>;
inline constexpr auto D = axis<"D", H * K>;
inline constexpr auto M = axis<"M", 4_c * D>;

}  // namespace tessera
