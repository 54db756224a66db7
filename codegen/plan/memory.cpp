// Scratch memory: lifetimes, offsets, and the proof that nothing live is overwritten.
#include "codegen/plan/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/passes/inspect.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

constexpr std::int64_t round_to = 16;  // reals: a cache line, so that no two buffers share one

/// Room for so many values of a tensor.
std::int64_t reals_of(const Tensor& t, std::int64_t values) {
  const std::int64_t together = values_in_real(t.element);
  return (values + together - 1) / together;
}
std::int64_t rounded(std::int64_t n) { return (n + round_to - 1) / round_to * round_to; }

struct Times {
  std::vector<int> of;                     // kernel -> time
  std::vector<std::pair<int, int>> stage;  // kernel -> first and last time of its stage
  std::vector<std::pair<int, int>> span;   // region -> first and last time
};

void number(const Plan& plan, int region, Times& t, int& now) {
  const int first = now;
  for (const Stage& stage : plan.stages[region]) {
    const int begin = now;
    for (const Item& item : stage.items) {
      if (item.kernel >= 0)
        t.of[item.kernel] = now++;
      else
        number(plan, item.region, t, now);
    }
    for (const Item& item : stage.items)
      if (item.kernel >= 0) t.stage[item.kernel] = {begin, now - 1};
  }
  t.span[region] = {first, std::max(first, now - 1)};
}

Times times_of(const Plan& plan) {
  const std::size_t kernels = plan.program.kernels.size();
  Times t{std::vector<int>(kernels, 0), std::vector<std::pair<int, int>>(kernels),
          std::vector<std::pair<int, int>>(plan.stages.size())};
  int now = 0;
  number(plan, 0, t, now);
  return t;
}

/// Lays the buffers of one arena out in the order given; returns the size needed.
std::int64_t pack(std::vector<Buffer>& buffers, const std::vector<int>& order) {
  std::vector<int> placed;
  std::int64_t total = 0;
  for (int i : order) {
    Buffer& b = buffers[i];
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (int j : placed) {
      const Buffer& o = buffers[j];
      if (o.first <= b.last && b.first <= o.last) taken.push_back({o.offset, o.offset + o.size});
    }
    std::sort(taken.begin(), taken.end());
    b.offset = 0;
    for (auto [from, to] : taken) {
      if (b.offset + b.size <= from) break;
      b.offset = std::max(b.offset, to);
    }
    total = std::max(total, b.offset + b.size);
    placed.push_back(i);
  }
  return total;
}

std::int64_t most_live(const std::vector<Buffer>& buffers, const std::vector<int>& which) {
  std::int64_t most = 0;
  for (int at : which) {  // the most is reached where some buffer begins
    const int t = buffers[at].first;
    std::int64_t live = 0;
    for (int i : which) {
      const Buffer& b = buffers[i];
      if (b.first <= t && t <= b.last) live += b.size;
    }
    most = std::max(most, live);
  }
  return most;
}

/// Finds the buffers that only one stage touches. A thread's images leave them behind in the arena of its first image:
/// what that image has to keep from the stage must not lie there, and so lives from the stage's beginning on.
void share_temporaries(Plan& plan, const Times& times) {
  const KernelProgram& p = plan.program;
  std::vector<std::set<std::pair<int, int>>> stages(plan.buffers.size());
  for (std::size_t k = 0; k < p.kernels.size(); ++k)
    for_each_access(p.kernels[k], [&](const Access& a, bool) {
      const int buffer = plan.buffer_of[a.tensor];
      if (buffer >= 0) stages[buffer].insert(times.stage[k]);
    });
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    Buffer& b = plan.buffers[i];
    if (!b.per_image) continue;
    const bool once = p.tensors[b.tensor].slots == 1;
    const auto [begin, end] = *stages[i].begin();
    b.temporary = once && stages[i].size() == 1 && begin <= b.first && b.last <= end;
    if (!b.temporary) b.first = std::min(b.first, begin);
  }
}

}  // namespace

std::vector<std::vector<Stage>> make_stages(const KernelProgram& p) {
  // All partial sums of a stage come before the first sum that is made of them: no kernel of it may read such a sum.
  auto reads_from = [&](const Kernel& k, const Stage& stage) {
    bool found = false;
    for (const Item& item : stage.items)
      for_each_access(p.kernels[item.kernel], [&](const Access& made, bool writes) {
        if (!writes) return;
        for_each_access(k, [&](const Access& a, bool also) { found |= !also && a.tensor == made.tensor; });
      });
    return found;
  };
  std::vector<std::vector<Stage>> stages(p.order.size());
  for (std::size_t r = 0; r < p.order.size(); ++r)
    for (const Item& item : p.order[r]) {
      const bool kernel = item.kernel >= 0;
      const Tasks tasks = kernel ? tasks_of(p.kernels[item.kernel]) : Tasks::once;
      bool joins = kernel && (tasks == Tasks::images || tasks == Tasks::chunks) && !stages[r].empty() &&
                   stages[r].back().tasks == tasks;
      if (joins && tasks == Tasks::chunks) joins = !reads_from(p.kernels[item.kernel], stages[r].back());
      if (!joins) stages[r].push_back({tasks, {}});
      stages[r].back().items.push_back(item);
    }
  return stages;
}

