// Weights in the order in which GEMMs read them: packed as a whole, or block by block as an update goes by.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/tree.hpp"
#include "codegen/plan/arena.hpp"

namespace tessera::codegen::cpu {

class Packer {
 public:
  Packer(const Arena& arena, const PackedArena& packed, const Target& target)
      : arena_(arena), packed_(packed), target_(target) {}

  /// Packs the weights in panels that are read where nothing is trained, or (`trained`) those that training alone
  /// reads.
  tree::Block panels(bool trained) const;
  /// Packs all else that is read packed.
  tree::Block rest() const;

  /// Updates every weight in panels, a block of rows at a time, and packs these rows while they are near. `update`
  /// updates the parameters from one offset up to another, to which weight decay applies or does not.
  using Update = std::function<tree::Statement(const tree::Expr& first, const tree::Expr& last, bool decays)>;
  tree::Block updated(const Update& update) const;

  /// What these statements call.
  static std::set<std::string> functions();

 private:
  /// Layers of a weight that have the same packed copies.
  struct Layers {
    const ArenaEntry* weight;
    int first, last;
    std::vector<const PackedEntry*> copies;
  };

  std::vector<Layers> in_panels() const;
  void pack(tree::Block& b, const PackedEntry& e) const;
  tree::Block updated(const Layers& layers, const Update& update) const;
  tree::Expr offset(const ArenaEntry& weight, int first, int count) const;
  tree::Expr place(const PackedEntry& e, int first, int count) const;
  tree::Statement rows(const PackedEntry& e, const tree::Expr& weight, const tree::Expr& panels,
                       const tree::Expr& first, const tree::Expr& last) const;
  std::int64_t width(const PackedEntry& e) const;
  tree::Expr scales_of(const PackedEntry& panels) const;

  const Arena& arena_;
  const PackedArena& packed_;
  const Target& target_;
};

}  // namespace tessera::codegen::cpu
