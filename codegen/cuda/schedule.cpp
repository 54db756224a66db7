#include "codegen/cuda/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/count.hpp>
#include <range/v3/algorithm/count_if.hpp>
#include <set>
#include <utility>

#include "codegen/cuda/attention.hpp"
#include "codegen/cuda/attention_gradient.hpp"
#include "codegen/cuda/column_reduction.hpp"
#include "codegen/cuda/operand_reduction.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/passes/ops.hpp"

namespace tessera::codegen::cuda {

std::vector<int> point_axes(const KernelView& k) {
  std::vector<int> axes = k.outer_axes();
  std::erase_if(axes, [&](int a) { return k.is_batch(a); });
  for (const Step& s : k.kernel.steps) {
    if (s.stores.empty()) continue;
    const std::map<int, std::int64_t> strides = k.strides_of(s.stores.front().to);
    auto stride_of = [&](int a) {
      auto at = strides.find(a);
      return at == strides.end() ? std::int64_t{0} : at->second;
    };
    std::stable_sort(axes.begin(), axes.end(), [&](int x, int y) { return stride_of(x) > stride_of(y); });
    break;
  }
  return axes;
}

std::vector<int> batch_axes(const KernelView& k, bool inner) {
  std::vector<int> axes;
  for (int a = 0; a < static_cast<int>(k.kernel.axes.size()); ++a)
    if (k.axis(a).inner == inner && k.is_batch(a)) axes.push_back(a);
  return axes;
}

bool lies_in_vectors(const KernelView& k, const Access& access, int along, std::int64_t count) {
  const Tensor& t = k.tensor(access);
  if (t.storage == Storage::table || t.type != graph::Type::real ||
      (t.element != DType::real && t.element != DType::bf16))
    return false;
  std::int64_t constant = 0;
  for (auto [a, stride] : k.strides_of(access, &constant))
    if (a == along ? stride != 1 : k.extent_of(a) != 1 && stride % count != 0) return false;
  return k.strides_of(access).contains(along) && constant % count == 0;
}

std::size_t sums_of(const Kernel& kernel) {
  return static_cast<std::size_t>(ranges::count_if(kernel.steps, [](const Step& s) { return s.reduces; }));
}

namespace {

constexpr std::int64_t long_row = 1024;  // from here on a row has a CTA of its own
constexpr int shared_bytes_of_a100 = 160 * 1024;

void limit(Launch& l, std::int64_t blocks_an_image) {
  l.largest_batch = std::min(l.largest_batch, most_blocks / std::max<std::int64_t>(1, blocks_an_image));
}

/// Chooses for one kernel. Those of the program before it are looked up in the plan, where they stand or are put.
class Scheduler : KernelView {
 public:
  Scheduler(Plan& all, int number, const Tiles& wanted)
      : KernelView(all, all.program.kernels[number]), all_(all), number_(number), wanted_(wanted) {}

  std::vector<Launch> run();

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  Launch fresh(Launch::Form form, const char* suffix = "") const;
  void of_partials(Launch& l) const;

  Launch of_points(Launch::Form form, const char* suffix) const;
  /// How many neighbours along an axis a thread may take at once, in a pass of these steps; 1: each by itself. All that
  /// is stored, and most of what is loaded, has to lie in vectors: they are loaded before anything is stored.
  int vector_along(int axis, std::size_t first, std::size_t end) const;
  /// The same for all steps of a thread that makes points.
  int vector_of_points() const;
  Launch of_columns(bool partials) const;
  Launch of_rows(bool partials) const;
  Launch of_row_reductions(const ColumnReductions& sums) const;
  Launch of_attention() const;
  Launch of_attention_backward() const;
  Launch of_gemm(const Operands& f, bool partials);
  /// Unless an operand does not lie so that a TMA descriptor can bring it, or that tile of mma.sync is faster.
  std::vector<Launch> of_wgmma(const Launch& gemm, const GemmSizes& products);

