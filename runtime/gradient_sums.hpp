// The sum of the gradients of a step's parts, on the CPU.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/communicator.hpp"
#include "runtime/model.hpp"
#include "runtime/part_tree.hpp"
#include "runtime/tree_reduce.hpp"

namespace tessera::runtime {

/// What a part adds: its gradients [Model::parameter_floats], so many times.
struct PartGradients {
  std::int64_t part;  ///< its number in the step, from 0
  const float* floats;
  float weight;
};

/// Adds the parts of this rank's share along the tree over their numbers and, of several ranks, exchanges the sums:
/// each rank has the whole sum of its slice.
class GradientSums {
 public:
  /// `buffers`: as PartTree::buffers says of the share. Both references must outlive this.
  GradientSums(const Model& model, const Communicator& ranks, int buffers);

  /// Adds a part of a step of `parts`; nothing where it has been added range by range.
  void add(const PartGradients& added, std::int64_t parts);
  /// The last part of this rank's share, or none, will be added range by range, and exchanged on the way.
  void begin_ranges(const std::optional<PartGradients>& last, std::int64_t parts);
  /// These floats of its gradients are final. What goes wrong, `exchange` throws.
  void range_ready(std::int64_t from, std::int64_t to) noexcept;
  /// The share is added: ranks exchange what they have not yet. After this, other messages may be sent.
  void exchange(std::int64_t parts);
  /// The sum over all parts, times `share`: of several ranks, this rank's slice of `to`, which is returned. The next
  /// part is of another step.
  float* mean(float share, float* to);

  /// Of `all`, [floats], every rank's slice to every rank.
  void all_gather(float* all) { reduce_->all_gather(all); }
  std::int64_t sent() const { return reduce_->sent(); }  ///< bytes, by this rank, so far

 private:
  void begin(const PartGradients& added, std::int64_t parts);
  void add_range(std::int64_t from, std::int64_t to);

  std::int64_t floats_;
  PartTree tree_;
  std::vector<Arena> buffers_;
  std::optional<TreeReduce> reduce_;
  struct Sum {
    int into, from;
    bool kept;
  };
  std::vector<Sum> of_part_;  ///< what the part at hand adds to which buffer, as tree_ says
  PartGradients part_{};      ///< the one at hand
  bool by_range_ = false;
  std::exception_ptr broken_;  ///< what a range threw, which the model in between has no way to pass on
};

}  // namespace tessera::runtime
