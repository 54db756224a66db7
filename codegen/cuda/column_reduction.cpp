#include "codegen/cuda/column_reduction.hpp"

#include <algorithm>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/count.hpp>
#include <range/v3/algorithm/count_if.hpp>

#include "codegen/cuda/merge_sums.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/cuda/tile.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

namespace {

constexpr std::int64_t lanes = 32;
constexpr int fewest_warps = 12;  // on an SM, to keep the memory busy

/// How many tensors a kernel reads and stores along its rows, but for the sums over them.
std::int64_t tensors_along_rows(const Kernel& k) {
  std::set<std::pair<TensorId, int>> tensors;
  const auto count = [&](const Access& access) {
    for (const Affine& index : access.index)
      for (const Affine::Part& part : index.parts)
        if (k.axes[part.axis].inner) tensors.insert({access.tensor, access.shift});
  };
  for (const Expression& e : k.expressions)
    if (e.kind == Expression::Kind::load) count(e.access);
  for (std::size_t s = 0; s < steps_of_row(k); ++s)
    for (const Step::Store& store : k.steps[s].stores) count(store.to);
  return static_cast<std::int64_t>(tensors.size());
}

/// How a kernel with such sums is divided; no blocks where they take too much shared memory.
ColumnReductions division_of(int count, std::int64_t row, std::int64_t tensors) {
  constexpr std::int64_t shared_bytes = 227 * 1024, of_system = 1024;  // of an H200's SM; of each block
  constexpr std::int64_t of_block = 100 * 1024;                        // an A100 has room for that, too
  ColumnReductions sums;
  sums.count = count;
  sums.length = (row + lanes - 1) / lanes * lanes;
  // A lane has what it needs of the row, or of half of it, in registers, of which it gets 64 or 128.
  const std::int64_t of_lane = tensors * (sums.length / lanes);
  sums.split_row = of_lane > 160;
  const int most_warps = row <= 256 ? 32 : 16;  // on an SM
  for (const int warps : {8, 4}) {
    const std::int64_t bytes = 4 * warps * sums.numbers();
    if (bytes > of_block) continue;
    sums.warps = warps;
    sums.registers_for = most_warps / warps;
    sums.resident = static_cast<int>(std::min<std::int64_t>(sums.registers_for, shared_bytes / (bytes + of_system)));
    if (sums.resident * warps >= fewest_warps) return sums;
  }
  return {};
}

/// Of the same slot, too, as far as is known.
bool overlap(const KernelProgram& program, const Access& a, const Access& b) {
  const Tensor& t = program.tensors[a.tensor];
  return a.tensor == b.tensor && !(t.carry && t.slots > 1 && a.shift != b.shift);
}
/// Whether `later` may run before this kernel does.
bool independent(const KernelProgram& program, const Kernel& later, const Kernel& k) {
  bool all = true;
  for_each_access(later, [&](const Access& mine, bool writes) {
    for_each_access(k, [&](const Access& theirs, bool also_writes) {
      all = all && !((writes || also_writes) && overlap(program, mine, theirs));
    });
  });
  return all;
}

std::vector<int> axes_of(const Kernel& k, bool inner) {
  std::vector<int> axes;
  for (std::size_t a = 0; a < k.axes.size(); ++a)
    if (k.axes[a].inner == inner) axes.push_back(static_cast<int>(a));
  return axes;
}

/// A kernel of rows, all of them of one length, and what more it can do.
class Rows {
 public:
  Rows(const KernelProgram& program, Kernel kernel) : program_(program), kernel_(std::move(kernel)) {}

  /// Whether it can do such sums at all.
  bool can_sum() const {
    if (kernel_.anchor != Anchor::row || kernel_.across_batch || !kernel_.fused.empty()) return false;
    constexpr std::int64_t longest = 1024;  // from there on a row has a block of its own
    const std::vector<int> inner = axes_of(kernel_, true);
    if (inner.size() != 1 || size_of(kernel_, inner[0]) < 2 || size_of(kernel_, inner[0]) > longest) return false;
    if (!ranges::any_of(axes_of(kernel_, false), [&](int a) { return size_of(kernel_, a) < 0; })) return false;
    // What it sums it may compute again: nothing of that may have been overwritten.
    if (meet(stored_by(kernel_), loaded_by(kernel_))) return false;
    return kernel_.steps.back().over == inner;
  }

