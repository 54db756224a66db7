#include "codegen/cpu/tile.hpp"

#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::name;

std::pair<Piece, Piece> pieces_of(const Kernel& gemm, const Tile& tile) {
  std::pair<Piece, Piece> pieces{{1, 0}, {1, 0}};
  for (const auto& [axis, piece] : tile) (axis == gemm.gemm.columns ? pieces.first : pieces.second) = piece;
  return pieces;
}

std::int64_t tile_vectors(const Values& v, const Piece& piece) {
  return (piece.points - 1) * v.target.lanes + (piece.tail ? piece.tail : v.target.lanes);
}

void move(Values& v, int axis, const char* by) {
  Place& p = v.place[axis];
  p.variable = p.variable ? p.variable + name(by) : name(by);
}

}  // namespace tessera::codegen::cpu
