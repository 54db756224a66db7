#include "codegen/cpu/packing.hpp"

#include <fmt/format.h>

#include <numeric>
#include <range/v3/algorithm/find_if.hpp>
#include <utility>

#include "codegen/error.hpp"
#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// Rows of a weight as it is stored, [rows, reals of a row].
std::int64_t rows_of(const PackedEntry& e) { return e.transposed ? e.depth / e.taps : e.columns; }
std::int64_t reals_of_row(const PackedEntry& e) { return e.transposed ? e.columns * e.taps : e.depth; }

std::string described(const PackedEntry& e) {
  if (e.packing == Packing::plain) return fmt::format("{} [{}]", e.key, e.columns);
  return fmt::format("{} [{}, {}]{}", e.key, rows_of(e), reals_of_row(e), e.transposed ? ", transposed" : "");
}

tree::Statement counted(const std::string& index, std::int64_t count, Block body) {
  return tree::loop(index, integer(0), tree::binary("<", name(index), integer(count)), 1, std::move(body));
}

}  // namespace

Block Packer::panels(bool trained) const {
  Block b;
  for (const PackedEntry& e : packed_.entries)
    if (packed_by_rows(e) && (e.offset >= packed_.forward_reals) == trained) pack(b, e);
  return b;
}

Block Packer::rest() const {
  Block b;
  for (const PackedEntry& e : packed_.entries) {
    if (packed_by_rows(e)) continue;
    if (e.offset >= packed_.forward_reals)
      throw Error(fmt::format("{} is no matrix, and yet packed for training", e.key));
    pack(b, e);
  }
  return b;
}

void Packer::pack(Block& b, const PackedEntry& e) const {
  if (e.packing == Packing::scales || e.packing == Packing::folded) return;  // with their panels; by kernels
  const int count = e.count();
  const Expr source = name("parameters") + offset(arena_.find(e.key), e.first, count), to = place(e, e.first, count);
  b.push_back(tree::comment(described(e)));
  tree::Statement packs =
      e.packing == Packing::plain ? tree::evaluate(call("std::copy_n", {source, integer(e.columns), to}))
      : quantized(e.element)      ? tree::evaluate(call(std::string("pack_") + name_of(e.element),
                                                        {source, integer(e.columns), integer(e.depth), to, scales_of(e)}))
                                  : rows(e, source, to, integer(0), integer(rows_of(e)));
  if (count == 1) {
    b.push_back(std::move(packs));
    return;
  }
  if (e.packing != Packing::plain) b.push_back(tree::pragma("omp parallel for schedule(static)"));
  b.push_back(counted("layer", count, {std::move(packs)}));
}

std::vector<Packer::Layers> Packer::in_panels() const {
  std::vector<Layers> found;
  for (const ArenaEntry& weight : arena_.entries) {
    std::set<int> ends;
    for (const PackedEntry& e : packed_.entries)
      if (e.key == weight.key && packed_by_rows(e)) ends.insert({e.first, e.last + 1});
    for (auto end = ends.begin(); end != ends.end() && std::next(end) != ends.end(); ++end) {
      Layers layers{&weight, *end, *std::next(end) - 1, {}};
      for (const PackedEntry& e : packed_.entries)
        if (e.key == weight.key && packed_by_rows(e) && e.first <= layers.first && layers.last <= e.last)
          layers.copies.push_back(&e);
      if (!layers.copies.empty()) found.push_back(std::move(layers));
    }
  }
  return found;
}

Block Packer::updated(const Update& update) const {
  Block b;
  for (const Layers& layers : in_panels()) {
    Block one = updated(layers, update);
    b.insert(b.end(), one.begin(), one.end());
  }
  return b;
}

Block Packer::updated(const Layers& layers, const Update& update) const {
  const PackedEntry& stored = *layers.copies.front();
  const std::int64_t rows_stored = rows_of(stored), row_reals = reals_of_row(stored);
  // Whole panels, or whole tiles, of each copy; and whole lines of memory.
  std::int64_t block = 16;
  for (const PackedEntry* e : layers.copies)
    block = std::lcm(block, !e->transposed                        ? width(*e)
                            : uses_tile_unit(e->element, target_) ? panel_k(e->element, 1)
                                                                  : 1);
  const std::int64_t blocks = (rows_stored + block - 1) / block;
  const int count = layers.last - layers.first + 1;

  Block body;
  const auto declare = [&](const std::string& variable, Expr value) {
    body.push_back(tree::declare("const std::int64_t", variable, std::move(value)));
    return name(variable);
  };
  Expr weight = integer(layers.weight->at(layers.first)), which = name("block");
  if (count > 1) {
    declare("layer", tree::binary("/", name("block"), integer(blocks)));
    weight = declare("weight", offset(*layers.weight, layers.first, count));
    which = tree::binary("%", which, integer(blocks));
  }
  const Expr first = declare("first", which * block), end = first + integer(block);
  const Expr last = declare("last", rows_stored % block ? tree::least(integer(rows_stored), end) : end);
  body.push_back(update(weight + first * row_reals, weight + last * row_reals, layers.weight->decay));
  for (const PackedEntry* e : layers.copies)
    body.push_back(rows(*e, name("parameters") + weight, place(*e, layers.first, count), first, last));
  return {
      tree::comment(fmt::format("{} [{}, {}], {} rows at a time", layers.weight->key, rows_stored, row_reals, block)),
      tree::pragma("omp parallel for schedule(static)"), counted("block", count * blocks, std::move(body))};
}

/// Where a weight of `count` layers from `first` on lies in the arena.
Expr Packer::offset(const ArenaEntry& weight, int first, int count) const {
  const Expr at = integer(weight.at(first));
  return count > 1 ? tree::binary("-", at, name("layer") * weight.stride) : at;
}

Expr Packer::place(const PackedEntry& e, int first, int count) const {
  Expr at = name("packed") + integer(e.offset + (first - e.first) * e.reals);
  if (count > 1) at = at + name("layer") * e.reals;
  return e.element == DType::real || e.packing == Packing::plain ? at
                                                                 : call(std::string(name_of(e.element)) + "_at", {at});
}

tree::Statement Packer::rows(const PackedEntry& e, const Expr& weight, const Expr& panels, const Expr& first,
                             const Expr& last) const {
  if (e.taps > 1)
    return tree::evaluate(call("pack_taps", {weight, integer(e.columns), integer(e.depth), integer(e.taps),
                                             integer(width(e)), first, last, panels}));
  return tree::evaluate(call(e.transposed ? "pack_transposed" : "pack",
                             {weight, integer(e.columns), integer(e.depth), integer(width(e)), first, last, panels}));
}

std::int64_t Packer::width(const PackedEntry& e) const {
  return tile_vectors(target_, e.columns, e.element) * target_.lanes;
}

/// Where the scales and sums of a parameter in int8 lie, or the sums of one in int4.
Expr Packer::scales_of(const PackedEntry& panels) const {
  const auto at = ranges::find_if(packed_.entries, [&](const PackedEntry& e) {
    return e.key == panels.key && e.first == panels.first && e.packing == Packing::scales;
  });
  return place(*at, at->first, at->count());
}

std::set<std::string> Packer::functions() {
  return {"pack",    "pack_transposed", "pack_taps", "pack_int8",   "pack_int4",
          "bf16_at", "int8_at",         "int4_at",   "std::copy_n", "std::min<std::int64_t>"};
}

}  // namespace tessera::codegen::cpu