void place_buffers(Plan& plan) {
  const KernelProgram& p = plan.program;
  Times times = times_of(plan);
  plan.buffer_of.assign(p.tensors.size(), -1);
  plan.partial_of.assign(p.kernels.size(), -1);
  auto live = [&](TensorId tensor, int from, int to) {
    const Tensor& t = p.tensors[tensor];
    if (t.storage != Storage::scratch) return;
    int& at = plan.buffer_of[tensor];
    if (at < 0) {
      at = static_cast<int>(plan.buffers.size());
      const Extent reals = plan.layouts[tensor].size;
      Buffer b;
      b.tensor = tensor;
      b.per_image = !reals.known();
      b.slot = rounded(reals_of(t, b.per_image ? reals.per_batch : reals.fixed));
      b.size = b.slot * t.slots;
      b.first = from;
      b.last = to;
      plan.buffers.push_back(b);
    }
    Buffer& b = plan.buffers[at];
    b.first = std::min(b.first, from);
    b.last = std::max(b.last, to);
  };
  for (std::size_t k = 0; k < p.kernels.size(); ++k) {
    const Kernel& kernel = p.kernels[k];
    int now = times.of[k];
    auto [first, last] = times.span[kernel.region];
    for_each_access(kernel, [&](const Access& a, bool) {
      const Tensor& t = p.tensors[a.tensor];
      // A layer's own temporary lives between its kernels; whatever crosses layers or regions lives through the region.
      bool passing = kernel.region != 0 && (t.region != kernel.region || t.slots > 1);
      if (passing)
        live(a.tensor, first, last);
      else
        live(a.tensor, now, now);
      if (t.region != 0 && t.slots > 1) {
        auto span = times.span[t.region];
        live(a.tensor, span.first, span.second);
      }
    });
    if (kernel.accumulates) live(kernel.steps[1].stores.front().to.tensor, 0, times.span[0].second);
    if (tasks_of(kernel) == Tasks::chunks) {
      std::int64_t reals = 0;
      for (const Step& s : kernel.steps) reals += s.reduces ? 1 : 0;
      for (const Axis& a : kernel.axes)
        if (!a.inner) reals *= a.dim.value();
      Buffer b;
      b.kernel = static_cast<int>(k);
      b.size = b.slot = rounded(reals * batch_chunks);
      // All partial sums of a stage are there before the first of them is added up.
      std::tie(b.first, b.last) = times.stage[k];
      plan.partial_of[k] = static_cast<int>(plan.buffers.size());
      plan.buffers.push_back(b);
    }
  }

  share_temporaries(plan, times);

  for (const bool per_image : {false, true}) {
    std::vector<int> order;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].per_image == per_image) order.push_back(static_cast<int>(i));
    auto by = [&](auto key) {
      std::vector<std::pair<std::int64_t, int>> keyed;
      for (int i : order) keyed.push_back({-key(plan.buffers[i]), i});
      std::sort(keyed.begin(), keyed.end());
      std::vector<int> sorted;
      for (auto [ignored, i] : keyed) sorted.push_back(i);
      return sorted;
    };
    const std::vector<std::vector<int>> tries{
        by([](const Buffer& b) { return b.size; }), by([](const Buffer& b) { return (b.last - b.first + 1) * b.size; }),
        by([](const Buffer& b) { return static_cast<std::int64_t>(b.last - b.first); }),
        by([](const Buffer& b) { return static_cast<std::int64_t>(-b.first); })};
    std::size_t best = 0;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < tries.size(); ++i) {
      sizes.push_back(pack(plan.buffers, tries[i]));
      if (sizes[i] < sizes[best]) best = i;
    }
    (per_image ? plan.scratch.per_batch : plan.scratch.fixed) = pack(plan.buffers, tries[best]);
    (per_image ? plan.lower_bound.per_batch : plan.lower_bound.fixed) = most_live(plan.buffers, order);
  }
  // An image's values lie in its arena, behind what does not grow with the batch.
  for (const Buffer& b : plan.buffers) {
    if (!b.per_image) continue;
    const Tensor& t = p.tensors[b.tensor];
    Layout& layout = plan.layouts[b.tensor];
    for (std::size_t d = 0; d < t.shape.size(); ++d)
      if (!t.shape[d].known()) layout.stride[d] = plan.scratch.per_batch * values_in_real(t.element);
  }
  for (Buffer& b : plan.buffers)
    if (b.per_image) b.offset += plan.scratch.fixed;
}

