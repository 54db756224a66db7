// The programs of a model: its entry points, and what tells one from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tessera::codegen {

enum class ProgramKind : std::uint8_t {
  forward,
  evaluate,
  loss_and_gradients,
  input_gradient,
  update,
  inspect,
  embed,
  step
};

/// What a program of a kind has. What only a model decides (whether something drops out, what is packed) is asked of
/// its graph and its tensors.
struct ProgramTraits {
  ProgramKind kind;
  std::string_view name;         ///< of its function, and in messages and dumps
  std::string_view short_name;   ///< where several programs have a thing of one kind: a macro, a kernel
  bool has_loss = false;         ///< it takes labels, or the targets that a recipe makes of them, and gives the loss
  std::string_view gradients{};  ///< the array of the gradients that it gives; "": it differentiates nothing
  bool trains = false;           ///< a step of training: soft targets, dropout, microbatches
  bool updates = false;          ///< it goes by a stretch of the parameters in place, not by images
  bool inspects = false;         ///< its outputs lie in two arrays: attention maps and magnitudes
  bool embeds = false;           ///< its outputs are what the head reads, and the tokens
  bool steps = false;            ///< it takes one token, and keeps what is read again in the caller's cache
};

inline constexpr ProgramTraits program_kinds[] = {
    {.kind = ProgramKind::forward, .name = "forward", .short_name = "forward"},
    {.kind = ProgramKind::evaluate, .name = "evaluate", .short_name = "evaluate", .has_loss = true},
    {.kind = ProgramKind::loss_and_gradients,
     .name = "loss_and_gradients",
     .short_name = "train",
     .has_loss = true,
     .gradients = "gradients",
     .trains = true},
    {.kind = ProgramKind::input_gradient,
     .name = "input_gradient",
     .short_name = "input_gradient",
     .has_loss = true,
     .gradients = "image_gradients"},
    {.kind = ProgramKind::update, .name = "update", .short_name = "update", .updates = true},
    {.kind = ProgramKind::inspect, .name = "inspect", .short_name = "inspect", .inspects = true},
    {.kind = ProgramKind::embed, .name = "embed", .short_name = "embed", .embeds = true},
    {.kind = ProgramKind::step, .name = "step", .short_name = "step", .steps = true},
};

constexpr const ProgramTraits& traits_of(ProgramKind kind) { return program_kinds[static_cast<std::size_t>(kind)]; }
constexpr std::string_view name_of(ProgramKind kind) { return traits_of(kind).name; }

static_assert(
    [] {
      for (const ProgramTraits& row : program_kinds)
        if (&row != &traits_of(row.kind)) return false;
      return std::size(program_kinds) == static_cast<std::size_t>(ProgramKind::step) + 1;
    }(),
    "program_kinds has a row for each kind, in their order");

}  // namespace tessera::codegen
