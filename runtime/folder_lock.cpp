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

/// What the holder wrote: its process and host.
std::string holder(const Descriptor& file) {
  char content[256];
  const ssize_t size = ::pread(file.number(), content, sizeof content, 0);
  const std::string line(content, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return line.substr(0, line.find('\n'));
}

Descriptor locked(const std::filesystem::path& path) {
  for (;;) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    if (file.number() < 0) fail("cannot write ", path.string(), ": ", reason(errno));
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return file;
      const std::string who = holder(file);
      fail("another run is training in ", path.parent_path().string(),
           who.empty() ? "" : text(" (", without_controls(who), ")"));
    }
    // The holder before removes the file: a lock on one without a name keeps nobody out.
    struct stat here{}, named{};
    if (::fstat(file.number(), &here) != 0) fail("cannot write ", path.string(), ": ", reason(errno));
    if (::lstat(path.c_str(), &named) != 0) {
      if (errno != ENOENT) fail("cannot write ", path.string(), ": ", reason(errno));
    } else if (here.st_ino == named.st_ino && here.st_dev == named.st_dev) {
      return file;
    }
  }
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : path_(folder / "run.lock"), file_(locked(path_)) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string line = text("process ", ::getpid(), " on ", host, "\n");
  // Whoever waits learns less from an empty file: a full disk is told where the run is saved.
  if (::ftruncate(file_.number(), 0) == 0)
    write_all(file_, {reinterpret_cast<const std::uint8_t*>(line.data()), line.size()});
}

FolderLock::~FolderLock() { ::unlink(path_.c_str()); }

}  // namespace tessera::runtime
