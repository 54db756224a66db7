// How large the blocks of attention and of its backward pass are, and how their scores lie.
#include <algorithm>
#include <numeric>

#include "codegen/plan/attention_axes.hpp"
#include "codegen/plan/gemm.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/online_softmax.hpp"

namespace tessera::codegen {

namespace {

/// Reals of a block's scores: about a first cache.
constexpr std::int64_t block_reals = 10 << 10;
/// Scores that may lie on a thread's stack: 256 KiB, where one query of an image has no more.
constexpr std::int64_t stack_reals = 1 << 16;
/// Where a block has some of the keys: these stay in L2, and no more than a block's scores lies on the stack.
constexpr std::int64_t queries_of_forward_block = 64;

/// Of factors of bf16: each block packs or widens all its keys and values, so that it is larger, and has as many
/// queries as there is room for on the stack beside these copies, up to so many.
constexpr std::int64_t bf16_block_reals = 24 << 10, bf16_queries = 64, stack_bytes = 376 << 10;

/// Of a backward pass, of probabilities and of their gradients each: a block adds to all rows of two gradients, so that
/// it is larger.
constexpr std::int64_t gradient_block_reals = 32 << 10;
/// Where a block of all keys had fewer queries than that, it has this many keys: what it reads and adds to of keys and
/// values, and of as many queries, stays in L2.
constexpr std::int64_t least_queries = 24, keys_of_block = 192;

/// How far apart the scores of two queries lie.
std::int64_t reals_of_query(const Layouts& layouts, const Kernel& scores) {
  const Access& to = scores.steps[1].stores[0].to;
  return step_along(to, layouts[to.tensor], scores.gemm.rows);
}

/// Whether a block has some of the keys alone, whose scores lie side by side.
bool blocks_keys(const Kernel& kernel) {
  if (kernel.fused.has(Fused::Role::begin)) return true;
  if (kernel.fused.kind != Fused::Kind::attention_gradient) return false;
  const Kernel& scores = kernel.fused.part(Fused::Role::scores);
  const Affine& last = scores.steps[1].stores[0].to.index.back();
  const std::int64_t keys = scores.axes[scores.gemm.columns].dim.value();
  return (kernel.gemm.accumulates_fp32 ? keys > keys_of_block : gradient_block_reals / keys < least_queries) &&
         last.parts.size() == 1 && last.parts[0].axis == scores.gemm.columns;
}

/// Bytes of the stack that attention's last GEMM takes, of factors of bf16: a panel of values, packed or widened, or,
/// where it rounds them, all of them and a tile's probabilities.
std::int64_t bytes_of_copies(const Kernel& mix, const Schedule& s, const Target& target) {
  constexpr std::int64_t most_widened = 192 << 10, tile = 36;
  const std::int64_t keys = s.keys ? s.keys : whole_tiles(mix.axes[mix.steps[0].over[0]].dim.value());
  if (!uses_tile_unit(mix, target)) return std::min(most_widened, keys * s.tile[mix.gemm.columns] * target.lanes * 4);
  return 2 * keys * (mix.gemm.narrows ? tile + whole_tiles(mix.axes[mix.gemm.columns].dim.value()) : tile_side);
}

/// How many queries a block has at best, and how many fit on a thread's stack.
struct Room {
  std::int64_t best, most;
};

/// Those of a block of keys, of factors of bf16: as attention's first GEMM takes them or as the last one does,
/// whichever is more. No more than most_copied of a right factor is copied as a whole, and of a left one a tile's rows.
std::int64_t bytes_of_key_block(const Kernel& kernel, const Schedule& s, const Target& target) {
  constexpr std::int64_t most_copied = 256 << 10, tile = 36;
  const Kernel& scores = kernel.fused.part(Fused::Role::scores);
  const bool narrows = kernel.gemm.narrows;
  const std::int64_t depth = whole_tiles(scores.axes[scores.steps[0].over[0]].dim.value()),
                     columns = whole_tiles(kernel.axes[kernel.gemm.columns].dim.value());
  const std::int64_t first = std::min(most_copied, 2 * s.keys * depth) + (narrows ? 2 * tile * depth : 0),
                     last = narrows ? std::min(most_copied, 2 * s.keys * columns) + 2 * tile * s.keys
                                    : bytes_of_copies(kernel, s, target);
  return std::max(first, last);
}

/// The same of a backward pass: of each product a right factor as a whole, up to most_copied, and a tile's rows.
std::int64_t bytes_of_gradient_block(const Kernel& kernel) {
  constexpr std::int64_t most_copied = 256 << 10, tile = 36;
  const std::int64_t width = whole_tiles(kernel.axes[kernel.gemm.columns].dim.value());
  return std::min(most_copied, 2 * keys_of_block * width) + 2 * tile * std::max(keys_of_block, width);
}

/// `reals`: of one query's scores.
Room room_of(const Kernel& kernel, const Schedule& s, const Target& target, std::int64_t reals) {
  const auto queries_of = [&](std::int64_t all) { return std::max<std::int64_t>(1, all / reals); };
  if (kernel.fused.kind == Fused::Kind::attention_gradient) {
    // Probabilities and their gradients, and, of factors of bf16, the copies of a block.
    const std::int64_t best = queries_of(gradient_block_reals);
    const std::int64_t copied = uses_tile_unit(kernel, target) ? bytes_of_gradient_block(kernel) : 0;
    const std::int64_t most = std::min(best, std::max<std::int64_t>(1, (stack_bytes - copied) / (8 * reals)));
    return {most, most};
  }
  const std::int64_t bytes = kernel.gemm.narrows ? 4 : 6;  // of a score, and of its probability where that is beside it
  if (s.keys) {
    const bool real = factors_on(kernel, target) == DType::real;
    const std::int64_t sums = 8 * kernel.axes[kernel.gemm.columns].dim.value();  // bytes, of a block and of all so far
    const std::int64_t left = stack_bytes - (real ? 0 : bytes_of_key_block(kernel, s, target));
    const std::int64_t most = std::max<std::int64_t>(1, left / ((real ? 4 : bytes) * keys_of_forward_block + sums));
    return {std::min(most, queries_of_forward_block), most};
  }
  if (factors_on(kernel, target) == DType::real) return {queries_of(block_reals), queries_of(stack_reals)};
  const std::int64_t most = queries_of((stack_bytes - bytes_of_copies(kernel, s, target)) / bytes);
  return {std::min(most, std::max(bf16_queries, queries_of(bf16_block_reals))), most};
}

}  // namespace

void lay_out_blocks(const KernelProgram& program, Layouts& layouts) {
  for (const Kernel& kernel : program.kernels)
    if (blocks_keys(kernel))
      for (std::size_t part = 0; part < kernel.fused.parts.size(); ++part)
        for_each_access(kernel.fused.parts[part], [&](const Access& a, bool writes) {
          const int keys = attention_axes(kernel)[part].keys;
          if (writes && keys >= 0 && program.tensors[a.tensor].storage == Storage::registers &&
              axis_along(a.index.back()) == keys)
            layouts[a.tensor] =
                layout_with_rows(program.tensors[a.tensor],
                                 kernel.fused.kind == Fused::Kind::attention ? keys_of_forward_block : keys_of_block);
        });
}

Schedule attention_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                            const Target& target) {
  const Kernel& scores = kernel.fused.part(Fused::Role::scores);
  const std::vector<AttentionAxes> axes = attention_axes(kernel);
  Schedule s = gemm_schedule(program, layouts, kernel, target);
  s.depth = 0;  // there are too few rows at once
  for (std::size_t part = 0; part < kernel.fused.parts.size(); ++part) {
    const Kernel& one = kernel.fused.parts[part];
    s.fused.push_back(one.gemm.columns >= 0 ? gemm_schedule(program, layouts, one, target)
                                            : choose_schedule(program, layouts, one, target, axes[part].heads));
    s.fused.back().depth = 0;
  }
  // Whole tiles of all products with rows of queries, so many that all blocks are about as large. Tiles that do not go
  // together get as many rows as the smaller ones.
  std::vector<std::int64_t*> tiles;
  for (std::size_t part = 0; part < axes.size(); ++part) {
    const bool own = part == kernel.fused.parts.size();
    const Kernel& one = own ? kernel : kernel.fused.parts[part];
    if (one.gemm.columns >= 0 && one.gemm.rows == axes[part].queries)
      tiles.push_back(&(own ? s : s.fused[part]).tile[one.gemm.rows]);
  }
  const auto unit = [&] {
    std::int64_t all = 1;
    for (const std::int64_t* rows : tiles) all = std::lcm(all, *rows);
    return all;
  };
  const auto set = [&](std::int64_t to) {
    for (std::int64_t* rows : tiles) *rows = to;
  };
  const std::int64_t queries = scores.axes[scores.gemm.rows].dim.value();
  const auto parts = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
  const bool online = kernel.fused.has(Fused::Role::begin);
  if (online) {
    std::int64_t across = 1;
    for (const AttentionAxes& of : axes) across = std::max(across, of.across);
    const std::int64_t keys = scores.axes[scores.gemm.columns].dim.value(), unit = unit_of_keys(across),
                       most = keys_of_forward_block / unit * unit;
    s.keys = parts(parts(keys, parts(keys, most)), unit) * unit;
  }
  const Room room = room_of(kernel, s, target, reals_of_query(layouts, scores));
  if (uses_tile_unit(kernel, target) && kernel.fused.kind == Fused::Kind::attention) {
    if (room.best >= queries) {
      s.queries = queries;
      return s;
    }
    // A tile of any height, of whole passes of the unit where they fit.
    const std::int64_t pass = target.bf16_tile_rows / (target.matrix_unit == MatrixUnit::none ? 3 : 2);
    s.queries = parts(queries, parts(queries, room.best));
    if (room.most >= pass) s.queries = std::min(parts(s.queries, pass), room.most / pass) * pass;
    std::int64_t rows = std::min(s.queries, target.bf16_tile_rows);
    while (s.queries % rows) --rows;
    set(rows);
    return s;
  }
  if (unit() > room.best)
    set(**std::min_element(tiles.begin(), tiles.end(), [](const auto* a, const auto* b) { return *a < *b; }));
  // Of images so large that a few queries' scores fill a thread's stack, fewer rows yet.
  if (unit() > room.most) set(room.most);
  if (blocks_keys(kernel) && !online) {
    // Whole tiles of keys as well: of those that they are the columns of, and of those that they are the rows of.
    std::int64_t columns = 1;
    for (std::size_t part = 0; part < 2; ++part)
      columns = std::lcm(columns, s.fused[part].tile[axes[part].keys] * target.lanes);
    const std::int64_t keys = scores.axes[scores.gemm.columns].dim.value(), most = keys_of_block / columns * columns;
    s.keys = parts(parts(keys, parts(keys, most)), columns) * columns;
    for (std::int64_t* rows : {&s.fused[2].tile[axes[2].keys], &s.tile[axes.back().keys]})
      while (s.keys % *rows) --*rows;
  }
  s.queries = std::min(queries, parts(parts(queries, parts(queries, room.best)), unit()) * unit());
  if (online || factors_on(kernel, target) == DType::bf16) s.queries = std::min(s.queries, room.most / unit() * unit());
  return s;
}

}  // namespace tessera::codegen
