#include "runtime/optimizer_slices.hpp"

#include <algorithm>
#include <vector>

#include "runtime/tree_reduce.hpp"

namespace tessera::runtime {
namespace {

Slice slice_of_rank(const Communicator& ranks, const Model& model, int rank) {
  return slice_of(model.parameter_floats, rank, ranks.size());
}

}  // namespace

Arena scatter_slices(const Communicator& ranks, const Model& model, const float* whole) {
  const auto states = static_cast<std::int64_t>(model.optimizer_state.size());
  const Slice mine = slice_of_rank(ranks, model, ranks.rank());
  Arena own = Arena::of_floats(states * mine.size(), model.alignment);
  for (std::int64_t state = 0; state < states; ++state) {
    float* const to = own.floats() + state * mine.size();
    if (!ranks.leads()) {
      ranks.receive(to, 4 * mine.size(), 0);
      continue;
    }
    const float* const all = whole + state * model.parameter_floats;
    std::copy_n(all + mine.first, mine.size(), to);
    for (int rank = 1; rank < ranks.size(); ++rank) {
      const Slice theirs = slice_of_rank(ranks, model, rank);
      ranks.send(all + theirs.first, 4 * theirs.size(), rank);
    }
  }
  ranks.wait();
  return own;
}

std::optional<Arena> gather_slices(const Communicator& ranks, const Model& model, const float* own) {
  const auto states = static_cast<std::int64_t>(model.optimizer_state.size());
  const Slice mine = slice_of_rank(ranks, model, ranks.rank());
  std::optional<Arena> whole;
  if (ranks.leads()) whole.emplace(Arena::of_floats(model.optimizer_floats(), model.alignment));
  for (std::int64_t state = 0; state < states; ++state) {
    const float* const from = own + state * mine.size();
    if (!ranks.leads()) {
      ranks.send(from, 4 * mine.size(), 0);
      continue;
    }
    float* const all = whole->floats() + state * model.parameter_floats;
    std::copy_n(from, mine.size(), all + mine.first);
    for (int rank = 1; rank < ranks.size(); ++rank) {
      const Slice theirs = slice_of_rank(ranks, model, rank);
      ranks.receive(all + theirs.first, 4 * theirs.size(), rank);
    }
  }
  ranks.wait();
  return whole;
}

void all_gather_state(const Communicator& ranks, const Model& model, const float* own, std::int64_t state, float* to) {
  const Slice mine = slice_of_rank(ranks, model, ranks.rank());
  std::copy_n(own + state * mine.size(), mine.size(), to + mine.first);
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks.size(); ++rank) begins.push_back(4 * slice_of_rank(ranks, model, rank).first);
  ranks.all_gather(to, begins);
}

}  // namespace tessera::runtime