  /// What is to be added up for each of the sums of a kernel, if it has all that they are made of.
  std::vector<ExprId> values_of(const Kernel& sum) {
    from_.clear();
    for (const Expression& e : sum.expressions)
      if (e.kind == Expression::Kind::load && from_.empty()) find_axes(e.access);
    const std::vector<int> outer = axes_of(sum, false), summed = axes_of(sum, true);
    if (outer.size() != 1 || mapped(outer, from_, to_) != axes_of(kernel_, true)) return {};
    std::vector<int> rows = mapped(summed, from_, to_);
    std::sort(rows.begin(), rows.end());
    if (rows != axes_of(kernel_, false)) return {};
    for (std::size_t i = 0; i < from_.size(); ++i)
      if (sum.axes[from_[i]].dim != kernel_.axes[to_[i]].dim) return {};
    const std::size_t before = kernel_.expressions.size();
    std::vector<ExprId> values;
    for (const Step& s : sum.steps)
      if (s.reduces) values.push_back(value_of(sum, s.value));
    if (!ranges::count(values, ExprId())) return values;
    kernel_.expressions.resize(before);
    return {};
  }

  /// Makes these sums, the first one that of `first` in the tensor of partial sums, which has a row for each block.
  void add(const std::vector<ExprId>& values, TensorId partial, std::int64_t first) {
    const int inner = axes_of(kernel_, true)[0], block = inner_of_blocks(partial);
    for (ExprId value : values) {
      Step s;
      s.reduces = true;
      s.over = axes_of(kernel_, false);
      s.value = value;
      Access to;
      to.tensor = partial;
      to.index = {{0, {{block, 1}}}, {first++, {}}, {0, {{inner, 1}}}};
      s.stores.push_back({std::move(to), value});
      kernel_.steps.push_back(std::move(s));
    }
  }

  const Kernel& kernel() const { return kernel_; }
  std::int64_t length() const { return size_of(kernel_, axes_of(kernel_, true)[0]); }
  std::int64_t tensors() const { return tensors_along_rows(kernel_); }
  /// With so many images.
  std::int64_t rows(std::int64_t images) const {
    std::int64_t all = 1;
    for (int a : axes_of(kernel_, false)) all *= extent(kernel_.axes[a].dim).at(images);
    return all;
  }

 private:
  /// Calls f(access, value) for what it reads and for what it stores as it is.
  template <class F>
  void for_each_number(F f) const {
    for (const ExprId e : kernel_.expressions.ids())
      if (kernel_.expressions[e].kind == Expression::Kind::load) f(kernel_.expressions[e].access, e);
    for (const Step& s : kernel_.steps)
      for (const Step::Store& store : s.stores)
        if (program_.tensors[store.to.tensor].element == DType::real) f(store.to, store.value);
  }

  void find_axes(const Access& access) {
    const std::vector<int> theirs = axes_along(access);
    for_each_number([&](const Access& mine, ExprId) {
      const std::vector<int> axes = axes_along(mine);
      if (mine.tensor != access.tensor || mine.shift != access.shift || axes.empty()) return;
      from_ = theirs;
      to_ = axes;
    });
    if (from_.size() != to_.size()) from_.clear();
  }

  /// The same value in this kernel; none where it has not all of it.
  ExprId value_of(const Kernel& sum, ExprId e) {
    if (!e.valid()) return {};
    Expression x = expression_of(sum, e);
    if (x.kind == Expression::Kind::load) {
      for (Affine& index : x.access.index) {
        for (Affine::Part& part : index.parts) part.axis = mapped({part.axis}, from_, to_)[0];
        std::sort(index.parts.begin(), index.parts.end());
      }
      ExprId found;
      for_each_number([&](const Access& mine, ExprId value) { found = mine == x.access ? value : found; });
      return found;
    }
    if (x.kind != Expression::Kind::op && x.kind != Expression::Kind::constant) return {};
    if (x.kind == Expression::Kind::op)
      for (ExprId* operand : {&x.a, &x.b, &x.c}) {
        if (!operand->valid()) continue;
        *operand = value_of(sum, *operand);
        if (!operand->valid()) return {};
      }
    return push(kernel_, std::move(x));
  }

  /// The axis of blocks, which stands behind all others.
  int inner_of_blocks(TensorId partial) {
    if (steps_of_row(kernel_) == kernel_.steps.size())
      kernel_.axes.push_back({"block", program_.tensors[partial].shape[0], true});
    return static_cast<int>(kernel_.axes.size()) - 1;
  }