  /// So many are the split-K partials that the GEMM before this kernel makes of it; 0: it makes none.
  int made_by_gemm() const;
  /// Whether few results, none of them an image's, are sums of many summands.
  bool many_summands() const;
  /// Whether a contraction's summands lie side by side along what it sums over, or its results are too few.
  bool sums_along_memory() const;

  /// A and B, so that results lie side by side along the columns, and the batch comes first.
  Operands operands() const;
  bool k_major(ExprId operand, const std::vector<int>& across, const std::vector<int>& depth) const;
  /// Whether an operand that is stored can be copied by 16 bytes along these axes.
  bool vectorisable(ExprId operand, const std::vector<int>& along) const;
  /// Of a thread of mma.sync, for each number of an operand that no 16-byte copies bring; else 0.
  double registers_of_number(const GemmOperand& operand, const std::vector<int>& depth) const;
  /// Instructions of the epilogue of a sum, about.
  double epilogue_cost(bool partials) const;
  /// Whether the epilogue of a sum reads what depends on its row: what depends on its column alone is read once.
  bool epilogue_loads(const std::vector<int>& rows) const;
  std::optional<TensorMap> map_of(ExprId operand, const std::vector<int>& across, const std::vector<int>& groups,
                                  const std::vector<int>& depth) const;
  void tile(Launch& l, const CtaTile& tile, const GemmSizes& products) const;
  /// Of this kernel, or of all of them; empty where nobody asks for one.
  std::string wanted_tile(const std::string& kind) const;

