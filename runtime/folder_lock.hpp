// Keeps two programs out of one folder.
#pragma once

#include <filesystem>
#include <vector>

#include "runtime/file.hpp"

namespace tessera::runtime {

/// A lock on a folder and on the file run.lock in it, which says the holder's process and host. Held as long as it
/// lives, and no longer than the process, however that ends. File systems without locks do not hold it. Where there is
/// no folder it is made, and removed again if nothing is left in it: what was refused leaves nothing behind.
class FolderLock {
 public:
  /// Throws an Error when another program holds the folder, which says who, and when the folder cannot be made or
  /// written.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  struct Folders {
    std::vector<std::filesystem::path> made;  ///< the innermost first
    ~Folders();
  };
  Folders folders_;
  std::filesystem::path path_;
  Descriptor folder_, file_;
};

}  // namespace tessera::runtime
