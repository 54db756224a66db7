// The text of one kernel for one target: what the files of its parts share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cpu/kernel.hpp"
#include "codegen/cpu/values.hpp"

namespace tessera::codegen::cpu {

/// A run of points along one axis that one piece of code handles: how many, and how many lanes the last vector has.
struct Piece {
  std::int64_t points = 0;  ///< tile points (vectors along the vector axis)
  int tail = 0;             ///< lanes of the last vector; 0: all
};
/// Points that are summed at once: a piece of each tiled axis.
using Tile = std::vector<std::pair<int, Piece>>;

class Emitter : Values {
 public:
  Emitter(const Plan& of, int number, const Target& target, bool in_team, int part = -1)
      : Values(of, number, target, part), number_(number), in_team_(in_team) {}

  std::vector<Emitted> run();
  /// Attention, block after block of a head's queries.
  Emitted attention(const Put& put);

 private:
  // Functions: kernel.cpp
  Emitted whole();
  /// Asks for an image's values of those tensors in scratch memory that `which` names, as far as the second cache has
  /// room for them. `image`: which of them; null where pointers are to an image's values already.
  tree::Block fetches(const std::function<bool(const Access&)>& which, const tree::Expr& image);
  /// Whether it is one of the values that forward has left for backward: they lie in far memory.
  bool saved(const Access& access) const;
  std::int64_t rows_of_tile(int a) const;
  /// The outer axis whose points a team shares out: the rows of a product, else the one with the most. -1: there is
  /// none, or too little to do.
  int axis_to_split() const;
  /// Whether a team shares out a product's columns too: those of weights, which then fewer threads read.
  bool columns_to_split() const;
  bool stores_everywhere_along(int axis) const;
  /// From where to where an axis is a thread's own; nulls: it is not shared out.
  std::pair<tree::Expr, tree::Expr> shared_part(int axis) const;
  /// A block of a product's rows, summed over the batch. Where an image alone has much to sum, its sums are added to
  /// what is stored (`gradient`); else the sums go on over all images.
  Emitted sum_over_images();
  Emitted partials();
  /// The first image of a chunk.
  tree::Expr chunk_bound(tree::Expr chunk) const;
  /// How many images a sum over the batch takes up in one call, and the parameter that says so.
  tree::Expr images() const { return tree::name(kernel.goes_on ? "group.images" : "batch"); }
  void add_images(Emitted& e) const;
  /// A sum goes on from what earlier groups of images have left where it is stored.
  static void go_on(tree::Block& b, tree::Block sums);
  Emitted combine();
  /// Parameters, comment and a look at all names; `called`: functions of the file.
  void finish(Emitted& e, const std::set<std::string>& called = {});
  std::vector<std::string> describe() const;
  static bool keeps(const Expression& e) { return e.kind == Expression::Kind::keep; }
  bool drops_along(int axis) const;
  /// Which image and layer it is, and of how many images, where a kernel asks.
  void add_numbers(Emitted& e) const;
  /// Dropout's factors differ from layer to layer.
  void add_layer(Emitted& e) const;
  bool uses_batch() const;

  // Places, loops: kernel.cpp
  /// Nested loops over whole axes; the vector axis in steps of the lanes with its tail.
  tree::Block nest(const std::vector<int>& axes, const std::function<void(tree::Block&)>& leaf, std::size_t depth = 0);
  /// One block after the other, each in a scope of its own where names could meet.
  static tree::Block join(std::vector<tree::Block> pieces);

  /// The pieces of the vector axis where they go into several sums by turns.
  std::vector<tree::Block> by_turns(int axis, const std::function<tree::Block()>& body);

  // Attention: attention.cpp
  /// One of its kernels, for the queries from `begin` to before `end` of a head.
  Emitted of_block();

  // Row and elementwise kernels: rows.cpp
  /// The axis along which a kernel that does no more than copy reads what lies side by side, where it writes side by
  /// side along the vector axis: blocks of whole vectors are transposed. -1: it is no such copy.
  int transposed_axis() const;
  tree::Block transposed_copy(int axis);
  tree::Block sweeps();
  /// How many rows go through one sweep before any of them goes through the next, so that a row need not wait for its
  /// own sums: as many as stay in near memory.
  std::int64_t rows_at_once(int axis) const;
  tree::Statement sweeps_over_rows(const std::vector<std::pair<std::size_t, std::size_t>>& sweeps);
  std::set<int> locals_of(int e) const;
  /// The expressions, as large as they can be, that the steps from `first` to before `end` need of each row and that
  /// follow from what earlier steps have reduced it to.
  std::set<int> of_rows(std::size_t first, std::size_t end);
  std::string name_of_row_value(int e) const;
  /// How many rows go together through a sweep, so that what they share is read once for all of them: 4 or 2 if the
  /// values it needs of these rows, so many of each, fit half of the registers; else 1.
  int rows_together(std::size_t row_values) const;
  /// Whether the steps from `first` to before `end` reduce nothing and read what all rows share.
  bool shares_loads(std::size_t first, std::size_t end) const;
  void each_load(int e, const std::function<void(const Access&)>& visit) const;
  /// What the steps before `end` read of each row, side by side along the lanes.
  std::vector<Access> rows_read(std::size_t end) const;
  /// Whether the steps from `first` to before `end` use what step `local` has reduced.
  bool uses_local(std::size_t first, std::size_t end, int local) const;
  /// Whether step `s` can run in the sweep of the steps from `first` on: over the same axes, and without their results.
  bool joins_sweep(std::size_t first, std::size_t s) const;
  /// The steps from `first` to before `end`, in one sweep. What it reduces along the lanes goes into a few vectors
  /// beside each other, so that one addition need not wait for another.
  void sweep(tree::Block& b, std::size_t first, std::size_t end);

