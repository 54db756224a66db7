// How the tensors of a file become the parameters of a model, and every reason why they do not.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/model.hpp"
#include "runtime/positions.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

Shape shape_of(const tessera_parameter& parameter);

/// What may be done to a file so that it fits.
struct Allowance {
  bool resample = false;          ///< position tables of another grid
  bool skipping = false;          ///< whether advice may speak of --skip
  std::vector<std::string> skip;  ///< keys that are not taken; one that ends in * stands for all that begin so
};

/// Takes the model's parameters out of a file. Differences are gathered and told all at once.
class Matching {
 public:
  /// `file` and `model` must outlive this.
  Matching(const Safetensors& file, const Model& model, Allowance allowance = {});

  /// Fills `numbers`, which lie as the parameters do, from the tensors `prefix` + key. F16, BF16 and F64 are converted,
  /// as is an integer without axes, a count of PyTorch's; a position table of another grid is resampled where that is
  /// allowed. What is skipped, missing or of another shape or type is left alone. Threads share the tensors.
  void take(const std::string& prefix, float* numbers);

  /// Adds a difference that is not about one tensor, as a sentence's rest: "it is a checkpoint of vit_cifar".
  void refuse(std::string difference) { other_.push_back(std::move(difference)); }

  /// Throws an Error with every difference: tensors that are missing, of another shape or type, or that nothing asked
  /// for. One is a sentence; several are a list by kind, each kind cut after ten.
  void finish();

  /// What was not taken as it is, each as a line for people.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  bool skipped(const std::string& key);
  /// Of positions, which another grid of patches has other numbers of: positions.hpp.
  enum class Table : std::uint8_t { none, tokens, map, ways, distances };
  /// What a tensor may become a parameter as.
  struct Fit {
    bool counts = false, other_grid = false;
    Table table = Table::none;
    std::optional<Resampling> how;  ///< of a position table of another grid
    bool as_it_is = false;          ///< but for its type
  };
  Fit fit(const tessera_parameter& parameter, const std::string& key, const Tensor& tensor) const;
  void compare(const tessera_parameter& parameter, const std::string& key, const Tensor& tensor, float* numbers);
  std::string advice() const;

  const Safetensors& file_;
  const Model& model_;
  Allowance allowance_;
  std::set<std::string> asked_;                        ///< tensors
  std::set<std::string> used_;                         ///< patterns of `skip`
  std::vector<std::string> other_, missing_, differ_;  ///< for people
  std::vector<std::string> keys_;                      ///< of missing_ and differ_
  std::vector<std::string> notes_;
};

}  // namespace tessera::runtime
