// Decides how every kernel runs on a GPU: in which form, in which tiles, split along K into how many, how many CTAs.
#pragma once

#include <vector>

#include "codegen/cuda/tile.hpp"
#include "codegen/plan/kernel_view.hpp"

namespace tessera::codegen::cuda {

constexpr int threads_of_points = 256;       // of a CTA of points
constexpr std::int64_t most_blocks = 65535;  // along y and z

/// The outer axes but for the batch, so that the one along which results lie side by side is the last.
std::vector<int> point_axes(const KernelView& k);
/// Axes that run along the batch, inner ones or outer ones.
std::vector<int> batch_axes(const KernelView& k, bool inner);
/// How many of a kernel's steps, the first ones, are sums.
std::size_t sums_of(const Kernel& kernel);

/// Whether so many neighbours along an axis, the first of which is a multiple of it, lie side by side, and begin on a
/// multiple of themselves wherever the tensor does.
bool lies_in_vectors(const KernelView& k, const Access& access, int along, std::int64_t count);

/// Fills in the launches of a plan that has its layouts and buffers. `wanted`: tiles that somebody asks for. Throws
/// Error, with one sentence, for a kernel that the CUDA back end cannot do, and for a tile that is not there.
void choose_launches(Plan& plan, const Tiles& wanted);

}  // namespace tessera::codegen::cuda
