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
#include "codegen/cuda/schedule.hpp"
#include "codegen/cuda/values.hpp"

namespace tessera::codegen::cuda {

class Emitter : Values {
 public:
  Emitter(const Plan& of, const Kernel& emitted, const TableName& table, int pairs = -1)
      : Values(of, emitted, table, pairs), table_(table) {}

  std::vector<Emitted> run(const std::vector<Launch>& launches);

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  /// Whether two accesses to a tensor have no element in common: along some dim.
  bool apart(const Access& a, const Access& b) const;
  /// What a kernel writes and reads again, the same thread must do both: at the same index.
  void check_rereads() const;

  // Functions: kernel.cpp
  bool uses_batch() const;
  void finish(Emitted& e, tree::Block body, const std::string& how, bool partial_written, bool has_partial);
  static tree::Expr times_batch(const Extent& e);
  /// CTAs along an axis of the grid.
  static tree::Expr blocks_along(const Launch::Along& along);
  /// A row of CTAs for each image.
  void blocks_for_images(tree::Block& b, const FlatIndex& image);
  /// The function of a launch, whose name and grid it has; launch_ is that one from here on.
  Emitted of_launch(const Launch& launch);
  std::vector<ExprId> values_of(std::size_t first, std::size_t end) const;
  static tree::Expr start_of(const Step& s) { return tree::real(s.reduction == Reduction::sum ? 0 : -INFINITY); }
  static std::string result_of(std::size_t s, const Step& step);
  static tree::Statement accumulate(const Step& s, const std::string& result, tree::Expr value);
  /// Whether step `s` can run in the pass of the steps from `first` on: over the same axes, and without their results.
  bool joins_pass(std::size_t first, std::size_t s) const;

  // One thread a point: kernel.cpp
  /// The steps of a point by one thread; reductions as loops.
  tree::Block steps_of_point();
  /// A block of threads for the points of an image; `body` makes one of them.
  Emitted points_kernel(const Launch& l, const std::function<tree::Block()>& body, const std::string& how,
                        bool combines);
  Emitted each_point(const Launch& l);
  /// What vectors are loaded, what becomes of each lane, and what is stored of them.
  tree::Block in_vector(tree::Block lane);

  // Sums over chunks of the batch: split_k.cpp
  /// begin and end of the chunk's images, chunk being the block's z.
  void declare_chunk(tree::Block& b) const;
  /// Of split-K partials of several GEMMs the third axis of the grid counts the GEMMs of a chunk before the next
  /// chunk's.
  tree::Expr chunk_of_cta() const;
  /// The GEMM that the CTA belongs to, where there are several.
  void declare_group(tree::Block& b, const FlatIndex& group) const;
  /// An element of the partial sums, which lie as the points of reduce_partials, those of one step behind those of
  /// another.
  tree::Expr partial(std::size_t step = 0);
  /// Sums, of a chunk or of all, for points that lie side by side: a lane for each, and the block's warps share what is
  /// summed.
  Emitted columns(const Launch& l);
  std::size_t sums() const { return sums_of(kernel); }
  /// What becomes of all sums, locals by now.
  void store_results(tree::Block& b);
  /// Adds up the partial sums in the order of the chunks, then stores.
  Emitted reduce_partials(const Launch& l);

  // A warp or a CTA a row: rowwise.cpp
  Emitted rows(const Launch& l);
  /// A number of blocks whose warps take one row after the other and add up what fuse_column_reductions has them do.
  Emitted rows_and_sums(const Launch& l);
  /// The steps of a row, pass after pass.
  void row_passes(tree::Block& b, int lanes, const std::string& reducer, bool chunk);
  /// The steps from `first` to before `end` in one pass of the row's lanes.
  void row_pass(tree::Block& b, std::size_t first, std::size_t end, int lanes, const std::string& reducer, bool chunk);

  /// const auto name = [=](an index for each of these, what else it takes) { body };
  tree::Statement function_of(const std::string& function, const std::vector<FlatIndex>& indices,
                              const std::vector<tree::Parameter>& more, const std::function<void(tree::Block&)>& body);
  /// Opens a scope of what becomes of a sum, which has that name.
  void begin_sum(const std::string& sum);
  /// All that is stored of it.
  std::vector<Step::Store> stores_of_sum() const;
  /// What becomes of a sum, "sum": the values, and where they are stored.
  void store_sums(tree::Block& values, tree::Block& stores);

  // Attention: attention.cpp, attention_gradient.cpp
  /// What attention is given to store by, and the functions that it names.
  struct Storing {
    tree::Block functions;
    tree::Expr operand;
  };
  /// The function of a sum and what is stored of it: of `sum`, or of `sum` and its neighbour's `next` along the last
  /// index, where all of it lies in pairs of bf16; or, where one is stored and lies in eights, their word
  /// and the place of eight. `given`: opens a scope in which the sum has that name, an expression of the kernel or,
  /// where that is none, a local.
  Storing store_function(const std::string& function, const std::vector<FlatIndex>& at,
                         const std::vector<Step::Store>& stores, ExprId sum,
                         const std::function<void(const std::string& name)>& given);
  /// Whether so many neighbours along an axis, the first of which is a multiple of it, are stored at once as bf16.
  bool lies_together(std::int64_t count, const Step::Store& store, int axis, ExprId sum) const;
  Emitted attention(const Launch& l);
  Emitted attention_gradient(const Launch& l);

  // GEMMs: gemm.cpp
  Emitted gemm(const Launch& l);
  /// What a GEMM's grid and epilogue need of the batch.
  void of_product(Emitted& e, const Launch& l) const;
  tree::Statement store_of_product(const FlatIndex& row, const FlatIndex& column, bool chunk, CtaTile::Unit unit,
                                   bool pairs = false);
  /// The axis of columns two of which at a time can be made of a GEMM's sums, or none: -1.
  int axis_of_pairs(const Launch& l) const;
  /// The same by wgmma, for sm_90a.
  Emitted gemm_by_wgmma(const Launch& l);
  /// What becomes of the sum of A's rows: a partial one of the kernel behind.
  tree::Statement store_operand_reduction(int shares, std::int64_t rows) const;

  const TableName& table_;
  const Launch* launch_ = nullptr;  ///< that is printed
};

}  // namespace tessera::codegen::cuda
