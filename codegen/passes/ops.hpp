// The rule book of operations: one row an op, of graph::Op. Every table with a column for ops is made from these rows,
// and no switch over ops has a `default`: what a new op still lacks, the compiler names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dsl/graph/graph.hpp"

// Elementwise: ROW(op, operands, commutes, cost and function of the CPU, cost and function of CUDA, value for numbers).
// Costs are in additions. CPU functions are those of codegen/cpu/simd, of vectors; CUDA's are C++'s or those of
// codegen/cuda/device, or an operator. The value for numbers a and b is what constants are folded to.
// clang-format off: rows are for reading
#define TESSERA_UNARY_OPS(ROW)                                                                     \
  ROW(negate,        1, false,  1, "v_neg",           1, "-",               -a)                    \
  ROW(exp,           1, false, 12, "v_exp",          10, "expf",            std::exp(a))           \
  ROW(log,           1, false, 12, "v_log",          10, "logf",            std::log(a))           \
  ROW(sqrt,          1, false,  4, "v_sqrt",          8, "sqrtf",           std::sqrt(a))          \
  ROW(rsqrt,         1, false,  4, "v_rsqrt",         8, "inverse_root",    1 / std::sqrt(a))      \
  ROW(tanh,          1, false, 25, "v_tanh",         20, "tanhf",           std::tanh(a))          \
  ROW(sin,           1, false, 20, "v_sin",          25, "sine",            std::sin(a))           \
  ROW(cos,           1, false, 20, "v_cos",          25, "cosine",          std::cos(a))           \
  ROW(erf,           1, false, 25, "v_erf",          30, "erff",            std::erf(a))           \
  ROW(gelu,          1, false, 25, "v_gelu",         16, "gelu",            std::nullopt)          \
  ROW(gelu_gradient, 1, false, 25, "v_gelu_gradient", 17, "gelu_gradient",  std::nullopt)          \
  ROW(relu,          1, false,  1, "v_max",           1, "larger",          std::nullopt)          \
  ROW(step,          1, false,  1, "v_step",          1, "one_if_positive", std::nullopt)          \
  ROW(copy,          1, false,  1, "",                1, "",                std::nullopt)
#define TESSERA_BINARY_OPS(ROW)                                                                    \
  ROW(add,           2, true,   1, "v_add",           1, "+",               a + b)                 \
  ROW(subtract,      2, false,  1, "v_sub",           1, "-",               a - b)                 \
  ROW(multiply,      2, true,   1, "v_mul",           1, "*",               a * b)                 \
  ROW(divide,        2, false,  4, "v_div",           8, "/",               a / b)                 \
  ROW(maximum,       2, true,   1, "v_max",           1, "larger",          std::fmax(a, b))       \
  ROW(equal,         2, true,   1, "v_equal",         1, "one_if",          std::nullopt)
#define TESSERA_TERNARY_OPS(ROW)                                                                   \
  ROW(select,        3, false,  1, "v_select_less",   1, "select_positive", std::nullopt)

// The others: ROW(op, class, fewest operands, most operands, FLOPs, operand types, attributes...).
#define TESSERA_LEAF_OPS(ROW)                                                                      \
  ROW(input,         leaf, 0, 0, none, reals, name, integers)                                      \
  ROW(parameter,     leaf, 0, 0, none, reals, name, undecayed, frozen, init)                       \
  ROW(table,         leaf, 0, 0, none, reals, name, data)                                          \
  ROW(constant,      leaf, 0, 0, none, reals, value)                                               \
  ROW(arange,        leaf, 0, 0, none, reals)                                                      \
  ROW(extent,        leaf, 0, 0, none, reals, dim)                                                 \
  ROW(keep,          leaf, 1, 1, none, first_integers, dropout, rate)
#define TESSERA_STRUCTURE_OPS(ROW)                                                                 \
  ROW(broadcast,     structure, 1, 1, none, as_result, axes)                                       \
  ROW(integers,      structure, 1, 1, none, reals, integers)                                       \
  ROW(one_hot,       structure, 1, 1, none, first_integers)                                        \
  ROW(rearrange,     structure, 1, 1, none, as_result, rearrangement)                              \
  ROW(slice,         structure, 1, 1, none, as_result, axis, offset)                               \
  ROW(concat,        structure, 1, any, none, as_result, axis)                                     \
  ROW(unfold,        structure, 1, 1, none, reals, axis, offset, steps)                            \
  ROW(cache,         structure, 2, 2, none, second_integers, axis)
#define TESSERA_CONTRACTION_OPS(ROW)                                                               \
  ROW(einsum,        contraction, 1, 2, contraction, reals, letters)
#define TESSERA_REDUCTION_OPS(ROW)                                                                 \
  ROW(reduce_sum,    reduction, 1, 1, operand, reals, axes)                                        \
  ROW(reduce_max,    reduction, 1, 1, operand, reals, axes)
