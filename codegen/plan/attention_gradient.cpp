// Attention's backward pass by blocks of queries, and of keys, as one kernel.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <set>
#include <utility>

#include "codegen/kernels/query.hpp"
#include "codegen/plan/attention_axes.hpp"

namespace tessera::codegen {

namespace {

/// The scores of an image, in reals, below which blocks gain nothing.
constexpr std::int64_t least_gradient_scores = 1 << 17;

/// Attention's backward pass in a running order, by positions: its kernels as a block runs through them.
using BackwardAt = std::array<std::size_t, 5>;

Backward backward(const KernelProgram& program, const std::vector<Item>& order, const BackwardAt& at) {
  const auto kernel = [&](std::size_t i) -> const Kernel& { return program.kernels[order[at[i]].kernel]; };
  return {kernel(0), kernel(1), kernel(2), kernel(3), kernel(4)};
}

/// That in which the scores' gradient is what the kernel at `second` gives.
std::optional<BackwardAt> backward_of(const KernelProgram& program, const std::vector<Item>& order,
                                      std::size_t second) {
  std::map<TensorId, std::vector<std::size_t>> loads, stores;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].kernel < 0) continue;
    for (const TensorId t : loaded_by(program.kernels[order[i].kernel])) loads[t].push_back(i);
    for (const TensorId t : stored_by(program.kernels[order[i].kernel])) stores[t].push_back(i);
  }
  const std::set<TensorId> given = stored_by(program.kernels[order[second].kernel]);
  for (const TensorId changes : given) {
    if (stores[changes].size() != 1 || loads[changes].size() != 2) continue;
    for (const TensorId read : loaded_by(program.kernels[order[second].kernel])) {
      if (stores[read].size() != 1 || stores[read][0] == second) continue;
      std::set<TensorId> scores = given;  // one of them are the probabilities
      scores.insert(read);
      for (const std::size_t mix : loads[changes])
        for (const std::size_t keys : loads[changes])
          for (const TensorId weights : scores)
            for (const std::size_t values : loads[weights]) {
              const BackwardAt at{stores[read][0], second, values, mix, keys};
              if (std::set<std::size_t>(at.begin(), at.end()).size() == at.size() &&
                  ranges::all_of(at, [&](std::size_t i) { return program.kernels[order[i].kernel].fused.empty(); }) &&
                  axes_of(backward(program, order, at)))
                return at;
            }
    }
  }
  return {};
}

/// The running order in which these kernels are the last of them alone, and what stands between them runs before it or,
/// where it needs a result, behind; nothing: it cannot.
std::optional<std::vector<Item>> run_as_one(const KernelProgram& program, const std::vector<Item>& order,
                                            const BackwardAt& parts) {
  const auto [first, last] = std::minmax_element(parts.begin(), parts.end());
  std::vector<Item> before(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(*first)), one, behind;
  for (std::size_t i = *first; i <= *last; ++i) {
    if (order[i].kernel < 0) return {};
    const auto apart = [&](const Item& other) {
      return independent(program.kernels[order[i].kernel], program.kernels[other.kernel]);
    };
    const bool waits = !ranges::all_of(behind, apart);
    if (ranges::contains(parts, i)) {
      if (waits) return {};
      one.push_back(order[i]);
    } else {
      (waits || !ranges::all_of(one, apart) ? behind : before).push_back(order[i]);
    }
  }
  before.push_back(order[parts.back()]);
  before.insert(before.end(), behind.begin(), behind.end());
  before.insert(before.end(), order.begin() + static_cast<std::ptrdiff_t>(*last) + 1, order.end());
  return before;
}

/// Attention's backward pass that can become one kernel.
struct Found {
  std::array<int, 5> kernels;
  std::vector<Item> order;    ///< in which its kernels are the last of them alone
  std::set<TensorId> scores;  ///< probabilities and scores' gradients, which nothing else reads
};
/// That of which the kernel at `second` is one.
std::optional<Found> found_at(const KernelProgram& program, const std::vector<Item>& order, std::size_t second) {
  if (order[second].kernel < 0) return {};
  const Kernel& k = program.kernels[order[second].kernel];
  if (!is_product_of_image(k) || reals_of(program.tensors[k.steps[1].stores[0].to.tensor]) < least_gradient_scores)
    return {};
  const std::optional<BackwardAt> at = backward_of(program, order, second);
  const auto as_one = at ? run_as_one(program, order, *at) : std::nullopt;
  if (!as_one) return {};
  Found found{{}, *as_one, stored_by(k)};
  for (std::size_t part = 0; part < at->size(); ++part) found.kernels[part] = order[(*at)[part]].kernel;
  found.scores.insert(program.kernels[found.kernels[0]].steps[1].stores[0].to.tensor);
  const std::set<int> kernels(found.kernels.begin(), found.kernels.end());
  if (!ranges::all_of(found.scores, [&](TensorId t) { return is_inside(program, t, kernels); })) return {};
  return found;
}

}  // namespace

std::set<int> attention_gradients(const KernelProgram& program) {
  std::set<int> found;
  for (const std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i < order.size(); ++i)
      if (const std::optional<Found> backward = found_at(program, order, i))
        found.insert(backward->kernels.begin(), backward->kernels.end());
  return found;
}

void differentiate_attention_in_blocks(KernelProgram& program) {
  using Role = Fused::Role;
  std::set<int> gone;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::optional<Found> backward = found_at(program, order, i);
      if (!backward) continue;
      const std::array<int, 5>& numbers = backward->kernels;
      const auto kernel = [&](std::size_t part) -> Kernel& { return program.kernels[numbers[part]]; };
      Kernel &first = kernel(0), &second = kernel(1), &values = kernel(2), &mix = kernel(3), &keys = kernel(4);
      const TensorId given = first.steps[1].stores[0].to.tensor, changes = store_for(second, mix)->tensor;
      for (const TensorId t : backward->scores) program.tensors[t].storage = Storage::registers;
      const bool again = store_for(second, values) != nullptr;
      if (again) share_place(second, {&mix, &keys}, given, changes);
      keys.fused = {Fused::Kind::attention_gradient,
                    {again ? Role::scores : Role::probabilities, again ? Role::probabilities : Role::scores,
                     Role::gradient, Role::mix},
                    {first, second, values, mix}};
      gone.insert(numbers.begin(), numbers.end() - 1);
      order = std::move(backward->order);
    }
  remove_kernels(program, gone);
}

}  // namespace tessera::codegen