  const KernelProgram& program_;
  Kernel kernel_;
  std::vector<int> from_, to_;  ///< axes of the kernel that sums, and of this one
};

/// Adds up the partial sums from `first` on, one of each block.
void add_up(const KernelProgram& program, Kernel& sum, TensorId partial, std::int64_t first) {
  const int point = axes_of(sum, false)[0];
  const auto place = [&](Access& access) {
    for (Affine& index : access.index)
      for (Affine::Part& part : index.parts) part.axis = part.axis == point ? 0 : 1;
  };
  for (Expression& e : sum.expressions) place(e.access);
  for (Step& s : sum.steps) {
    for (Step::Store& store : s.stores) place(store.to);
    if (!s.reduces) continue;
    Expression one;
    one.kind = Expression::Kind::load;
    one.access.tensor = partial;
    one.access.index = {{0, {{1, 1}}}, {first++, {}}, {0, {{0, 1}}}};
    s.value = push(sum, std::move(one));
    s.over = {1};
  }
  sum.axes = {sum.axes[point], {"block", program.tensors[partial].shape[0], true}};
  sum.across_batch = false;
  remove_dead_expressions(sum);
}

/// How many blocks; 0: these sums stay apart. `wanted`: by somebody.
std::int64_t blocks_of(const ColumnReductions& sums, std::int64_t rows, std::int64_t wanted) {
  constexpr std::int64_t of_warp = 4;  // rows, or more: else there would be nearly as many partial sums as rows
  if (wanted) return wanted;
  const auto resident = std::min<std::int64_t>(sums.resident, rows / (sms * sums.warps * of_warp));
  return resident * sums.warps < fewest_warps ? 0 : resident * sms;
}

}  // namespace

std::size_t steps_of_row(const Kernel& k) {
  const auto sums = ranges::count_if(k.steps, [&](const Step& s) { return sums_rows(k, s); });
  return k.steps.size() - static_cast<std::size_t>(sums);
}

ColumnReductions column_reductions_of(const KernelProgram& program, const Kernel& k) {
  const auto count = static_cast<int>(k.steps.size() - steps_of_row(k));
  if (count == 0) return {};
  const Tensor& partial = program.tensors[k.steps.back().stores.front().to.tensor];
  ColumnReductions sums = division_of(count, partial.shape[2].value(), tensors_along_rows(k));
  sums.blocks = partial.shape[0].value();
  return sums;
}

bool is_partial(const KernelProgram& program, TensorId tensor) {
  return ranges::any_of(program.kernels, [&](const Kernel& k) {
    return steps_of_row(k) < k.steps.size() && k.steps.back().stores.front().to.tensor == tensor;
  });
}

void fuse_column_reductions(KernelProgram& program, std::int64_t wanted) {
  std::set<int> gone;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].kernel < 0) continue;
      Kernel& row = program.kernels[order[i].kernel];
      Rows rows(program, row);
      if (!rows.can_sum()) continue;
      struct Found {
        int kernel;
        std::vector<ExprId> values;
      };
      std::vector<Found> found;
      int count = 0;
      for (std::size_t j = i + 1; j < order.size() && order[j].kernel >= 0; ++j) {
        const Kernel& sum = program.kernels[order[j].kernel];
        if (!is_plain_sum(program, sum)) continue;
        bool may = true;
        for (std::size_t between = i + 1; may && between < j; ++between)
          may = independent(program, sum, program.kernels[order[between].kernel]);
        if (!may) continue;
        std::vector<ExprId> values = rows.values_of(sum);
        const int more = count + static_cast<int>(values.size());
        if (values.empty() || division_of(more, rows.length(), rows.tensors()).count == 0) continue;
        count = more;
        found.push_back({order[j].kernel, std::move(values)});
      }
      if (found.empty()) continue;
      const ColumnReductions sums = division_of(count, rows.length(), rows.tensors());
      const std::int64_t blocks = blocks_of(sums, rows.rows(nominal_summed_batch), wanted);
      if (blocks == 0) continue;

      Kernel& first_of_all = program.kernels[found.front().kernel];
      const auto partial = program.tensors.next();
      Tensor t;
      t.node = program.tensors[*stored_by(first_of_all).begin()].node;
      t.name = row.name + ".partial";
      t.shape = {Dim::constant(blocks), Dim::constant(count), Dim::constant(sums.length)};
      t.region = row.region;
      program.tensors.push_back(std::move(t));
      std::int64_t first = 0;
      for (const Found& f : found) {
        rows.add(f.values, partial, first);
        Kernel& sum = program.kernels[f.kernel];
        add_up(program, sum, partial, first);
        first += static_cast<std::int64_t>(f.values.size());
        std::erase_if(order, [&](const Item& item) { return item.kernel == f.kernel; });
        if (&f == &found.front()) continue;
        fuse_sums(first_of_all, sum);
        gone.insert(f.kernel);
      }
      first_of_all.name = row.name + "_sums";
      row = rows.kernel();
      Item behind;
      behind.kernel = found.front().kernel;
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(i) + 1, behind);
    }
  remove_kernels(program, gone);
}

}  // namespace tessera::codegen::cuda