#define TESSERA_COMPOSITE_OPS(ROW)                                                                 \
  ROW(softmax,       composite, 1, 1, decomposed, reals, axis)                                     \
  ROW(log_softmax,   composite, 1, 1, decomposed, reals, axis)                                     \
  ROW(layer_norm,    composite, 3, 3, decomposed, reals, axes, epsilon)                            \
  ROW(cross_entropy, composite, 2, 2, decomposed, second_integers)                                 \
  ROW(gather,        composite, 2, 2, decomposed, second_integers)                                 \
  ROW(stop_gradient, composite, 1, 1, decomposed, reals)                                           \
  ROW(fold,          composite, 1, 1, decomposed, reals, axis, offset, steps)                      \
  ROW(gradient,      composite, 2, 2, decomposed, reals)                                           \
  ROW(dropout,       composite, 1, 1, decomposed, reals, dropout, rate, axes)
#define TESSERA_REGION_OPS(ROW)                                                                    \
  ROW(carry,         region, 1, 1, none, as_result)                                                \
  ROW(carry_out,     region, 1, 1, none, as_result)
// clang-format on

#define TESSERA_ELEMENTWISE_OPS(ROW) TESSERA_UNARY_OPS(ROW) TESSERA_BINARY_OPS(ROW) TESSERA_TERNARY_OPS(ROW)
/// Of all that move elements or stand for them, and compute none.
#define TESSERA_MOVING_OPS(ROW) TESSERA_LEAF_OPS(ROW) TESSERA_STRUCTURE_OPS(ROW) TESSERA_REGION_OPS(ROW)
#define TESSERA_OTHER_OPS(ROW) \
  TESSERA_MOVING_OPS(ROW) TESSERA_CONTRACTION_OPS(ROW) TESSERA_REDUCTION_OPS(ROW) TESSERA_COMPOSITE_OPS(ROW)

/// In a switch over ops: the cases of a list, as `TESSERA_LEAF_OPS(TESSERA_OP_CASE)`.
#define TESSERA_OP_CASE(op, ...) case ::tessera::graph::Op::op:

namespace tessera::codegen {

enum class OpClass : std::uint8_t { leaf, elementwise, structure, contraction, reduction, composite, region };

/// Fields of a graph::Node that say more about an op than its operands and its shape do.
enum class Attribute : std::uint8_t {
  none,
  name,
  integers,   ///< type
  undecayed,  ///< decay
  frozen,     ///< trained
  init,
  data,
  value,
  epsilon,  ///< value
  rate,     ///< value
  dim,
  axes,
  axis,  ///< axes, of which there is one
  offset,
  steps,    ///< stride, dilation
  dropout,  ///< offset: which dropout
  letters,
  rearrangement,
};

/// How many operations a node stands for: one for each element of its result or of its operand.
enum class Flops : std::uint8_t { none, result, operand, contraction, decomposed };

/// Which operands are integers; as_result: what the result is.
enum class OperandTypes : std::uint8_t { reals, first_integers, second_integers, as_result };

struct OpRow {
  OpClass of = OpClass::leaf;
  int least = 0, most = 0;  ///< operands
  Flops flops = Flops::none;
  OperandTypes types = OperandTypes::reals;
  std::array<Attribute, 4> attributes{};
  bool commutes = false;
  double cpu_cost = 1;
  std::string_view cpu = "";  ///< function; "": an op that no kernel has
  double cuda_cost = 1;
  std::string_view cuda = "";
};

/// All that kernels compute of single elements.
inline constexpr graph::Op elementwise_ops[] = {
#define TESSERA_ROW(OP, ...) graph::Op::OP,
    TESSERA_ELEMENTWISE_OPS(TESSERA_ROW)
#undef TESSERA_ROW
};

/// The op's row.
constexpr OpRow row_of(graph::Op op) {
  using enum Attribute;
  constexpr int any = 1 << 30;
  switch (op) {
#define TESSERA_ROW(OP, OPERANDS, COMMUTES, CPU_COST, CPU, CUDA_COST, CUDA, NUMBER)                    \
  case graph::Op::OP:                                                                                  \
    return {.of = OpClass::elementwise,                                                                \
            .least = OPERANDS,                                                                         \
            .most = OPERANDS,                                                                          \
            .flops = graph::Op::OP == graph::Op::copy ? Flops::none : Flops::result,                   \
            .types = graph::Op::OP == graph::Op::copy ? OperandTypes::as_result : OperandTypes::reals, \
            .commutes = COMMUTES,                                                                      \
            .cpu_cost = CPU_COST,                                                                      \
            .cpu = CPU,                                                                                \
            .cuda_cost = CUDA_COST,                                                                    \
            .cuda = CUDA};
    TESSERA_ELEMENTWISE_OPS(TESSERA_ROW)
#undef TESSERA_ROW
#define TESSERA_ROW(OP, CLASS, LEAST, MOST, FLOPS, TYPES, ...) \
  case graph::Op::OP:                                          \
    return {.of = OpClass::CLASS,                              \
            .least = LEAST,                                    \
            .most = MOST,                                      \
            .flops = Flops::FLOPS,                             \
            .types = OperandTypes::TYPES,                      \
            .attributes = {__VA_ARGS__}};
    TESSERA_OTHER_OPS(TESSERA_ROW)
#undef TESSERA_ROW
  }
  return {};
}

}  // namespace tessera::codegen
