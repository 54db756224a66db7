#include "codegen/cpu/tile.hpp"

#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::Expr;
using tree::integer;
using tree::name;

namespace {

void for_points(Values& v, const Tile& tile, const std::function<void()>& f, std::size_t depth) {
  if (depth == tile.size()) {
    f();
    return;
  }
  auto [a, piece] = tile[depth];
  Place kept = v.place[a];
  Expr kept_tail = v.tail;
  for (std::int64_t i = 0; i < piece.points; ++i) {
    v.place[a].offset = kept.offset + i * (a == v.vector ? v.target.lanes : 1);
    if (a == v.vector) v.tail = piece.tail && i + 1 == piece.points ? integer(piece.tail) : nullptr;
    for_points(v, tile, f, depth + 1);
  }
  v.place[a] = kept;
  v.tail = kept_tail;
}

}  // namespace

std::pair<Piece, Piece> pieces_of(const Kernel& gemm, const Tile& tile) {
  std::pair<Piece, Piece> pieces{{1, 0}, {1, 0}};
  for (const auto& [axis, piece] : tile) (axis == gemm.gemm.columns ? pieces.first : pieces.second) = piece;
  return pieces;
}

std::int64_t tile_vectors(const Values& v, const Piece& piece) {
  return (piece.points - 1) * v.target.lanes + (piece.tail ? piece.tail : v.target.lanes);
}

void for_points(Values& v, const Tile& tile, const std::function<void()>& f) { for_points(v, tile, f, 0); }

void move(Values& v, int axis, const char* by) {
  Place& p = v.place[axis];
  p.variable = p.variable ? p.variable + name(by) : name(by);
}

}  // namespace tessera::codegen::cpu