  Plan& all_;
  const int number_;
  const Tiles& wanted_;
  int split_k_ = batch_chunks;
};

void Scheduler::refuse(const std::string& what) const {
  throw Error(fmt::format("kernel {} {}, which the CUDA back end cannot do", kernel.name, what));
}

Launch Scheduler::fresh(Launch::Form form, const char* suffix) const {
  Launch l;
  l.form = form;
  l.name = kernel.name + suffix;
  l.split_k = split_k_;
  l.largest_batch = std::numeric_limits<std::int32_t>::max();
  return l;
}

void Scheduler::of_partials(Launch& l) const {
  l.partials = true;
  l.grid[2] = {{split_k_, 0}};
}

std::vector<Launch>& launches_of(Plan& plan, int kernel, const Tiles& wanted) {
  std::vector<Launch>& launches = plan.launches[kernel];
  if (launches.empty()) launches = Scheduler(plan, kernel, wanted).run();
  return launches;
}

std::vector<Launch> Scheduler::run() {
  switch (kernel.fused.kind) {
    case Fused::Kind::attention:
      return {of_attention()};
    case Fused::Kind::attention_gradient:
      return {of_attention_backward()};
    case Fused::Kind::bias_gradient:
      refuse("makes the gradient of a bias");
    case Fused::Kind::none:
      break;
  }
  std::vector<Launch> launches;
  const bool partials = tasks_of(kernel) == Tasks::chunks;
  if (kernel.anchor == Anchor::row && partials) refuse("sweeps over a batch");
  const int made = partials ? made_by_gemm() : 0;
  if (made) split_k_ = made;
  if (const Operands f = operands(); f.a.valid())
    launches.push_back(of_gemm(f, partials));
  else if (const ColumnReductions row_sums = column_reductions_of(plan.program, kernel); row_sums.count > 0)
    launches.push_back(of_row_reductions(row_sums));
  else if (kernel.anchor == Anchor::row || (!(partials && sums_of(kernel) > 1) && sums_along_memory()))
    launches.push_back(of_rows(partials));
  else if (partials || many_summands())
    launches.push_back(of_columns(partials));
  else if (tasks_of(kernel) == Tasks::serial)
    refuse("sums over the batch in one thread");
  else
    launches.push_back(of_points(Launch::Form::point, ""));
  launches[0].without_wgmma = made > 0;
  if (partials) launches.push_back(of_points(Launch::Form::reduce, "_sum"));
  return launches;
}

int Scheduler::made_by_gemm() const {
  if (sums_of(kernel) != 1) return 0;
  const int before = neighbour_of(plan.program, number_, -1);
  if (before < 0) return 0;
  const Kernel& gemm = plan.program.kernels[before];
  if (!operands_of(gemm, plan.program.precision).a.valid() || tasks_of(gemm) != Tasks::chunks) return 0;
  const std::vector<Launch>& wgmma = launches_of(all_, before, wanted_).front().wgmma;
  return wgmma.empty() ? 0 : wgmma.front().row_partials();
}

bool Scheduler::many_summands() const {
  constexpr std::int64_t many = 16, few_results = 32 * sms;
  if (kernel.anchor != Anchor::contraction || !batch_axes(*this, false).empty() ||
      ranges::any_of(kernel.expressions,
                     [](const Expression& e) { return e.kind == Expression::Kind::extent && !e.dim.known(); }))
    return false;
  for (std::size_t s = 0; s < kernel.steps.size(); ++s)
    if (s < sums_of(kernel) ? !step(s).reduces || step(s).reduction != Reduction::sum || step(s).over != step(0).over ||
                                  !step(s).stores.empty()
                            : !step(s).over.empty())
      return false;
  const Extent summed = points(step(0).over);
  return sums_of(kernel) > 0 && summed.known() && summed.fixed >= many &&
         points(point_axes(*this)).fixed <= few_results;
}

bool Scheduler::sums_along_memory() const {
  if (kernel.anchor != Anchor::contraction) return false;
  std::map<ExprId, int> below;
  reach(step(0).value, below);
  for (auto [e, uses] : below) {
    if (expression(e).kind != Expression::Kind::load) continue;
    for (auto [a, stride] : strides_of(expression(e).access))
      if (stride == 1 && extent_of(a) != 1) return axis(a).inner;
  }
  return true;
}

// ---- points, columns, rows ---------------------------------------------------------------------------------------

int Scheduler::vector_along(int along, std::size_t first, std::size_t end) const {
  constexpr std::int64_t most_registers = 64;  // of what is loaded and stored at once
  if (is_batch(along)) return 1;
  std::set<std::pair<TensorId, int>> stored, vectors;
  bool all_bf16 = true;
  const auto lie_in = [&](int count) {
    stored.clear();
    vectors.clear();
    all_bf16 = true;
    const auto lies = [&](const Access& access) {
      if (!lies_in_vectors(*this, access, along, count)) return false;
      vectors.insert({access.tensor, access.shift});
      all_bf16 = all_bf16 && rounds(access);
      return true;
    };
    for (std::size_t s = first; s < end; ++s) {
      std::map<ExprId, int> below;
      if (step(s).reduces) reach(step(s).value, below);
      for (const Step::Store& store : step(s).stores) reach(store.value, below);
      for (auto [e, uses] : below) {
        if (expression(e).kind != Expression::Kind::load) continue;
        const Access& access = expression(e).access;
        if (stored.contains({access.tensor, access.shift})) return false;  // what an earlier step has made
        const std::map<int, std::int64_t> strides = strides_of(access);
        const auto at = strides.find(along);
        if (!lies(access) && at != strides.end() && at->second != 0 && at->second != 1) return false;
      }
      for (const Step::Store& store : step(s).stores) {
        if (!lies(store.to)) return false;
        stored.insert({store.to.tensor, store.to.shift});
      }
    }
    return extent_of(along) % count == 0 && !vectors.empty() &&
           static_cast<std::int64_t>(vectors.size()) * count <= most_registers;
  };
  if (lie_in(8) && all_bf16) return 8;
  return lie_in(4) ? 4 : 1;
}

int Scheduler::vector_of_points() const {
  for (const Step& s : kernel.steps)
    for (int a : s.over)
      if (extent_of(a) != 1) return 1;
  std::vector<int> axes = point_axes(*this);
  std::erase_if(axes, [&](int a) { return extent_of(a) == 1; });
  return axes.empty() ? 1 : vector_along(axes.back(), 0, kernel.steps.size());
}

Launch Scheduler::of_points(Launch::Form form, const char* suffix) const {
  Launch l = fresh(form, suffix);
  const std::int64_t count = points(point_axes(*this)).fixed;
  if (form == Launch::Form::point) l.vector = vector_of_points();
  l.threads = traits_of(plan.program.kind).updates
                  ? threads_of_points
                  : static_cast<int>(std::min<std::int64_t>(threads_of_points, ceiling(count / l.vector, 32) * 32));
  l.grid[0] = {{count, 0}, std::int64_t{l.threads} * l.vector};
  if (!batch_axes(*this, false).empty()) {
    l.grid[1] = {{0, 1}};
    limit(l, 1);
  }
  return l;
}

Launch Scheduler::of_columns(bool partials) const {
  Launch l = fresh(Launch::Form::columns, partials ? "_partial" : "");
  // Few results that are not split along K would be few CTAs: they have 32 bytes of a row each, and no thread sums
  // many.
  l.lanes = partials ? 32 : 8;
  constexpr std::int64_t of_thread = 4, most_threads = 512, of_warp = 32;
  l.threads =
      partials
          ? threads_of_points
          : static_cast<int>(std::min(
                most_threads, ceiling(ceiling(points(step(0).over).fixed, of_thread) * l.lanes, of_warp) * of_warp));
  l.grid[0] = {{points(point_axes(*this)).fixed, 0}, l.lanes};
  if (partials) of_partials(l);
  return l;
}

Launch Scheduler::of_rows(bool partials) const {
  Launch l = fresh(Launch::Form::row, partials ? "_partial" : "");
  const std::int64_t count = points(point_axes(*this)).fixed;
  std::int64_t longest = 0;
  for (const Step& s : kernel.steps) {
    const Extent length = points(s.over);
    longest = std::max(longest, length.known() ? length.fixed : length.per_batch);
  }
  const bool whole_block = longest > long_row;
  const std::int64_t warps = whole_block ? 1 : std::min<std::int64_t>(4, count);
  l.lanes = whole_block ? threads_of_points : 32;
  l.threads = whole_block ? threads_of_points : 32 * static_cast<int>(warps);
  l.grid[0] = {{count, 0}, warps};
  if (!batch_axes(*this, false).empty()) {
    l.grid[1] = {{0, 1}};
    limit(l, 1);
  }
  if (partials) of_partials(l);
  return l;
}

Launch Scheduler::of_row_reductions(const ColumnReductions& sums) const {
  Launch l = fresh(Launch::Form::row_reductions);
  l.sums = sums;
  l.lanes = 32;
  l.threads = 32 * sums.warps;
  l.ctas = sums.resident;
  l.registers_for = sums.registers_for;
  l.grid[0] = {{sums.blocks, 0}};
  return l;
}

// ---- attention ---------------------------------------------------------------------------------------------------

Launch Scheduler::of_attention() const {
  constexpr int warps = 4, tile = 16;  // a warp's queries
  const Kernel &scores = kernel.fused.part(Fused::Role::scores), &softmax = kernel.fused.part(Fused::Role::softmax);
  const Attention a = *attention_of(plan.program, scores, softmax, kernel);
  Launch l = fresh(Launch::Form::attention);
  const std::int64_t width = size_of(kernel, a.mix.width);
  const Extent groups = points(a.mix.groups);
  l.threads = warps * 32;
  const int needed = static_cast<int>((warps * tile + 2 * a.most_keys) * width * 2);
  l.ctas = std::min(2, shared_bytes_of_a100 / needed);
  l.grid[2] = {groups};
  if (!groups.known()) limit(l, groups.per_batch);
  // The keys and values that a CTA loads; its queries depend on how many CTAs share a head.
  l.tile.columns = static_cast<int>(2 * a.most_keys);
  l.k = {width, 0};
  const bool saves = ranges::any_of(softmax.steps[2].stores,
                                    [&](const Step::Store& s) { return tensor(s.to).storage != Storage::registers; });
  const double of_a_score = saves ? 28 : 24;  // instructions, about
  l.latency = exposed_latency({}, {});
  l.attention = {static_cast<int>(a.rows), tile * static_cast<double>(a.most_keys) * of_a_score / 32};
  return l;
}

Launch Scheduler::of_attention_backward() const {
  constexpr std::int64_t tile = 32;  // queries
  const AttentionGradient a = *attention_gradient_of(plan.program, kernel);
  const KernelView mixed(plan, *parts_of_gradient(kernel)[a.mixed.kernel]);
  Launch l = fresh(Launch::Form::attention_backward);
  l.recomputes = a.again.has_value();
  const Extent groups = mixed.points(a.mixed.axes.groups);
  const std::int64_t tiles = ceiling(a.rows, tile), padded_rows = ceiling(a.rows, tile / 2) * (tile / 2),
                     padded = padded_rows * a.most_keys;  // the last tile may be half a one
  const std::int64_t bytes = 2 * (2 * a.most_keys * a.width + 6 * tile * a.width + a.most_keys * tile) +
                             a.most_keys * 16 + ceiling(a.most_keys, tile) * tile * 8;
  l.threads = static_cast<int>(a.most_keys * 2);
  // Of the widest a thread needs more than the 128 registers that 512 threads at once leave it, where it can have them.
  const int at_once = a.width >= 64 ? 384 : 512;
  l.ctas = static_cast<int>(
      std::max<std::int64_t>(1, std::min<std::int64_t>(at_once / l.threads, shared_bytes_of_a100 / bytes)));
  l.grid[2] = {groups};
  if (!groups.known()) limit(l, groups.per_batch);
  // Four operands as they are, those of queries in each pass over 64 columns, and so the probabilities, which are a
  // line of each query.
  const std::int64_t passes = ceiling(a.width, 64);
  const std::int64_t loaded = passes * (a.rows + (a.again ? 0 : ceiling(a.rows * a.keys, 2 * a.width))) + a.keys;
  l.tile.rows = static_cast<int>(a.rows);
  l.tile.columns = static_cast<int>(loaded - a.rows);
  l.k = {2 * a.width, 0};
  // What is multiplied beyond the ends and once more, barriers, and the instructions of each probability and its
  // change.
  constexpr double multiply_adds = 1340, of_a_barrier = 40;
  const double of_a_change = a.again ? 34 : 25;
  CtaTile whole;
  whole.rows = static_cast<int>(padded_rows);
  whole.columns = static_cast<int>(a.most_keys);
  const std::int64_t once_more = (passes - 1) * padded * (a.again ? 2 : 1);
  l.latency =
      exposed_latency(whole, {0, 0, 0, 0, static_cast<double>(passes) * of_a_change}) +
      static_cast<double>(2 * passes * tiles) * of_a_barrier +
      static_cast<double>(((padded - a.rows * a.keys) * (a.again ? 5 : 4) + once_more) * a.width) / multiply_adds;
  return l;
}

// ---- GEMMs -------------------------------------------------------------------------------------------------------

Operands Scheduler::operands() const {
  Operands f = operands_of(kernel, plan.program.precision);
  if (!f.a.valid()) return f;
  // Neighbouring threads make neighbouring columns: what lies side by side in the result.
  const std::vector<int> order = point_axes(*this);
  if (!order.empty() && ranges::contains(f.rows, order.back())) {
    std::swap(f.a, f.b);
    std::swap(f.rows, f.columns);
  }
  for (std::vector<int>* axes : {&f.rows, &f.columns, &f.groups, &f.depth}) *axes = batch_first(kernel, *axes);
  return f;
}

bool Scheduler::k_major(ExprId operand, const std::vector<int>& across, const std::vector<int>& depth) const {
  auto last = [&](const std::vector<int>& axes) {
    for (std::size_t i = axes.size(); i-- > 0;)
      if (extent_of(axes[i]) != 1) return axes[i];
    return -1;
  };
  std::map<ExprId, int> below;
  reach(operand, below);
  for (auto [e, uses] : below) {
    if (expression(e).kind != Expression::Kind::load) continue;
    const std::map<int, std::int64_t> strides = strides_of(expression(e).access);
    auto along = strides.find(last(depth)), beside = strides.find(last(across));
    if (along == strides.end() || along->second == 0) continue;
    return beside == strides.end() || beside->second == 0 || along->second < beside->second;
  }
  return false;
}

bool Scheduler::vectorisable(ExprId operand, const std::vector<int>& along) const {
  const auto whole = [](std::int64_t numbers) { return numbers % 8 == 0; };
  std::int64_t constant = 0;
  std::map<int, std::int64_t> strides = strides_of(expression(operand).access, &constant);
  std::int64_t side_by_side = 1;
  for (std::size_t i = along.size(); i-- > 0;) {
    const std::int64_t extent = extent_of(along[i]);
    if (extent == 1) continue;
    if (strides[along[i]] != side_by_side) {
      // What lies further out begins anew: behind whole eights.
      if (side_by_side == 1 || !whole(side_by_side)) return false;
      break;
    }
    strides.erase(along[i]);
    if (extent < 0) break;
    side_by_side *= extent;
  }
  for (auto [a, stride] : strides)
    if (extent_of(a) != 1 && !whole(stride)) return false;
  return whole(constant);
}

double Scheduler::registers_of_number(const GemmOperand& operand, const std::vector<int>& depth) const {
  // Of windows that are not K-major each number of a step has a tap of its own, and so an address.
  constexpr double by_itself = 3.5, of_window = 6.1;
  if (operand.vectorisable) return 0;
  if (operand.k_major) return by_itself;
  const std::map<int, std::int64_t> strides = strides_of(expression(operand.value).access);
  const auto stride = [&](int a) { return strides.contains(a) ? strides.at(a) : 0; };
  const bool overlap = ranges::any_of(depth, [&](int d) {
    return ranges::any_of(operand.across, [&](int a) {
      return stride(d) > 0 && stride(a) >= stride(d) && extent_of(d) > 0 && stride(a) < extent_of(d) * stride(d);
    });
  });
  return overlap ? of_window : by_itself;
}

double Scheduler::epilogue_cost(bool partials) const {
  constexpr double moving = 12, memory = 4, simple = 1;  // through shared memory; a load or a store; an operation
  if (partials) return moving + memory;
  std::map<ExprId, int> below;
  double all = moving;
  for (std::size_t s = 1; s < kernel.steps.size(); ++s)
    for (const Step::Store& store : step(s).stores) {
      reach(store.value, below);
      all += memory + (rounds(store.to) ? simple : 0);
    }
  for (auto [e, uses] : below) {
    const Expression& x = expression(e);
    if (x.kind == Expression::Kind::load) all += memory;
    if (x.kind == Expression::Kind::keep) all += 100;
    if (x.kind != Expression::Kind::op) continue;
    all += row_of(x.op).cuda_cost;
  }
  return all;
}

bool Scheduler::epilogue_loads(const std::vector<int>& rows) const {
  std::map<ExprId, int> below;
  for (std::size_t s = 1; s < kernel.steps.size(); ++s)
    for (const Step::Store& store : step(s).stores) reach(store.value, below);
  return ranges::any_of(below, [&](const auto& part) {
    const Expression& x = expression(part.first);
    if (x.kind != Expression::Kind::load) return false;
    const std::map<int, std::int64_t> strides = strides_of(x.access);
    return ranges::any_of(rows, [&](int a) { return extent_of(a) != 1 && strides.contains(a) && strides.at(a) != 0; });
  });
}

Launch Scheduler::of_gemm(const Operands& f, bool partials) {
  const bool tensor_cores = plan.program.precision == Precision::bf16;
  const auto nominal = [&](const Extent& x) { return x.at(partials ? nominal_summed_batch : nominal_batch); };
  const Extent depths = points(f.depth);
  GemmSizes products{nominal(points(f.rows)),   nominal(points(f.columns)), nominal(depths),
                     nominal(points(f.groups)), epilogue_cost(partials),    partials};
  products.loads = !partials && epilogue_loads(f.rows);
  Launch l = fresh(Launch::Form::gemm, partials ? "_partial" : "");
  l.partials = partials;
  l.groups = f.groups;
  l.depth = f.depth;
  const auto operand = [&](ExprId value, const std::vector<int>& across) {
    GemmOperand o{value, across, k_major(value, across, f.depth)};
    // A part of K begins where its first image does.
    const bool begins = !(partials && o.k_major) || depths.per_batch % 8 == 0;
    o.vectorisable = tensor_cores && begins && vectorisable(value, o.k_major ? f.depth : across);
    return o;
  };
  l.a = operand(f.a, f.rows);
  l.b = operand(f.b, f.columns);
  if (tensor_cores) {
    products.a_registers = registers_of_number(l.a, f.depth);
    products.b_registers = registers_of_number(l.b, f.depth);
  }
  if (partials && tensor_cores) {
    const std::optional<TensorMap> a = map_of(f.a, f.rows, f.groups, f.depth);
    const bool by_maps = a && map_of(f.b, f.columns, f.groups, f.depth);
    products.sums_rows =
        by_maps && points(f.groups).fixed == 1 && !a->k_major && reduction_behind(plan, number_, f.a) >= 0;
    split_k_ = choose_split_k(products, by_maps, wanted_tile(""), wanted_tile("wgmma:"));
    l.split_k = split_k_;
  }
  if (partials) {
    products.depth = ceiling(products.depth, split_k_);
    products.count *= split_k_;
  }
  const CtaTile chosen = choose_tile(plan.program.precision, products, wanted_tile(""));
  tile(l, chosen, products);
  if (tensor_cores) l.wgmma = of_wgmma(l, products);
  return l;
}

void Scheduler::tile(Launch& l, const CtaTile& chosen, const GemmSizes& products) const {
  const Extent row_count = points(l.a.across), column_count = points(l.b.across), group_count = points(l.groups),
               depths = points(l.depth);
  l.tile = chosen;
  l.latency = plan.program.precision == Precision::bf16 ? exposed_latency(chosen, products) : 0;
  l.k = l.partials ? Extent{depths.fixed / split_k_, ceiling(depths.per_batch, split_k_)} : depths;
  l.threads = chosen.threads;
  l.ctas = chosen.ctas;
  // A cluster lies along x, whatever the CTAs in it stand for.
  l.grid[0] = {row_count, chosen.rows / chosen.across()};
  l.grid[1] = {column_count, std::int64_t{chosen.columns} * chosen.across()};
  l.grid[2] = {l.partials ? Extent{split_k_ * group_count.fixed, 0} : group_count};
  if (!column_count.known()) limit(l, ceiling(column_count.per_batch, chosen.columns) + 1);
  if (!group_count.known()) limit(l, group_count.per_batch);
}

std::string Scheduler::wanted_tile(const std::string& kind) const {
  for (const std::string& of : {kernel.name, std::string()})
    if (auto at = wanted_.find(kind + of); at != wanted_.end()) return at->second;
  return "";
}

std::optional<TensorMap> Scheduler::map_of(ExprId operand, const std::vector<int>& across,
                                           const std::vector<int>& groups, const std::vector<int>& depth) const {
  const Expression& x = expression(operand);
  if (x.kind != Expression::Kind::load || !rounds(x.access)) return {};
  TensorMap map;
  map.tensor = x.access.tensor;
  map.shift = x.access.shift;
  std::map<int, std::int64_t> strides = strides_of(x.access, &map.first);
  // Axes that run on from one to the next are one extent of the map.
  struct Run {
    Extent extent{1, 0};
    std::int64_t stride = 0;
    std::map<int, std::int64_t> place;  ///< in it, by axis
  };
  auto runs_of = [&](const std::vector<int>& axes) {
    std::vector<Run> runs;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const int a = axes[i];
      const std::int64_t stride = strides[a];
      if (extent_of(a) == 1 || stride == 0) continue;
      if (runs.empty() || !runs.back().extent.known() || stride != runs.back().stride * runs.back().extent.fixed)
        runs.push_back({{1, 0}, stride, {}});
      Run& run = runs.back();
      run.place[a] = run.extent.fixed;
      const Extent more = extent(axis(a).dim);
      run.extent = more.known() ? Extent{run.extent.fixed * more.fixed, 0} : Extent{0, run.extent.fixed};
    }
    return runs;
  };
  const std::vector<Run> lines = runs_of(across), depths = runs_of(depth), others = runs_of(groups);
  for (const std::vector<int>* axes : {&across, &depth})
    for (int a : *axes)
      if (extent_of(a) != 1 && strides[a] == 0) return {};
  if (lines.size() != 1 || depths.size() != 1 || others.size() > 2) return {};
  map.k_major = depths[0].stride == 1;
  if (!map.k_major && lines[0].stride != 1) return {};
  const Run &along = map.k_major ? depths[0] : lines[0], &beside = map.k_major ? lines[0] : depths[0];
  map.extents[0] = along.extent;
  map.extents[1] = beside.extent;
  map.strides[0] = beside.stride;
  for (std::size_t i = 0; i < others.size(); ++i) {
    map.extents[2 + i] = others[i].extent;
    map.strides[1 + i] = others[i].stride;
    (i == 0 ? map.third : map.fourth) = others[i].place;
  }
  const auto whole = [](std::int64_t numbers) { return numbers % 8 == 0; };
  if (!whole(map.first) || !std::all_of(map.strides, map.strides + 3, whole)) return {};
  return map;
}

std::vector<Launch> Scheduler::of_wgmma(const Launch& gemm, const GemmSizes& products) {
  std::optional<TensorMap> a = map_of(gemm.a.value, gemm.a.across, gemm.groups, gemm.depth),
                           b = map_of(gemm.b.value, gemm.b.across, gemm.groups, gemm.depth);
  std::optional<CtaTile> chosen = choose_wgmma_tile(products, gemm.tile, wanted_tile("wgmma:"));
  if (chosen && !(a && b) && wanted_.contains("wgmma:" + kernel.name))
    refuse("has a factor that no tensor map can bring");
  if (!a || !b || !chosen) return {};
  // More loads, for pairs of which each takes two registers, would have no room in those of one CTA, or team, of two.
  constexpr std::ptrdiff_t many = 6;
  if (ranges::count(kernel.expressions, Expression::Kind::load, &Expression::kind) > many) *chosen = alone(*chosen);
  a->box = (a->k_major ? chosen->rows : 64) / chosen->across();
  b->box = (b->k_major ? chosen->columns : 64) / chosen->down();
  Launch l = fresh(Launch::Form::gemm, gemm.partials ? "_partial_wgmma" : "_wgmma");
  l.partials = gemm.partials;
  l.a = gemm.a;
  l.b = gemm.b;
  l.groups = gemm.groups;
  l.depth = gemm.depth;
  tile(l, *chosen, products);
  l.maps = {*a, *b};
  if (products.sums_rows) {
    l.threads += 32;  // by a warp of its own
    l.row_shares = static_cast<int>(
        std::clamp<std::int64_t>(batch_chunks / split_k_, 1, ceiling(products.columns, chosen->columns)));
    l.latency += operand_reduction_cycles(products, *chosen, l.row_shares);
  }
  return {std::move(l)};
}

}  // namespace

void choose_launches(Plan& plan, const Tiles& wanted) {
  plan.launches.assign(plan.program.kernels.size(), {});
  for (std::size_t k = 0; k < plan.program.kernels.size(); ++k) launches_of(plan, static_cast<int>(k), wanted);
}

}  // namespace tessera::codegen::cuda