  // Contractions: contraction.cpp
  tree::Block contraction();
  tree::Block tiles(const std::vector<int>& axes, std::size_t depth, Tile& tile);
  /// The tiles of a product whose depth goes by in blocks.
  tree::Block tiles_in_depth_blocks(const std::vector<int>& axes);
  /// Zeros where a product's sums are going to be added up.
  tree::Block zeros(const std::vector<int>& axes);
  /// Calls f once for each point of the tile, with place_ and tail_ set to it.
  void for_points(const Tile& tile, const std::function<void()>& f, std::size_t depth = 0);
  void for_points_keeping_tail(const Tile& tile, bool across, const std::function<void()>& f);
  void one_tile(tree::Block& b, const Tile& tile);
  /// While rows go by a panel of weights, the next one is asked for: the same part of it at each place in the depth.
  void fetch_next_panel(tree::Block& b);
  /// While a tile of rows goes by, the rows of the next one are asked for: a line with each step of the depth.
  void fetch_next_rows(tree::Block& b);
  /// Whether what is made of a tile's sums reads such values, place for place: then the tile asks for them itself.
  bool fetched_by_tile(const Access& access) const;
  /// While a tile is summed up, the places where its results go come near, and what forward has left for them.
  void fetch_results(tree::Block& b, const Tile& tile);
  /// A product's columns and rows that a tile handles.
  std::pair<Piece, Piece> pieces_of(const Tile& tile) const;
  /// The place moves along an axis by a loop's variable.
  void move(int axis, const char* by);
  /// Whether what is made of the sums takes so many instructions that they must not stand there once for each vector of
  /// a tile: they would not fit the processor's nearest memory, and compilers would call functions instead.
  bool elaborate() const;
  void stores(tree::Block& b);
  /// What is made of a product's sums, which lie in memory, is a loop over the tile.
  void store_in_loops(tree::Block& b, const Tile& tile);

  // Products of bf16 and int8 by tiles: tiles.cpp
  bool by_tiles() const { return codegen::by_tiles(kernel, target_); }
  /// Whether a product's tile takes so long that what is read and written with its sums can be asked for meanwhile.
  bool has_time() const { return !by_tiles() || target_.matrix_unit != MatrixUnit::amx; }
  /// A factor in memory, as tiles are loaded from it.
  struct Factor {
    Access access;
    std::int64_t across = 0, along = 0;  ///< from one row, or column, to the next; along what is summed
  };
  Factor factor(bool right) const;
  int depth_axis() const;
  std::int64_t depth() const { return depth_axis() < 0 ? 1 : extent_[depth_axis()]; }
  std::int64_t whole_depth() const { return whole_steps(kernel.product.factors, depth()); }
  bool packs_left() const { return factor(false).along != 1; }
  bool packs_right() const { return !in_panels(factor(true).access); }
  /// Where the columns of all panels are packed at once: while they stay, rows are packed. Not where they would take
  /// more of a thread's stack than 256 KiB.
  bool packs_whole_right() const {
    constexpr std::int64_t most = 1 << 17;  // values
    return packs_left() && packs_right() &&
           whole_tiles(extent_[static_cast<std::size_t>(kernel.product.columns)]) * whole_depth() <= most;
  }
  /// Before all tiles of a product.
  tree::Block before_tiles();
  void pack_left(tree::Block& b, std::int64_t rows);
  /// Before the tiles of one piece of an axis: its rows or its columns are the same for them all.
  tree::Block before_tiles_of(int axis, const Piece& piece);
  std::int64_t columns_of_piece(const Piece& piece) const;
  void product_by_tiles(tree::Block& b, const Tile& tile);
  /// The function that sums up a weight gradient over the tokens of an image, or by tiles of all images; "": none.
  std::string gradient_name() const;
  tree::Block gradient();

  // Partial sums: contraction.cpp
  /// The axis along which partial sums are contiguous: the vector axis where it is an outer one, else the last outer.
  int partial_vector() const;
  tree::Expr partial_index(int reduction, tree::Expr chunk);
  static tree::Expr identity(const Step& s);
  static tree::Expr accumulate(const Step& s, tree::Expr sum, tree::Expr value);
  /// Adds the step's value at the present place; a product becomes a fused multiply-add.
  tree::Expr accumulate(const Step& s, tree::Block& b, tree::Expr sum, bool across);
  /// In a vector with fewer lanes, the others get what changes nothing.
  tree::Expr masked(const Step& s, tree::Expr value, bool across);
  tree::Expr begin_, end_;  ///< of an axis whose extent is known only when the program runs
  bool to_partials_ = false;
  bool adds_ = false;       ///< sums of a block of a product's depth are added to what is stored
  bool goes_on_ = false;    ///< what is stored is added to the sums, before anything is made of them
  tree::Expr depth_first_;  ///< where a block of a product's depth begins; null: all of it is summed at once
  int ways_ = 1, way_ = 0;  ///< vectors that a sweep reduces into, and which of them the present place goes into
  std::int64_t rows_at_once_ = 1;
  std::vector<Access> rows_ahead_;                 ///< what a sweep asks for, of the rows that come next
  int row_axis_ = -1;                              ///< of which so many rows go through a sweep at once
  std::vector<std::map<int, tree::Expr>> of_row_;  ///< what is known of each of the rows that a sweep goes by together
  int number_;                                     ///< of the kernel in its program
  bool in_team_;
  int split_ = -1;  ///< axis that a team shares out
  bool splits_columns_ = false;
};

}  // namespace tessera::codegen::cpu
