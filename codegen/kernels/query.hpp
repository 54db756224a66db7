// What passes ask of a kernel: its expressions, the tensors that it touches, whether it sums what another one
// multiplies.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

inline const Expression& expression_of(const Kernel& k, ExprId e) { return k.expressions[e]; }
/// Of an axis; -1: only the run knows it.
std::int64_t size_of(const Kernel& k, int axis);

/// Whether two expressions are the same tree over equal accesses; dropout's factors are never the same.
bool same(const Kernel& k, ExprId a, ExprId b);
inline bool is_op(const Kernel& k, ExprId e, graph::Op op) {
  return expression_of(k, e).kind == Expression::Kind::op && expression_of(k, e).op == op;
}
inline bool is_local(const Kernel& k, ExprId e, int step) {
  return expression_of(k, e).kind == Expression::Kind::local && expression_of(k, e).step == step;
}

/// Calls f for each index over axes that an expression has itself, its operands aside.
template <class E, class F>
void for_each_index(E& e, const F& f) {
  f(e.element);
  for (auto& index : e.access.index) f(index);
}
/// The axes that an expression depends on, but for those behind locals.
std::set<int> axes_below(const Kernel& k, ExprId e);

/// The tensors that a kernel and those fused into it store, load or touch.
std::set<TensorId> stored_by(const Kernel& k);
std::set<TensorId> loaded_by(const Kernel& k);
std::set<TensorId> tensors_of(const Kernel& k);
/// Whether two sets have an element in common.
bool meet(const std::set<TensorId>& some, const std::set<TensorId>& others);

/// The axes of one kernel in another one: of those that stand at the same dim of a tensor. -1: there is none.
std::vector<int> mapped(const std::vector<int>& axes, const std::vector<int>& from, const std::vector<int>& to);

/// Whether a step of a kernel of rows sums over all rows, for each point of the inner axes, and stores partial sums.
bool sums_rows(const Kernel& k, const Step& step);

/// Whether the layers of `region` count the slots of `t`: those of its own region, or of the one whose gradient it
/// computes. Every other kernel reads the same slot in each of its layers, as what reads the carry that a stack leaves.
bool counts_slots_of(const KernelProgram& program, int region, const Tensor& t);

/// The line of the declaration that a kernel comes from, "VitBlock, vit_parts.hpp: x + attn(norm1(x))": that of its
/// product, else of its reduction, else of the first node that has one, else of other nodes at the same path of the
/// model; "" where none has. Cut to what a comment holds.
std::string declared_at(const KernelProgram& program, const Kernel& k);

/// Takes out expressions that no step needs.
void remove_dead_expressions(Kernel& k);

/// Whether `sum` adds up `operand`, which a GEMM loads, over the GEMM's depth, for each point of `across`, the axis of
/// the result's rows or columns: as the gradient of a bias does with what the weight's gradient multiplies. What else
/// the sum's kernel computes of it is not asked.
bool sums_operand(const Kernel& gemm, const Access& operand, int across, const std::vector<int>& depth,
                  const Kernel& sum);

}  // namespace tessera::codegen
