// Operands of int8 (after Jacob et al. 2018, Quantization and Training of Neural Networks). A weight's columns have a
// scale each, or one for each group of int4, which is found when it is packed; the rows that they meet get theirs when
// the program runs, and the middle of their values, which is taken off before they are rounded: the sum of a column's
// weights times it is what that took off the result.
#include "codegen/plan/int8_quantize.hpp"

#include <algorithm>
#include <map>

#include "codegen/plan/operand.hpp"

namespace tessera::codegen {

namespace {

class Quantizer {
 public:
  explicit Quantizer(KernelProgram& program) : p_(program) {}

  void run() {
    for (std::size_t k = 0; k < p_.kernels.size(); ++k)
      if (quantized(p_.kernels[k].gemm.dtype)) {
        const Rows rows = store_rows(k);
        take_times_scales(p_.kernels[k], rows);
      }
  }

 private:
  /// Tensors of a number for each row.
  struct Rows {
    TensorId scales, middles;
  };

  const Tensor& tensor(TensorId t) const { return p_.tensors[t]; }
  TensorId add(Tensor t) { return p_.tensors.add(std::move(t)); }

  bool is_weight(const Expression& e) const {
    return e.kind == Expression::Kind::load && tensor(e.access.tensor).storage == Storage::packed;
  }
  ExprId left(const Kernel& k) const {
    const Expression& product = k.expressions[k.steps.front().value];
    return is_weight(k.expressions[product.a]) ? product.b : product.a;
  }

  /// Has a kernel store a product's left factor as int8: from each row's values their middle is taken, and what remains
  /// is a number from -127 to 127 times the row's scale, which is not a number where one of the row is none.
  Rows store_rows(std::size_t product) {
    const ExprId factor = left(p_.kernels[product]);
    OperandKernel made = kernel_of_operand(p_.kernels[product], factor);
    Kernel& k = made.kernel;
    const int depth = static_cast<int>(k.axes.size()) - 1;
    const ExprId x = made.value;
    k.anchor = Anchor::row;
    k.axes.back().inner = true;

    Tensor numbers;
    numbers.name = p_.kernels[product].name + ".int8";
    numbers.region = k.region;
    numbers.element = DType::int8;
    numbers.shape = made.shape;
    Tensor of_row = numbers;
    of_row.element = DType::real;
    of_row.shape.pop_back();
    numbers.shape.back() = Dim::constant(padded_k(DType::int8, numbers.shape.back().value()));
    made.stored.tensor = made.read.tensor = add(std::move(numbers));
    Access scale = made.stored;
    scale.index.pop_back();
    Access middle = scale;
    of_row.name = p_.kernels[product].name + ".scales";
    scale.tensor = add(of_row);
    of_row.name = p_.kernels[product].name + ".middles";
    middle.tensor = add(of_row);

    const auto reduce = [&](Reduction reduction, ExprId value) {
      Step s;
      s.reduces = true;
      s.reduction = reduction;
      s.over = {depth};
      s.value = value;
      return s;
    };
    using graph::Op;
    k.steps.push_back(reduce(Reduction::maximum, x));
    k.steps.push_back(reduce(Reduction::maximum, push_op(k, Op::negate, x)));
    k.steps.push_back(reduce(Reduction::sum, push_op(k, Op::multiply, x, push_constant(k, 0))));  // 0, or not a number
    const ExprId most = push_local(k, 0), least = push_local(k, 1), nothing = push_local(k, 2);
    const ExprId between = push_op(k, Op::multiply, push_op(k, Op::subtract, most, least), push_constant(k, 0.5));
    const ExprId apart = push_op(k, Op::divide, push_op(k, Op::add, most, least), push_constant(k, 254));
    const ExprId stored = push_op(k, Op::add, apart, nothing);
    Step of_rows;
    of_rows.stores = {{scale, stored}, {middle, between}};
    k.steps.push_back(std::move(of_rows));
    Step row;
    row.over = {depth};
    const ExprId divisor = push_op(k, Op::maximum, stored, push_constant(k, 1e-30));
    row.stores.push_back({made.stored, push_op(k, Op::divide, push_op(k, Op::subtract, x, between), divisor)});
    k.steps.push_back(std::move(row));
    run_before(p_, product, factor, std::move(made));
    return {scale.tensor, middle.tensor};
  }

  /// The scales of a weight's columns, and behind them their sums: beside its panels. In int4, whose scales lie in the
  /// panels, the sums alone.
  TensorId scales_of_columns(TensorId packed) {
    auto [at, fresh] = scales_.try_emplace(packed, p_.tensors.next());
    if (fresh) {
      Tensor t = tensor(packed);
      t.name += ".scales";
      t.element = DType::real;
      t.packing = Packing::scales;
      t.shape = {Dim::constant((tensor(packed).element == DType::int8 ? 2 : 1) * t.shape[0].value())};
      add(std::move(t));
    }
    return at->second;
  }

  /// In the place of a product's sums come these times the scales of row and column, and the row's middle times the
  /// column's sum. In int4 the column's scales are in the sums already.
  void take_times_scales(Kernel& k, const Rows& rows) {
    const Expression& product = k.expressions[k.steps.front().value];
    const ExprId factor = left(k);
    Access scale = k.expressions[factor].access;
    Access column = k.expressions[factor == product.a ? product.b : product.a].access;
    const std::int64_t columns = tensor(column.tensor).shape[0].value();
    scale.index.pop_back();
    scale.tensor = rows.scales;
    Access middle = scale;
    middle.tensor = rows.middles;
    column.tensor = scales_of_columns(column.tensor);
    column.index.resize(1);
    Access of_column = column;
    const bool scaled_by_group = k.gemm.dtype == DType::int4;
    if (!scaled_by_group) of_column.index[0].offset += columns;

    const Table<Expression, ExprId> old = std::move(k.expressions);
    k.expressions.clear();
    Table<ExprId, ExprId> now(old.size());
    for (const ExprId i : old.ids()) {
      Expression e = old[i];
      const bool sum = e.kind == Expression::Kind::local;
      for (ExprId* operand : {&e.a, &e.b, &e.c})
        if (operand->valid()) *operand = now[*operand];
      now[i] = push(k, std::move(e));
      if (!sum) continue;
      using graph::Op;
      const ExprId of_row = push_load(k, scale);
      const ExprId scaled = push_op(k, Op::multiply, now[i],
                                    scaled_by_group ? of_row : push_op(k, Op::multiply, of_row, push_load(k, column)));
      now[i] = push_op(k, Op::add, scaled, push_op(k, Op::multiply, push_load(k, middle), push_load(k, of_column)));
    }
    for (Step& s : k.steps) {
      if (s.value.valid()) s.value = now[s.value];
      for (Step::Store& store : s.stores) store.value = now[store.value];
    }
  }

  KernelProgram& p_;
  std::map<TensorId, TensorId> scales_;  ///< packed weight -> its columns' scales
};

}  // namespace

void quantize_to_int8(KernelProgram& program) { Quantizer(program).run(); }

}  // namespace tessera::codegen
