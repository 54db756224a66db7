// The packed parameters of a checkpoint in a file beside it, which the next process maps instead of packing them anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// What Model::pack_forward makes of a checkpoint: CHECKPOINT.ISA.packed in the same folder, as
/// "checkpoint.avx2.packed", which may be deleted at any time. It holds for the very files that the checkpoint and this
/// program were when it was written: their inode, size, and times of the last change to content and attributes.
class PackedParameters {
 public:
  PackedParameters(const std::filesystem::path& checkpoint, const Model& model);

  /// [packed_forward_floats], mapped from the file; null where there is none that holds. Outlived by this.
  const float* floats() const;

  /// Writes the file, all or nothing, of parameters that were read from the checkpoint since this was made. Does
  /// nothing where packing takes less time than a file is worth (4 MiB), where the checkpoint or the program has
  /// changed since then or within the last two seconds, which their times may not tell, where another file has the
  /// name, and where it cannot be written: the next process packs them again.
  void keep(const float* packed) const;

 private:
  std::string files_as_they_are() const;

  std::filesystem::path checkpoint_, path_;
  std::string isa_, key_;
  std::uint64_t bytes_;
  std::shared_ptr<std::uint8_t> mapping_;
};

}  // namespace tessera::runtime
