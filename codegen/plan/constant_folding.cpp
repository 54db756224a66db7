#include "codegen/plan/constant_folding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <set>
#include <string_view>

#include "codegen/kernels/print.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/plan/layout.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

namespace {

/// The kernels of a program in running order; a region's count once.
void running_order(const KernelProgram& p, int region, std::vector<int>& kernels) {
  for (const Item& item : p.order[region])
    if (item.kernel >= 0)
      kernels.push_back(item.kernel);
    else
      running_order(p, item.region, kernels);
}

/// Takes kernels, and loops over layers that have none left, out of a program.
void take_out(KernelProgram& p, const std::set<int>& gone) {
  for (std::size_t region = p.order.size(); region-- > 0;)  // those within a region have larger numbers
    std::erase_if(p.order[region], [&](const Item& item) {
      return item.kernel >= 0 ? gone.contains(item.kernel) : p.order[item.region].empty();
    });
  remove_kernels(p, gone);
}

class Folder {
 public:
  explicit Folder(KernelProgram& program) : p_(program), writers_(p_.tensors.size()), readers_(p_.tensors.size()) {
    for (int k = 0; k < static_cast<int>(p_.kernels.size()); ++k) {
      for (const TensorId t : stored_by(p_.kernels[k])) writers_[t].push_back(k);
      for (const TensorId t : loaded_by(p_.kernels[k])) readers_[t].push_back(k);
    }
  }

  void run() {
    for (int k = 0; k < static_cast<int>(p_.kernels.size()); ++k)
      if (is_constant(p_.kernels[k])) folded_.insert(k);
    while (true) {
      drop_what_reads_others();
      if (folded_.empty()) return;
      const std::map<TensorId, std::int64_t> kept = reals_kept();
      std::int64_t all = 0;
      for (const auto& [t, reals] : kept) all += reals;
      if (all <= parameters()) break;
      const auto largest =
          std::max_element(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      for (const int k : writers_[largest->first]) folded_.erase(k);
    }
    split();
  }

 private:
  /// Whether a kernel depends on parameters, tables and what others store of these alone, and stores what can be kept.
  bool is_constant(const Kernel& k) const {
    bool constant =
        tasks_of(k) == Tasks::once && !k.accumulates && ranges::all_of(k.expressions, [](const Expression& e) {
          using Kind = Expression::Kind;
          return e.kind == Kind::load || e.kind == Kind::constant || e.kind == Kind::local || e.kind == Kind::index ||
                 e.kind == Kind::op;
        });
    for_each_access(k, [&](const Access& a, bool writes) {
      const Tensor& t = p_.tensors[a.tensor];
      const bool given = t.storage == Storage::parameter || t.storage == Storage::packed || t.storage == Storage::table;
      const bool seen_by_others = t.region && ranges::any_of(readers_[a.tensor], [&](int reader) {
                                    return p_.kernels[reader].region != t.region;
                                  });
      constant &= a.shift == 0 && ((given && !writes) || (t.storage == Storage::scratch && !t.carry && t.slots == 1 &&
                                                          (!writes || t.region == k.region) && !seen_by_others &&
                                                          ranges::all_of(t.shape, &Dim::known)));
    });
    return constant;
  }

  bool is_folded(TensorId t) const {
    return !writers_[t].empty() && ranges::all_of(writers_[t], [&](int k) { return folded_.contains(k); });
  }

  void drop_what_reads_others() {
    for (bool again = true; again;) {
      const std::size_t before = folded_.size();
      std::erase_if(folded_, [&](int k) {
        return ranges::any_of(tensors_of(p_.kernels[k]),
                              [&](TensorId t) { return p_.tensors[t].storage == Storage::scratch && !is_folded(t); });
      });
      again = folded_.size() < before;
    }
  }

  /// Of the folded values that other kernels read.
  std::map<TensorId, std::int64_t> reals_kept() const {
    std::map<TensorId, std::int64_t> kept;
    for (const TensorId t : p_.tensors.ids())
      if (is_folded(t) && ranges::any_of(readers_[t], [&](int k) { return !folded_.contains(k); }))
        kept[t] = layout_for_gemms(p_.tensors[t]).size.fixed / values_in_real(p_.tensors[t].element) * layers_of(t);
    return kept;
  }
  int layers_of(TensorId t) const { return p_.graph.regions[p_.tensors[t].region].count; }

  std::int64_t parameters() const {
    std::int64_t all = 0;
    for (const graph::Node& n : p_.graph.nodes) {
      if (n.op != graph::Op::parameter) continue;
      std::int64_t reals = p_.graph.regions[n.region].count;
      for (const Dim& d : n.shape) reals *= d.value();
      all += reals;
    }
    return all;
  }

  void split() {
    std::set<int> others;
    for (int k = 0; k < static_cast<int>(p_.kernels.size()); ++k)
      if (!folded_.contains(k)) others.insert(k);
    const std::map<TensorId, std::int64_t> kept = reals_kept();
    const Table<std::size_t, TensorId> hashes = how_computed();
    for (const auto& [id, reals] : kept) {
      Tensor& t = p_.tensors[id];
      t.storage = Storage::packed;
      t.packing = Packing::folded;
      t.slots = layers_of(id);
      t.made_as = hashes[id];
    }
    KernelProgram folded = p_;
    take_out(folded, others);
    take_out(p_, folded_);
    p_.folded.push_back(std::move(folded));
  }

  /// Of the text of the kernels that store a tensor, in which what they read stands as its own hash, so that names,
  /// which differ from program to program, do not count.
  Table<std::size_t, TensorId> how_computed() const {
    const auto hash = [](const std::string& text) { return std::hash<std::string>{}(text); };
    KernelProgram named = p_;
    Table<std::size_t, TensorId> hashes(p_.tensors.size());
    for (const TensorId t : p_.tensors.ids())
      if (p_.tensors[t].storage == Storage::table) {
        const std::vector<double>& data = p_.graph[p_.tensors[t].node].data;
        const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(double));
        named.tensors[t].name = fmt::format("table {}", std::hash<std::string_view>{}(bytes));
      }
    std::vector<int> order;
    running_order(p_, 0, order);
    for (const int i : order) {
      if (!folded_.contains(i)) continue;
      Kernel k = p_.kernels[i];
      k.name.clear();
      k.nodes.clear();
      for (const TensorId t : stored_by(k)) named.tensors[t].name = fmt::format("{}", name_of(p_.tensors[t].element));
      const std::string text = print(named, k) + p_.graph.regions[k.region].path;
      for (const TensorId t : stored_by(k)) {
        hashes[t] = hash(text + std::to_string(hashes[t]));
        named.tensors[t].name = std::to_string(hashes[t]);
      }
    }
    return hashes;
  }

  KernelProgram& p_;
  Table<std::vector<int>, TensorId> writers_, readers_;  ///< kernels, by tensor
  std::set<int> folded_;                                 ///< kernels
};

}  // namespace

void fold_constants(KernelProgram& program) { Folder(program).run(); }

}  // namespace tessera::codegen
