// The text of one kernel: what the files of its parts share.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/kernel.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/cuda/sum_in_rows.hpp"
#include "codegen/cuda/values.hpp"

namespace tessera::codegen::cuda {

constexpr int threads_of_points = 256;  // of a block of points

class Emitter : Values {
 public:
  Emitter(const Plan& of, const Kernel& emitted, const TableName& table, const Tiles& tiles)
      : Values(of, emitted, table), table_(table), tiles_(tiles) {}

  std::vector<Emitted> run();

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  /// The outer axes but for the batch, so that the one along which results lie side by side is the last.
  std::vector<int> point_axes() const;
  std::vector<int> batch_axes(bool inner) const;
  /// Whether two accesses to a tensor have no element in common: along some dim.
  bool apart(const Access& a, const Access& b) const;
  /// What a kernel writes and reads again, the same thread must do both: at the same index.
  void check_rereads() const;

  // Functions: kernel.cpp
  bool uses_batch() const;
  void finish(Emitted& e, tree::Block body, const std::string& how, bool partial_written, bool has_partial);
  static tree::Expr times_batch(const Extent& e);
  /// Blocks of `size` for so many.
  static tree::Expr blocks_for(const Extent& count, std::int64_t size);
  void limit(Emitted& e, std::int64_t blocks_an_image) const;
  /// A row of blocks for each image.
  void blocks_for_images(tree::Block& b, const FlatIndex& image, Emitted& e);
  Emitted fresh() const;
  std::vector<ExprId> values_of(std::size_t first, std::size_t end) const;
  static tree::Expr start_of(const Step& s) { return tree::real(s.reduction == Reduction::sum ? 0 : -INFINITY); }
  static std::string result_of(std::size_t s, const Step& step);
  static tree::Statement accumulate(const Step& s, const std::string& result, tree::Expr value);
  /// Whether step `s` can run in the sweep of the steps from `first` on: over the same axes, and without their results.
  bool joins_sweep(std::size_t first, std::size_t s) const;

  // One thread a point: kernel.cpp
  /// The steps of a point by one thread; reductions as loops.
  tree::Block steps_of_point();
  /// A block of threads for the points of an image; `body` makes one of them.
  Emitted points_kernel(const std::function<tree::Block()>& body, const std::string& how, bool combines);
  Emitted each_point();

  // Sums over chunks of the batch: chunks.cpp
  /// begin and end of the chunk's images, chunk being the block's z.
  void declare_chunk(tree::Block& b) const;
  /// An element of the partial sums, which lie as the points of sum_of_chunks, those of one step behind those of
  /// another.
  tree::Expr partial(std::size_t step = 0);
  /// How many partial sums the product before this kernel makes of it by the way; 0: it does not.
  int made_by_product() const;
  int number() const { return static_cast<int>(&kernel - plan.program.kernels.data()); }
  /// How many of the kernel's steps, the first ones, are sums.
  std::size_t sums() const;
  /// Sums, of a chunk or of all, for points that lie side by side: a lane for each, and the block's warps share what is
  /// summed.
  Emitted columns(bool chunk);
  /// Whether few results, none of them an image's, are sums of many summands.
  bool many_summands() const;
  /// What becomes of all sums, locals by now.
  void store_results(tree::Block& b);
  /// Adds up the partial sums in the order of the chunks, then stores.
  Emitted sum_of_chunks();

  // A warp or a block a row: rows.cpp
  /// Whether a contraction's summands lie side by side along what it sums over, or its results are too few.
  bool sums_along_memory() const;
  Emitted rows(bool chunk);
  /// A number of blocks whose warps take one row after the other and add up what sums_in_rows has them do.
  Emitted rows_and_sums(const RowSums& sums);
  /// The steps of a row, sweep after sweep.
  void sweeps(tree::Block& b, int lanes, const std::string& reducer, bool chunk);
  /// The steps from `first` to before `end` in one sweep of the row's lanes.
  void sweep(tree::Block& b, std::size_t first, std::size_t end, int lanes, const std::string& reducer, bool chunk);

  /// const auto name = [=](an index for each of these, what else it takes) { body };
  tree::Statement function_of(const std::string& function, const std::vector<FlatIndex>& indices,
                              const std::vector<tree::Parameter>& more, const std::function<void(tree::Block&)>& body);
  /// What becomes of a sum, "sum".
  void store_sums(tree::Block& b);

  // Attention: attention.cpp, attention_gradient.cpp
  Emitted attention();
  Emitted attention_gradient();

  // Matrix products: product.cpp
  /// Those of factors_of, so that results lie side by side along the columns, and the batch comes first.
  Factors factors() const;
  /// Whether a factor's neighbours in memory are neighbours along the depth.
  bool lies_deep(ExprId factor, const std::vector<int>& across, const std::vector<int>& depth) const;
  /// Whether a factor that is stored lies in eights, which can be copied at once, along these axes.
  bool lies_in_eights(ExprId factor, const std::vector<int>& along) const;
  /// Instructions of what becomes of a sum, about.
  double storing(bool chunk) const;
  Emitted matrix_product(const Factors& f, bool chunk);
  /// Tile, grid and what follows from them.
  void blocks_of_product(Emitted& e, const Tile& tile, const Factors& f, bool chunk, const Products& products);
  tree::Statement store_of_product(const FlatIndex& row, const FlatIndex& column, bool chunk);
  /// The same by warpgroups, for sm_90a; none where a factor does not lie so that a tensor map can bring it, or where
  /// it would take longer than that tile on mma.sync.
  std::vector<Emitted> product_by_warpgroups(const Factors& f, bool chunk, const Products& products,
                                             const Tile& otherwise);
  /// Among how many blocks with the same rows the steps are shared out whose left factor's rows it also sums.
  int shares_of_rows(const Products& products, const Tile& tile) const;
  /// What becomes of such a sum: a partial one of the kernel behind.
  tree::Statement sum_of_rows(int shares, std::int64_t rows) const;
  std::optional<Map> map_of(ExprId factor, const std::vector<int>& across, const std::vector<int>& groups,
                            const std::vector<int>& depth);
  /// Of this kernel, or of all of them; empty where nobody asks for one.
  std::string wanted_tile(const std::string& kind) const;

  const TableName& table_;
  const Tiles& tiles_;
  int chunks_ = batch_chunks;  ///< of the batch, where their sums are added up afterwards
};

}  // namespace tessera::codegen::cuda