namespace {

/// Tensors of one array: runs of those of one region, each run layer after layer. Offset and slot are in reals.
void place_in_one_array(Plan& plan, const std::vector<TensorId>& tensors) {
  const graph::Graph& g = plan.program.graph;
  const auto region = [&](TensorId t) { return g[plan.program.tensors[t].node].region; };
  std::vector<TensorId> run;
  std::int64_t begin = 0, layer = 0;
  const auto end_run = [&] {
    if (run.empty()) return;
    for (const TensorId t : run) plan.layouts[t].slot = layer;
    begin += layer * plan.program.tensors[run.front()].slots;
    layer = 0;
    run.clear();
  };
  for (const TensorId t : tensors) {
    if (!run.empty() && region(run.back()) != region(t)) end_run();
    plan.layouts[t].offset = begin + layer;
    layer += reals_of(plan.program.tensors[t], plan.layouts[t].size.per_batch);
    run.push_back(t);
  }
  end_run();
  for (const TensorId id : tensors) {
    const Tensor& t = plan.program.tensors[id];
    for (std::size_t d = 0; d < t.shape.size(); ++d)
      if (!t.shape[d].known()) plan.layouts[id].stride[d] = begin * values_in_real(t.element);
  }
}

}  // namespace

void place_inspected(Plan& plan) {
  for (const bool attention : {true, false}) {
    std::vector<TensorId> outputs;
    for (const graph::Output& o : plan.program.graph.outputs) {
      if (is_attention(o.name) != attention) continue;
      for (const TensorId t : plan.program.tensors.ids())
        if (plan.program.tensors[t].node == o.node) outputs.push_back(t);
    }
    place_in_one_array(plan, outputs);
  }
}

std::vector<TensorId> cached(const KernelProgram& program) {
  std::vector<TensorId> tensors;
  for (const TensorId t : program.tensors.ids())
    if (program.tensors[t].storage == Storage::cache) tensors.push_back(t);
  std::sort(tensors.begin(), tensors.end(),
            [&](TensorId a, TensorId b) { return program.tensors[a].node < program.tensors[b].node; });
  return tensors;
}

void place_cache(Plan& plan) { place_in_one_array(plan, cached(plan.program)); }

namespace {

/// Replays the program over a shadow of the scratch memory: of what does not grow with the batch, and of one image's
/// arena.
class Replay {
 public:
  explicit Replay(const Plan& plan) : plan_(plan), p_(plan.program) {}

  void run() {
    for (const Buffer& b : plan_.buffers) {
      const std::int64_t begin = b.per_image ? plan_.scratch.fixed : 0;
      const std::int64_t end = begin + (b.per_image ? plan_.scratch.per_batch : plan_.scratch.fixed);
      if (b.offset < begin || b.offset + b.size > end)
        throw Error(fmt::format("plan of {}: {} lies outside the scratch memory", p_.name,
                                name(b.tensor.valid() ? b.tensor.number() : partial_of(b.kernel))));
    }
    region(0, 0, 0);
    if (!p_.groups) return;
    next_group_ = true;  // finds the sums of the first one
    region(0, 0, 0);
  }

 private:
  struct Range {
    std::int64_t from, to;
    bool meets(const Range& o) const { return from < o.to && o.from < to; }
  };
  using Slot = std::pair<int, int>;  // a tensor, and which of its copies

  void region(int r, int iteration, int layer) {
    for (const Stage& stage : plan_.stages[r]) {
      if (stage.items.front().region >= 0) {
        const int inside = stage.items.front().region;
        const graph::Region& inner = p_.graph.regions[inside];
        for (int i = 0; i < inner.count; ++i) region(inside, i, inner.reversed ? inner.count - 1 - i : i);
        continue;
      }
      // Sums over the batch: all partial sums of the stage, then what is made of them.
      if (stage.tasks == Tasks::chunks)
        for (const Item& item : stage.items)
          write(item.kernel, {{partial_of(item.kernel), 0}}, reads(item.kernel, false, r, iteration, layer));
      for (const Item& item : stage.items) {
        std::set<Slot> written;
        for_each_access(kernel(item.kernel), [&](const Access& a, bool writes) {
          if (writes && p_.tensors[a.tensor].storage == Storage::scratch)
            written.insert({a.tensor.number(), slot(a, r, iteration, layer)});
        });
        write(item.kernel, written, reads(item.kernel, stage.tasks == Tasks::chunks, r, iteration, layer));
      }
      leave_temporaries(stage);
    }
  }

