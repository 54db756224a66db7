#include "codegen/cuda/predict.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/count_if.hpp>
#include <set>
#include <tuple>

#include "codegen/cuda/device/attention_shares.h"
#include "codegen/cuda/device/predict.h"
#include "codegen/cuda/plan.hpp"
#include "codegen/cuda/update.hpp"
#include "codegen/embedded.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

namespace {

constexpr double most_threads = 2048;  // on an SM

struct Work {
  double operations = 0, bytes = 0;
};

/// A number that is a whole one for any batch, from what it is for some.
prediction::Linear linear(const std::function<double(std::int64_t)>& number) {
  const double grows = number(2) - number(1);
  const prediction::Linear found{number(1) - grows, grows};
  if (found.at(256) != number(256)) throw Error("a number that does not grow evenly with the batch");
  return found;
}

/// CTAs along an axis of a grid.
prediction::Kernel::Along along(const Launch::Along& a) {
  if (a.count.known()) return {{static_cast<double>(ceiling(a.count.fixed, a.size)), 0}, 1, 1};
  return {{static_cast<double>(a.count.fixed), static_cast<double>(a.count.per_batch)}, static_cast<int>(a.size), 1};
}

/// What a run of training takes its time for, and inference.
constexpr ProgramKind predicted[] = {ProgramKind::forward, ProgramKind::loss_and_gradients, ProgramKind::update};

class Prediction {
 public:
  Prediction(const Model& model, const Standing& standing) : model_(model), standing_(standing) {}

  std::vector<prediction::Program> run() {
    std::vector<prediction::Program> programs;
    for (const Plan& plan : model_.plans) {
      const ProgramKind kind = plan.program.kind;
      if (!ranges::contains(predicted, kind)) continue;
      programs.push_back({plan.program.name, {}});
      if (traits_of(kind).updates)
        update(plan, programs.back().kernels);
      else
        region(plan, 0, 1, programs.back().kernels);
      for (prediction::Kernel& k : programs.back().kernels) k.emitted = standing_.at(k.name + suffix_of(plan.program));
    }
    return programs;
  }

 private:
  static double extent_of(const Kernel& k, int axis, std::int64_t batch) {
    return static_cast<double>(extent(k.axes[axis].dim).at(batch));
  }

  void region(const Plan& plan, int r, int times, std::vector<prediction::Kernel>& kernels) const {
    for (const Item& item : plan.program.order[r])
      if (item.region < 0)
        kernel(plan, item.kernel, times, kernels);
      else
        region(plan, item.region, times * plan.program.graph.regions[item.region].count, kernels);
  }

  /// Elements of a tensor that an access reaches.
  static double elements(const Kernel& k, const Access& access, std::int64_t batch) {
    std::set<int> axes;
    for (const Affine& index : access.index)
      for (const Affine::Part& part : index.parts) axes.insert(part.axis);
    double all = 1;
    for (int a : axes) all *= extent_of(k, a, batch);
    return all;
  }

  /// Whether two accesses to a tensor have no element in common: along some dim.
  static bool apart(const Kernel& k, const Access& a, const Access& b, std::int64_t batch) {
    const auto behind = [&](const Affine& index) {
      auto end = static_cast<double>(index.offset + 1);
      for (const Affine::Part& part : index.parts)
        end += static_cast<double>(part.coefficient) * (extent_of(k, part.axis, batch) - 1);
      return end;
    };
    for (std::size_t d = 0; d < a.index.size(); ++d)
      if (behind(a.index[d]) <= static_cast<double>(b.index[d].offset) ||
          behind(b.index[d]) <= static_cast<double>(a.index[d].offset))
        return true;
    return false;
  }

  static double points_of(const Kernel& k, std::int64_t batch) {
    double points = 1;
    for (std::size_t a = 0; a < k.axes.size(); ++a)
      if (!k.axes[a].inner) points *= extent_of(k, static_cast<int>(a), batch);
    return points;
  }

  static bool reads_bf16(const KernelProgram& program, const Kernel& k) {
    return ranges::any_of(k.expressions, [&](const Expression& e) {
      return e.kind == Expression::Kind::load && program.tensors[e.access.tensor].element == DType::bf16;
    });
  }

