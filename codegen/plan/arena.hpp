// Where each parameter lies: one flat arena, shared in layout by the gradients and the optimiser's state.
#pragma once

#include <string>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// One declared parameter; in a repeated block it stands for `count` of them.
struct ArenaEntry {
  std::string key;  ///< "blocks.{}.norm1.weight"
  std::vector<Dim> shape;
  graph::Init init;
  bool decay = true, trained = true;
  bool assigned = false;  ///< not trained; a step gives its new value in the place of a gradient
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
  /// The entry of a parameter by its name in a program, and the layer that it is of: -1 where a region runs through
  /// them, or where there is only one.
  std::pair<const ArenaEntry*, int> place(const std::string& name) const;
};

/// Of the declared parameters, in the order in which the program finishes their gradients; where it computes none, in
/// the declared one. So too of one half of a training step, which has the same arena as the other.
Arena make_arena(const graph::Graph& declared, const KernelProgram& program);

/// The packed copy of a parameter, which kernels read, or a value of parameters that packing computes.
struct PackedEntry {
  std::string key;          ///< the parameter's, in the arena; of a folded value its name
  std::size_t made_as = 0;  ///< of a folded value
  Packing packing = Packing::plain;
  bool transposed = false;  ///< the parameter is [depth / taps, columns, taps]
  DType element = DType::real;
  std::int64_t columns = 0, depth = 1;  ///< of a matrix in panels; else all numbers are columns
  std::int64_t taps = 1;                ///< transposed: numbers of a column that lie together in the parameter
  int first = 0, last = 0;              ///< layers that are read so
  std::int64_t reals = 0;               ///< of one layer: room for panels of any target
  std::int64_t offset = 0;              ///< of the first of them

  int count() const { return last - first + 1; }
};

/// Whether an update packs it, row after row as the parameter is stored.
bool packed_by_rows(const PackedEntry& entry);

struct PackedArena {
  std::vector<PackedEntry> entries;
  std::int64_t reals = 0, forward_reals = 0;  ///< all; the first, which is all that is read where nothing is trained
  std::int64_t scratch = 0;                   ///< where what folded values are made from lies while they are computed

  /// Where such a copy of such layers lies; null where it is nowhere.
  const PackedEntry* find(const PackedEntry& wanted) const;
  /// Whether an update packs some copy of a layer's parameter.
  bool packs_by_rows(const ArenaEntry& parameter, int layer) const;
};

/// Whether an update packs what it updates, row after row: where a model trains all that is packed so.
bool updates_while_packing(const Arena& parameters, const PackedArena& packed);

/// What a tensor of a program stands for, before it has a place.
PackedEntry packed_copy(const KernelProgram& program, const Tensor& tensor, const Arena& parameters);

/// Of all that the plans read packed, for any of the targets.
PackedArena make_packed_arena(const std::vector<Plan>& plans, const Arena& parameters,
                              const std::vector<Target>& targets);

}  // namespace tessera::codegen
