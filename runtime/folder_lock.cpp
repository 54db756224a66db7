#include "runtime/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "runtime/error.hpp"
#include "runtime/labels.hpp"

namespace tessera::runtime {
namespace {

constexpr off_t longest_line = 512;

/// What the holder wrote: its process and host.
std::string holder(const Descriptor& file) {
  char content[longest_line];
  const ssize_t size = ::pread(file.number(), content, sizeof content, 0);
  const std::string line(content, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return line.substr(0, line.find('\n'));
}

[[noreturn]] void refuse(const std::filesystem::path& folder, const Descriptor& file) {
  const std::string who = holder(file);
  fail("another run is training in ", folder.string(), who.empty() ? "" : text(" (", without_controls(who), ")"));
}

/// A lock on the folder itself, which holds though somebody removes the file as one that was left behind. Network file
/// systems have none on folders.
Descriptor locked_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  Descriptor entry(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entry.number() >= 0 && ::flock(entry.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    refuse(folder, Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)));
  return entry;
}

Descriptor locked(const std::filesystem::path& path) {
  for (;;) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    if (file.number() < 0) fail("cannot write ", path.string(), ": ", reason(errno));
    struct stat here{}, named{};
    if (::fstat(file.number(), &here) != 0) fail("cannot write ", path.string(), ": ", reason(errno));
    if (!S_ISREG(here.st_mode) || here.st_size > longest_line)
      fail("cannot write ", path.string(), ": it is no lock of a run");
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return file;
      refuse(path.parent_path(), file);
    }
    // The holder before removes the file: a lock on one without a name keeps nobody out.
    if (::lstat(path.c_str(), &named) != 0) {
      if (errno != ENOENT) fail("cannot write ", path.string(), ": ", reason(errno));
    } else if (here.st_ino == named.st_ino && here.st_dev == named.st_dev) {
      return file;
    }
  }
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folders_{make_folder(folder)}, path_(folder / "run.lock"), folder_(locked_folder(path_)), file_(locked(path_)) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string line = text("process ", ::getpid(), " on ", host, "\n");
  // Whoever waits learns less from an empty file: a full disk is told where the run is saved.
  if (::ftruncate(file_.number(), 0) == 0)
    write_all(file_, {reinterpret_cast<const std::uint8_t*>(line.data()), line.size()});
}

FolderLock::~FolderLock() { ::unlink(path_.c_str()); }

FolderLock::Folders::~Folders() {
  for (const std::filesystem::path& folder : made)
    if (::rmdir(folder.c_str()) != 0) return;  // it holds something
}

}  // namespace tessera::runtime