  /// Each operation once for each point, each element moved once. `stores`: what the kernel stores, not partial sums.
  static Work work_of(const Plan& plan, const Kernel& k, bool stores, std::int64_t batch) {
    Places moved;
    return work_of(plan, k, stores, batch, moved);
  }
  /// Tensor, shift and where in it: what several kernels read that are fused into one is moved once.
  using Places = std::set<std::tuple<TensorId, int, std::vector<std::int64_t>>>;
  static Work work_of(const Plan& plan, const Kernel& k, bool stores, std::int64_t batch, Places& moved) {
    Work w;
    std::set<TensorId> made;  // by what is fused into the kernel, which has it still
    for (const Kernel& before : k.fused.parts) {
      const Work more = work_of(plan, before, stores, batch, moved);
      w.operations += more.operations;
      w.bytes += more.bytes;
      for (const Step& s : before.steps)
        for (const Step::Store& store : s.stores) made.insert(store.to.tensor);
    }
    const double points = points_of(k, batch);
    std::set<ExprId> in_row;  // what has been computed when rows are summed
    std::vector<Access> counted;
    auto move = [&](const Access& access) {
      if (made.contains(access.tensor) || ranges::any_of(counted, [&](const Access& before) {
            return before.tensor == access.tensor && before.shift == access.shift && !apart(k, before, access, batch);
          }))
        return;
      counted.push_back(access);
      std::vector<std::int64_t> offsets;
      for (const Affine& index : access.index) offsets.push_back(index.offset);
      if (plan.program.tensors[access.tensor].storage == Storage::registers) return;
      if (!moved.insert({access.tensor, access.shift, offsets}).second) return;
      const DType stored = plan.program.tensors[access.tensor].element;
      w.bytes += 4.0 / static_cast<double>(values_in_real(stored)) * elements(k, access, batch);
    };
    for (const Step& s : k.steps) {
      double each = points;
      for (int a : s.over)
        if (k.axes[a].inner) each *= extent_of(k, a, batch);
      std::set<ExprId> below;
      if (sums_rows(k, s)) {
        each *= extent_of(k, s.stores[0].to.index[2].parts[0].axis, batch);
        below = in_row;
      }
      auto reach = [&](auto&& self, ExprId e) -> void {
        if (!e.valid() || !below.insert(e).second) return;
        const Expression& x = k.expressions[e];
        if (x.kind == Expression::Kind::load) move(x.access);
        for (ExprId operand : {x.a, x.b, x.c})
          if (x.kind == Expression::Kind::op) self(self, operand);
        w.operations += x.kind == Expression::Kind::op ? each : 0;
      };
      if (s.reduces) {
        reach(reach, s.value);
        w.operations += each;
      }
      if (!stores) continue;
      for (const Step::Store& store : s.stores) {
        reach(reach, store.value);
        move(store.to);
      }
      in_row.merge(below);
    }
    return w;
  }

  void kernel(const Plan& plan, int number, int times, std::vector<prediction::Kernel>& kernels) const {
    const Kernel& k = plan.program.kernels[number];
    const std::vector<Launch>& launches = plan.launches[number];
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const bool chunks = launches.size() > 1;
      const double parts = launches[0].split_k;
      const auto work = [&](std::int64_t batch) {
        const double points = points_of(k, batch) *
                              static_cast<double>(ranges::count_if(k.steps, [](const Step& s) { return s.reduces; })),
                     partial = 4 * points * parts;
        if (i == 1) return Work{points * parts, partial + 4 * points};
        Work w = work_of(plan, k, !chunks, batch);
        if (chunks) w.bytes += partial;
        return w;
      };
      const std::vector<Launch>& on_sm_90a = launches[i].wgmma;
      const bool on_sm_80 = !on_sm_90a.empty() || launches[i].without_wgmma;
      kernels.push_back(row(launches[i], on_sm_80 ? "sm_80" : "", times, work));
      if (const Launch::Form form = launches[i].form;
          (form == Launch::Form::point || form == Launch::Form::row || form == Launch::Form::reduce) &&
          ranges::any_of(k.expressions, [](const Expression& e) { return e.kind == Expression::Kind::load; }))
        kernels.back().waits = {1, 0};
      if (const ColumnReductions& sums = launches[i].sums; sums.count) {
        const double moved = 2.0 * 4 * static_cast<double>(sums.numbers());  // read and written, for each row
        kernels.back().shared_bytes = linear([&](std::int64_t batch) { return moved * points_of(k, batch); });
        kernels.back().shape = fmt::format("with {} sums over its rows", sums.count);
        // A warp asks for all of a row's numbers at once.
        const auto warps = static_cast<double>(sums.blocks * sums.warps);
        kernels.back().waits = linear([&](std::int64_t batch) { return points_of(k, batch) / warps; });
      }
      if (k.anchor == Anchor::row && reads_bf16(plan.program, k))
        kernels.back().shape += kernels.back().shape.empty() ? "reads bf16" : ", reads bf16";
      for (const Launch& l : on_sm_90a) kernels.push_back(row(l, "sm_90a", times, work));
    }
  }

  /// One kernel, for one run of parameters after the other; each is taken to be as long as the others.
  void update(const Plan& plan, std::vector<prediction::Kernel>& kernels) const {
    const auto runs = static_cast<double>(decay_runs(model_).size());
    for (std::size_t k = 0; k < plan.program.kernels.size(); ++k) {
      const Launch& l = plan.launches[k].front();
      const Work work = work_of(plan, plan.program.kernels[k], true, 1);
      prediction::Kernel row;
      row.name = l.name;
      row.times = static_cast<int>(runs);
      row.grid[0] = {{static_cast<double>(model_.arena.reals) / runs, 0}, l.threads, 1};
      row.grid[1] = row.grid[2] = {{1, 0}, 1, 1};
      row.resident = most_threads / l.threads;
      row.operations = {work.operations / runs, 0};
      row.bytes = {work.bytes / runs, 0};
      kernels.push_back(row);
    }
  }