  /// Further images write the stage's temporaries again, here: whatever lay there is gone.
  void leave_temporaries(const Stage& stage) {
    for (const Item& item : stage.items)
      for_each_access(kernel(item.kernel), [&](const Access& a, bool) {
        const int at = plan_.buffer_of[a.tensor];
        if (at < 0 || !plan_.buffers[at].temporary) return;
        for (auto& [other, value] : values_)
          if (range(other.first, other.second).meets(range(a.tensor.number(), 0))) value.gone.merge(value.there);
      });
  }

  /// Which slot an access from region r means.
  int slot(const Access& a, int r, int iteration, int layer) const {
    const Tensor& t = p_.tensors[a.tensor];
    if (t.slots == 1) return 0;
    const int at = !counts_slots_of(p_, r, t) ? 0 : t.carry && t.region == r ? iteration : layer;
    if (!t.carry) return at;
    return t.slots == 2 ? (at + a.shift) % 2 : at + a.shift;
  }

  const Kernel& kernel(int k) const { return p_.kernels[k]; }
  /// What lies in memory is a tensor, by its number, or the partial sums of a kernel, by a negative one.
  static int partial_of(int k) { return -1 - k; }
  Range partial(int k) const {
    const Buffer& b = plan_.buffers[plan_.partial_of[k]];
    return {b.offset, b.offset + b.size};
  }
  Range range(int what, int slot) const {
    if (what < 0) return partial(-1 - what);
    const TensorId tensor(what);
    const Tensor& t = p_.tensors[tensor];
    const Buffer& b = plan_.buffers[plan_.buffer_of[tensor]];
    if (slot >= t.slots) throw Error(fmt::format("plan of {}: {} has no slot {}", p_.name, t.name, slot));
    const std::int64_t from = b.offset + b.slot * slot;
    return {from, from + b.slot};
  }

  std::string name(int what) const {
    return what < 0 ? "the partial sums of " + kernel(-1 - what).name : p_.tensors[TensorId(what)].name;
  }

  /// What a kernel reads of the scratch memory: all of it must be there. `summed`: also its partial sums.
  std::vector<Range> reads(int k, bool summed, int r, int iteration, int layer) const {
    std::vector<Range> ranges;
    auto read = [&](int what, int slot) {
      const auto at = values_.find({what, slot});
      if (at == values_.end() || !at->second.whole())
        throw Error(fmt::format("plan of {}: kernel {} reads {} (slot {}), which is not there any more or not yet",
                                p_.name, kernel(k).name, name(what), slot));
      ranges.push_back(range(what, slot));
    };
    std::set<std::pair<TensorId, int>> own;  // what the kernel itself writes, it may read again
    for_each_access(kernel(k), [&](const Access& a, bool writes) {
      if (writes) own.insert({a.tensor, a.shift});
    });
    for_each_access(kernel(k), [&](const Access& a, bool writes) {
      const Tensor& t = p_.tensors[a.tensor];
      if (t.storage != Storage::scratch || writes || own.contains({a.tensor, a.shift})) return;
      read(a.tensor.number(), slot(a, r, iteration, layer));
    });
    if (summed) read(partial_of(k), 0);
    if (const Kernel& sums = kernel(k); next_group_ && sums.accumulates) {
      const Access& to = sums.steps[1].stores.front().to;
      if (p_.tensors[to.tensor].storage == Storage::scratch) {
        read(to.tensor.number(), slot(to, r, iteration, layer));
        ranges.pop_back();  // it is added to where it lies
      }
    }
    return ranges;
  }

  /// Kernel k writes these values, or its parts of them: whatever else lay there is gone.
  void write(int k, const std::set<Slot>& written, const std::vector<Range>& read) {
    for (const Slot& mine : written) {
      const Range w = range(mine.first, mine.second);
      for (const Range& r : read)
        if (r.meets(w))
          throw Error(fmt::format("plan of {}: {} is written over what it is made of", p_.name, name(mine.first)));
      for (auto& [other, value] : values_)
        if (other != mine && range(other.first, other.second).meets(w)) value.gone.merge(value.there);
      Value& value = values_[mine];
      // A kernel's second time, or another region's turn, begins a new value.
      if (value.region != kernel(k).region || value.there.contains(k) || value.gone.contains(k)) value = {};
      value.region = kernel(k).region;
      value.there.insert(k);
    }
  }

  /// A value in memory, by the kernels that write parts of it.
  struct Value {
    int region = -1;
    std::set<int> there, gone;
    bool whole() const { return !there.empty() && gone.empty(); }
  };
  const Plan& plan_;
  const KernelProgram& p_;
  std::map<Slot, Value> values_;
  bool next_group_ = false;
};

}  // namespace

void verify(const Plan& plan) { Replay(plan).run(); }

}  // namespace tessera::codegen
