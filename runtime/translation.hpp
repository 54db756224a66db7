// A checkpoint of another library under timm's keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/dialects.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// Whose keys a checkpoint has.
struct Keys {
  const Dialect* dialect = &dialects().front();
  std::string wrapper;  ///< before every key of the file: of training in PyTorch, as "module."
  std::string prefix;
  std::vector<const Rule*> used;  ///< by the file: of several names for one of timm's, these are the file's

  bool are_timms() const;
  /// The file's name of what timm calls `key`, whether the file has it or lacks it: the first of those that are
  /// concatenated. `key` itself where the library has nothing like it.
  std::string theirs(const std::string& key) const;
  /// Whether the file has timm's `key` as a matrix that is multiplied from the right.
  bool transposes(const std::string& key) const;
};

struct Translation {
  Safetensors file;                   ///< under timm's keys
  Keys keys;                          ///< that it had
  std::vector<std::string> left_out;  ///< its tensors that no image needs
};

/// Gives a file's tensors timm's names and layouts: of the dialects the one that has most of its keys, without
/// "module." (PyTorch's DistributedDataParallel), "_orig_mod." (torch.compile) and "model." (Lightning) where these
/// stand before every key. A key that no dialect has stays as it is. Where a learned position of the class token stands
/// before registers, which have none, it is added to the token, as timm does it. Throws an Error that names the keys
/// where those of two dialects are mixed, where two are the same one of timm's, and where one of several that timm
/// concatenates is missing.
Translation in_timms_keys(Safetensors file);

}  // namespace tessera::runtime