  static prediction::Kernel row(const Launch& l, const std::string& only_on, int times,
                                const std::function<Work(std::int64_t)>& work) {
    prediction::Kernel row;
    row.name = l.name;
    row.only_on = only_on;
    row.times = times;
    const bool attention = l.form == Launch::Form::attention;
    if (attention) row.attention = {l.attention.rows, l.threads / 32, l.attention.of_tile};
    for (int a = attention ? 1 : 0; a < 3; ++a) row.grid[a] = along(l.grid[a]);
    row.grid[0].together = l.tile.cluster;
    row.resident = l.ctas ? l.ctas * l.tile.teams() : std::floor(most_threads / l.threads);
    row.operations = linear([&](std::int64_t batch) { return work(batch).operations; });
    row.bytes = linear([&](std::int64_t batch) { return work(batch).bytes; });
    row.by_warpgroups = l.tile.unit == CtaTile::Unit::wgmma;
    row.on_tensor_cores = row.by_warpgroups || l.tile.unit == CtaTile::Unit::mma_sync || attention ||
                          l.form == Launch::Form::attention_backward;
    row.tile = l.tile.rows / l.tile.across() + l.tile.columns / l.tile.down();
    row.depth = {static_cast<double>(l.k.fixed), static_cast<double>(l.k.per_batch)};
    row.factor_bytes = row.on_tensor_cores ? 2 : 4;
    row.alone = l.latency;
    if (l.form == Launch::Form::gemm)
      row.shape = fmt::format("tiles of {} x {}{}{}", l.tile.rows, l.tile.columns,
                              l.tile.cluster > 1 ? fmt::format(", {} a cluster", l.tile.cluster) : "",
                              l.row_shares ? ", and its rows' sums" : "");
    return row;
  }

  const Model& model_;
  const Standing& standing_;
};

std::string text_of(const prediction::Linear& number) {
  return fmt::format("{{{}, {}}}", number.fixed, number.per_batch);
}

}  // namespace

std::string predict(const Model& model, const Standing& standing, const std::string& gpu, std::int64_t batch) {
  try {
    return prediction::table(model.name, Prediction(model, standing).run(), gpu, batch);
  } catch (const std::invalid_argument& wrong) {
    throw Error(wrong.what());
  }
}

std::string emit_prediction(const Model& model, const Standing& standing) {
  std::string rows;
  for (const prediction::Program& program : Prediction(model, standing).run()) {
    rows += fmt::format("    {{\"{}\",\n     {{\n", program.name);
    for (const prediction::Kernel& k : program.kernels) {
      std::string grid;
      for (const prediction::Kernel::Along& along : k.grid)
        grid +=
            fmt::format("{}{{{}, {}, {}}}", grid.empty() ? "" : ", ", text_of(along.count), along.size, along.together);
      rows += fmt::format(
          "         {{\"{}\", \"{}\", \"{}\", {}, {{{}}}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, \"{}\", {{{}, "
          "{}, {}}}}},\n",
          k.name, k.emitted, k.only_on, k.times, grid, k.resident, text_of(k.operations), text_of(k.bytes),
          k.on_tensor_cores, k.by_warpgroups, k.tile, text_of(k.depth), k.factor_bytes, k.alone, text_of(k.waits),
          text_of(k.shared_bytes), k.shape, k.attention.rows, k.attention.warps, k.attention.of_tile);
    }
    rows += "     }},\n";
  }
  return fmt::format(
      R"cpp(// Generated by Tessera from the declaration of {0}. What its CUDA kernels should take.
#include <cstdint>

{3}
{1}
std::string {0}_predict(const std::string& gpu, std::int64_t batch);
std::string {0}_predict(const std::string& gpu, std::int64_t batch) {{
  using tessera::prediction::Program;
  // Name, the one under which it stands, architecture, starts, grid, blocks of an SM, operations, bytes, on
  // tensor cores, by warpgroups, tile, depth, bytes of a factor's number, cycles that a block does not multiply, waits
  // for memory, bytes through shared memory for sums of rows, tiles, of attention a head's rows, a block's warps and a
  // tile's cycles; what grows with the batch as {{fixed, of an image}}.
  static const std::vector<Program> programs{{
{2}  }};
  return tessera::prediction::table("{0}", programs, gpu, batch);
}}
)cpp",
      model.name, embedded("cuda/device/predict.h"), rows, embedded("cuda/device/attention_shares.h"));
}

}  // namespace tessera::codegen::cuda
