// What the entry points of an emitted file have in common, whatever runs them: tables of constants, scratch tensors
// under names of their own, stages in their order, layer after layer, and where each argument of a kernel points. A
// back end says how a stage is launched, and how its plan lays out a buffer.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/function_table.hpp"
#include "codegen/emit/tree.hpp"
#include "codegen/plan/arena.hpp"

namespace tessera::codegen {

/// What a kernel is passed for a tensor: itself, or the layer `shift` further on.
struct Argument {
  TensorId tensor;  ///< none: the partial sums
  int shift = 0;
  bool written = false;
  std::string name;
};

/// So many, in the variable `batch`.
tree::Expr in_batch(const Extent& extent);

class EntryWriter {
 protected:
  /// The words in which back ends differ.
  struct Dialect {
    std::string real;   ///< type of a value in memory: "float", "double" or "real"
    std::string table;  ///< what stands before the name of a table of constants
    std::string cast;   ///< makes a pointer to scratch memory one to the element type {}
  };
  EntryWriter(const Arena& arena, FunctionTable::Share share, Dialect dialect)
      : functions_(share), dialect_(std::move(dialect)), arena_(arena) {}
  virtual ~EntryWriter() = default;

  /// Where a buffer of scratch memory begins, and how far apart the slots of a tensor in it are, in reals.
  struct Place {
    tree::Expr offset;
    Extent slot;
  };
  virtual Place place_of(const Plan& plan, const Buffer& buffer) const = 0;
  /// A pointer to a tensor in the packed memory.
  virtual tree::Expr packed(const Plan& plan, const Tensor& tensor) = 0;
  /// Calls or launches the kernels of a stage.
  virtual void run(const Plan& plan, const Stage& stage, tree::Block& b) = 0;
  /// What stands behind a stage of the top level or, with `each_pass`, at the end of each pass of its loop.
  virtual tree::Block report(const Plan& plan, int stage, bool each_pass) const;

  /// The name of the array that holds a table of constants; equal numbers stand once.
  std::string table(const Plan& plan, TensorId tensor);
  /// Declares the tensors in scratch memory. `taken`: names that they cannot have.
  tree::Block declare_scratch(const Plan& plan, std::set<std::string> taken);
  /// The stages of a region; a region within it is a loop over its layers.
  tree::Block stages(const Plan& plan, int region);
  /// What a kernel is passed: a pointer to the layer at hand. Without a tensor: to that kernel's partial sums.
  tree::Expr pointer(const Plan& plan, int kernel, const Argument& a);
  /// Where a parameter, its gradient or its copy lies in an array that is laid out as the arena.
  tree::Expr in_arena(const Plan& plan, const Tensor& tensor, const std::string& array);
  /// A constant of the emitted namespace `place`, named after `key`: how many reals into its array that key lies.
  tree::Expr offset_of(const std::string& place, const std::string& key, std::int64_t reals);
  /// The definitions of all that were asked for.
  std::string offsets() const;
  /// The names of all constants that are emitted before the entry points: tables, and offsets with their namespaces.
  std::set<std::string> constants() const;
  tree::Expr cast(DType element, tree::Expr pointer) const;

  FunctionTable functions_;
  std::string tables_;  ///< their definitions

 private:
  const Dialect dialect_;
  const Arena& arena_;
  std::map<std::string, std::string> table_names_;  ///< numbers -> name
  Table<std::string, TensorId> scratch_name_;
  /// namespace -> names that are taken, and offset -> name
  std::map<std::string, std::pair<std::set<std::string>, std::map<std::int64_t, std::string>>> offsets_;
};

}  // namespace tessera::codegen
