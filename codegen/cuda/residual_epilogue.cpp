#include "codegen/cuda/residual_epilogue.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <range/v3/algorithm/count.hpp>

#include "codegen/cuda/plan.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

namespace {

std::set<ExprId> below(const Kernel& k, ExprId e) {
  std::set<ExprId> all;
  const auto take = [&](auto&& self, ExprId at) -> void {
    if (!at.valid() || !all.insert(at).second) return;
    const Expression& x = expression_of(k, at);
    if (x.kind == Expression::Kind::op)
      for (ExprId operand : {x.a, x.b, x.c}) self(self, operand);
  };
  take(take, e);
  return all;
}

/// What a row kernel stores of a product's result and other elements at the same place.
struct Sum {
  std::size_t step = 0, store = 0;
  std::vector<int> from, to;  ///< axes of the row kernel and of the product
};

std::optional<Sum> sum_of(const KernelProgram& program, const Kernel& product, const Kernel& row) {
  if (!operands_of(product, program.precision).a.valid() || product.steps.size() != 2 || product.across_batch)
    return {};
  if (row.anchor != Anchor::row || row.region != product.region || !row.fused.empty() || !product.fused.empty())
    return {};
  if (product.steps[1].stores.size() != 1) return {};
  const Access& made = product.steps[1].stores[0].to;
  const Tensor& t = program.tensors[made.tensor];
  if (t.storage != Storage::scratch || t.element != DType::real || t.slots != 1 || made.shift != 0) return {};
  for (const Kernel& k : program.kernels)
    if (&k != &product && &k != &row && tensors_of(k).contains(made.tensor)) return {};
  if (stored_by(row).contains(made.tensor)) return {};

  for (std::size_t s = 0; s < row.steps.size(); ++s)
    for (std::size_t i = 0; i < row.steps[s].stores.size(); ++i) {
      const Step::Store& store = row.steps[s].stores[i];
      Sum sum{s, i, axes_along(store.to), axes_along(made)};
      const Tensor& stored = program.tensors[store.to.tensor];
      if (sum.from.empty() || sum.from.size() != sum.to.size() || stored.element != DType::real) continue;
      if (row.steps[s].reduces || meet({store.to.tensor}, tensors_of(product))) continue;
      if (ranges::count(row.expressions, true, [&](const Expression& e) {
            return e.kind == Expression::Kind::load && e.access.tensor == store.to.tensor;
          }))
        continue;
      bool right = true, reads_it = false;
      const std::set<ExprId> parts = below(row, store.value);
      for (ExprId e : parts) {
        const Expression& x = expression_of(row, e);
        if (x.kind == Expression::Kind::load && x.access.tensor == made.tensor) {
          reads_it = true;
          right = right && axes_along(x.access) == sum.from && x.access.shift == 0;
        } else if (x.kind == Expression::Kind::load) {
          for (const Affine& index : x.access.index)
            for (const Affine::Part& part : index.parts) right = right && ranges::count(sum.from, part.axis) > 0;
        } else {
          right = right && (x.kind == Expression::Kind::constant || x.kind == Expression::Kind::op);
        }
      }
      for (std::size_t a = 0; a < sum.from.size(); ++a)
        right = right && row.axes[sum.from[a]].dim == product.axes[sum.to[a]].dim;
      if (right && reads_it) return sum;
    }
  return {};
}

/// The access of the row kernel, in the product.
Access moved(Access access, const Sum& sum) {
  for (Affine& index : access.index) {
    for (Affine::Part& part : index.parts) part.axis = mapped({part.axis}, sum.from, sum.to)[0];
    std::sort(index.parts.begin(), index.parts.end());
  }
  return access;
}

/// The product stores the sum, and the row kernel reads it; false, and nothing has changed, where the row kernel needs
/// the product's result for more.
bool move_sum(Kernel& product, Kernel& row, const Sum& sum) {
  Kernel reader = row;
  Step::Store store = reader.steps[sum.step].stores[sum.store];
  const TensorId made = product.steps[1].stores[0].to.tensor;

  Kernel maker = product;
  const ExprId result = maker.steps[1].stores[0].value;
  std::map<ExprId, ExprId> in_maker;
  for (ExprId e : below(reader, store.value)) {
    Expression x = expression_of(reader, e);
    if (x.kind == Expression::Kind::load && x.access.tensor == made) {
      in_maker[e] = result;
      continue;
    }
    if (x.kind == Expression::Kind::load) x.access = moved(x.access, sum);
    for (ExprId* operand : {&x.a, &x.b, &x.c})
      if (operand->valid()) *operand = in_maker.at(*operand);
    in_maker[e] = push(maker, std::move(x));
  }
  maker.steps[1].stores[0] = {moved(store.to, sum), in_maker.at(store.value)};

  Expression& value = reader.expressions[store.value];
  value = {};
  value.kind = Expression::Kind::load;
  value.access = store.to;
  std::vector<Step::Store>& stores = reader.steps[sum.step].stores;
  stores.erase(stores.begin() + static_cast<std::ptrdiff_t>(sum.store));
  if (stores.empty()) {
    reader.steps.erase(reader.steps.begin() + static_cast<std::ptrdiff_t>(sum.step));
    for (Expression& e : reader.expressions)
      if (e.kind == Expression::Kind::local && e.step > static_cast<int>(sum.step)) --e.step;
  }
  if (reader.steps.empty()) return false;
  remove_dead_expressions(reader);
  if (tensors_of(reader).contains(made)) return false;
  product = std::move(maker);
  row = std::move(reader);
  return true;
}

}  // namespace

void fuse_residual_epilogues(KernelProgram& program) {
  for (const std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      if (order[i].kernel < 0 || order[i + 1].kernel < 0) continue;
      Kernel &product = program.kernels[order[i].kernel], &row = program.kernels[order[i + 1].kernel];
      if (const std::optional<Sum> sum = sum_of(program, product, row)) {
        const TensorId made = product.steps[1].stores[0].to.tensor;
        if (move_sum(product, row, *sum)) program.tensors[made].storage = Storage::registers;
      }
    }
}

}  // namespace tessera::codegen::cuda
