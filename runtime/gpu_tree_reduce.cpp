#include "runtime/gpu_tree_reduce.hpp"

#include <array>
#include <cstddef>

namespace tessera::runtime {

GpuTreeReduce::GpuTreeReduce(const Communicator& ranks, const Model& model, const Gpu& gpu)
    : ranks_(ranks),
      model_(model),
      gpu_(gpu),
      engine_(*model.gpu_ranks),
      own_(slice_of(model.parameter_floats, ranks.rank(), ranks.size())),
      squares_(gpu, Slice::chunks * std::int64_t{sizeof(double)}) {
  if (ranks_.by_file()) return;  // they have joined
  std::array<std::byte, GpuRanks::id_bytes> id{};
  ranks_.agree([&] {
    if (ranks_.leads()) engine_.make_id(id.data());
  });
  ranks_.broadcast(id.data(), GpuRanks::id_bytes);
  ranks_.agree([&] { engine_.join(id.data(), ranks_.rank(), ranks_.size()); });
  ranks_.agree([&] { ranks_.wait_until([&] { return engine_.done(nullptr); }); });
}

GpuTreeReduce::~GpuTreeReduce() {
  if (!ranks_.by_file()) engine_.leave();
}

void GpuTreeReduce::reduce(const std::vector<Subtree>& nodes, const std::vector<GpuMemory>& sums, std::int64_t parts,
                           float share, float* to) {
  const int here = ranks_.rank(), ranks = ranks_.size();
  void* const stream = gpu_.stream();
  const auto slice = [&](int rank) { return slice_of(model_.parameter_floats, rank, ranks); };
  const auto send = [&](const float* from, std::int64_t floats, int rank) {
    if (floats == 0) return;
    engine_.send(from, 4 * floats, rank, stream);
    sent_ += 4 * floats;
  };
  const auto receive = [&](float* into, std::int64_t floats, int rank) {
    if (floats > 0) engine_.receive(into, 4 * floats, rank, stream);
  };

  std::vector<Subtree> all;
  std::vector<float*> slices;
  std::size_t received = 0;
  engine_.begin();
  for (int rank = 0; rank < ranks; ++rank) {
    for (Subtree node : rank == here ? nodes : subtrees(share_of_parts(parts, rank, ranks), parts)) {
      if (rank == here) {
        slices.push_back(sums[static_cast<std::size_t>(node.buffer)].floats() + own_.first);
      } else {
        if (received == received_.size()) received_.push_back(GpuMemory::of_floats(gpu_, own_.size()));
        slices.push_back(received_[received++].floats());
        receive(slices.back(), own_.size(), rank);
      }
      node.buffer = static_cast<int>(slices.size()) - 1;
      all.push_back(node);
    }
  }
  for (int step = 1; step < ranks; ++step) {
    const int rank = (here + step) % ranks;
    const Slice theirs = slice(rank);
    for (const Subtree& node : nodes)
      send(sums[static_cast<std::size_t>(node.buffer)].floats() + theirs.first, theirs.size(), rank);
  }
  engine_.end();
  wait();

  const auto add = [&](float* sum, const float* other, float kept, float weight) {
    if (own_.size() == 0) return;  // more ranks than chunks
    gpu_.check(gpu_.cuda().gather_range(sum, other, own_.size(), kept, weight, stream));
  };
  add_siblings(all, parts, [&](int into, int from) {
    add(slices[static_cast<std::size_t>(into)], slices[static_cast<std::size_t>(from)], 1, 1);
  });
  add(to + own_.first, slices[static_cast<std::size_t>(all.front().buffer)], 0, share);
}

void GpuTreeReduce::all_gather(void* all, const std::vector<std::int64_t>& begins) {
  auto* const bytes = static_cast<std::byte*>(all);
  const int here = ranks_.rank(), ranks = ranks_.size();
  const auto at = [&](int rank) { return begins[static_cast<std::size_t>(rank)]; };
  engine_.begin();
  for (int step = 1; step < ranks; ++step) {
    const int next = (here + step) % ranks, before = (here + ranks - step) % ranks;
    if (at(before) < at(before + 1))
      engine_.receive(bytes + at(before), at(before + 1) - at(before), before, gpu_.stream());
    if (at(here) < at(here + 1)) engine_.send(bytes + at(here), at(here + 1) - at(here), next, gpu_.stream());
  }
  engine_.end();
  wait();
}

void GpuTreeReduce::all_gather(float* all) {
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks_.size(); ++rank)
    begins.push_back(4 * slice_of(model_.parameter_floats, rank, ranks_.size()).first);
  all_gather(all, begins);
  sent_ += 4 * own_.size() * (ranks_.size() - 1);
}

void GpuTreeReduce::all_gather_squares() {
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks_.size(); ++rank)
    begins.push_back(slice_of(model_.parameter_floats, rank, ranks_.size()).first_chunk * std::int64_t{sizeof(double)});
  all_gather(squares(), begins);
}

void GpuTreeReduce::wait() const {
  ranks_.wait_until([&] { return engine_.done(gpu_.stream()); });
}

}  // namespace tessera::runtime
