// Where each parameter lies: one flat arena, shared in layout by the gradients and the optimiser's state.
#pragma once

#include <string>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// The text with the layer's number where it has "{}".
std::string of_layer(std::string text, int layer);

/// One declared parameter; in a repeated block it stands for `count` of them.
struct ArenaEntry {
  std::string key;  ///< "blocks.{}.norm1.weight"
  std::vector<Dim> shape;
  graph::Init init;
  bool decay = true;
  int count = 1;
  std::int64_t reals = 0;   ///< of one
  std::int64_t offset = 0;  ///< of the last layer
  std::int64_t stride = 0;  ///< from a layer to the one before it

  std::int64_t at(int layer) const { return offset + stride * (count - 1 - layer); }
  std::string key_of(int layer) const;
};

/// Entries lie in the order in which backward finishes their gradients: the head first, then the last layer as one
/// range, and so on, so that a range of gradients is final while backward still works on what lies behind it.
struct Arena {
  std::vector<ArenaEntry> entries;
  std::int64_t reals = 0;

  const ArenaEntry& find(const std::string& key) const;
};

/// From the program that computes the gradients.
Arena make_arena(const KernelProgram& gradients);

/// The packed copy of a parameter, which kernels read.
struct PackedEntry {
  std::string key;  ///< the parameter's
  Packing packing = Packing::plain;
  bool transposed = false;  ///< the parameter is [depth, columns]
  Element element = Element::real;
  std::int64_t columns = 0, depth = 1;  ///< of a matrix in panels; else all numbers are columns
  int count = 1;                        ///< layers
  std::int64_t reals = 0;               ///< of one layer: room for panels of any target
  std::int64_t offset = 0;              ///< of the first layer

  /// Whether it is this copy of that parameter.
  bool holds(const std::string& parameter, const Tensor& copy) const;
};
struct PackedArena {
  std::vector<PackedEntry> entries;
  std::int64_t reals = 0, forward_reals = 0;  ///< all; the first, which is all that is read where nothing is trained

  const PackedEntry& find(const std::string& key, const Tensor& copy) const;
};

/// Of all that the plans read packed, for any of the targets.
PackedArena make_packed_arena(const std::vector<Plan>& plans, const std::vector<Target>& targets);

}  // namespace tessera::codegen
