#include "runtime/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <random>
#include <system_error>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

constexpr std::string_view temporary_front = ".tessera-", temporary_end = ".partial";
constexpr std::size_t temporary_digits = 16;

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

/// A name in the folder that nobody else chooses.
std::filesystem::path temporary_name(const std::filesystem::path& folder) {
  std::random_device random;
  std::string digits;
  for (std::size_t i = 0; i < temporary_digits; ++i) digits += "0123456789abcdef"[random() % 16];
  return folder / text(temporary_front, digits, temporary_end);
}

bool is_temporary(std::string_view name) {
  if (!name.starts_with(temporary_front) || !name.ends_with(temporary_end)) return false;
  name.remove_prefix(temporary_front.size());
  return name.find_first_not_of("0123456789abcdef") == temporary_digits &&
         name.size() == temporary_digits + temporary_end.size();
}

/// Removes the temporary files of writers that were killed: the living hold a lock on theirs.
void remove_leftovers(const std::filesystem::path& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (!is_temporary(entry->path().filename().string())) continue;
    const Descriptor file(::open(entry->path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.number() >= 0 && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
  }
}

/// A file that goes with the object, unless it was given another name. Nobody else has chosen its own.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {}
  ~Temporary() { ::unlink(path_.c_str()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const char* name() const { return path_.c_str(); }

 private:
  std::filesystem::path path_;
};

int keep_as(const std::filesystem::path& path, const std::filesystem::path& keep);

/// Returns 0 or errno.
int replace_file(const std::filesystem::path& path, std::span<const std::span<const std::uint8_t>> parts,
                 const std::filesystem::path& keep) {
  const Temporary temporary(temporary_name(folder_of(path)));
  const Descriptor file(::open(temporary.name(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) return errno;
  // Held until the file has its name; a file system without locks keeps the leftovers.
  ::flock(file.number(), LOCK_EX);
  struct stat about{};
  int failed = ::fstat(file.number(), &about) != 0 ? errno : about.st_nlink == 0 ? EEXIST : 0;  // another removed it
  for (const auto& part : parts)
    if (!failed) failed = write_all(file, part);
  if (!failed && ::fsync(file.number()) != 0) failed = errno;
  if (!failed && !keep.empty()) failed = keep_as(path, keep);
  if (!failed && ::rename(temporary.name(), path.c_str()) != 0) failed = errno;
  return failed;
}

/// Gives what `path` is now the name `keep` as well. Where there are no hard links that is a copy: neither name is ever
/// without a whole file. Returns 0 or errno.
int keep_as(const std::filesystem::path& path, const std::filesystem::path& keep) {
  std::filesystem::path name = temporary_name(folder_of(path));
  name += ".kept";                        // no leftover: nobody holds a lock on it
  const Temporary link(std::move(name));  // still there after the renaming where both were one file already
  if (::link(path.c_str(), link.name()) == 0) return ::rename(link.name(), keep.c_str()) == 0 ? 0 : errno;
  if (errno == ENOENT) return 0;
  const Bytes content = read_file(path, UINT64_MAX);
  const std::span<const std::uint8_t> all(content);
  return replace_file(keep, std::span(&all, 1), {});
}

/// Lets the names in the folder reach the disk. Returns 0 or EIO: a file system that cannot do this has done what it
/// can.
int sync_folder(const std::filesystem::path& folder) {
  const Descriptor entry(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return entry.number() >= 0 && ::fsync(entry.number()) != 0 && errno == EIO ? EIO : 0;
}

/// What the kernel sends where a mapped file has lost the bytes that are asked for.
void end_without_bytes(int) {
  constexpr char said[] =
      "the program cannot go on: a file that it reads has become shorter, or its disk cannot be read\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, said, sizeof said - 1);
  ::_exit(1);
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::string reason(int number) { return std::error_code(number, std::generic_category()).message(); }

int write_all(const Descriptor& file, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(file.number(), bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

InputFile::InputFile(const std::filesystem::path& path)
    : where_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  if (file_.number() < 0) fail("cannot open ", where_, ": ", reason(errno));
  struct stat about{};
  if (::fstat(file_.number(), &about) != 0) fail("cannot read ", where_, ": ", reason(errno));
  if (S_ISDIR(about.st_mode)) fail("cannot read ", where_, ": it is a folder");
  if (!S_ISREG(about.st_mode)) fail("cannot read ", where_, ": it is no regular file");
  size_ = static_cast<std::uint64_t>(about.st_size);
}

void InputFile::read(std::uint64_t at, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file_.number(), bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30),
                                static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read ", where_, ": ", reason(errno));
    if (got == 0) fail("cannot read ", where_, ": it has become shorter");
    at += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

Bytes read_file(const InputFile& file, std::uint64_t limit) {
  if (file.size() > limit) fail(file.where(), " is longer than the ", limit, " bytes that are accepted here");
  Bytes content(file.size());
  file.read(0, content);
  return content;
}

std::shared_ptr<std::uint8_t> mapped(const InputFile& file, int protection) {
  return mapped(file.number(), file.size(), protection, file.where());
}

std::shared_ptr<std::uint8_t> mapped(int file, std::size_t bytes, int protection, const std::string& where) {
  if (bytes == 0) return {};
  void* const memory = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail("cannot map ", where, " into memory: ", reason(errno));
  std::signal(SIGBUS, end_without_bytes);
  return {static_cast<std::uint8_t*>(memory), [bytes](std::uint8_t* m) { ::munmap(m, bytes); }};
}

Bytes read_file(const std::filesystem::path& path, std::uint64_t limit) { return read_file(InputFile(path), limit); }

void check_target(const std::filesystem::path& path) {
  std::error_code unknown;
  const std::filesystem::file_status target = std::filesystem::status(path, unknown);
  if (!std::filesystem::status_known(target)) fail("cannot write ", path.string(), ": ", unknown.message());
  // A device or a pipe would be replaced by a file, and so would a link to a disk that is not there.
  if (std::filesystem::exists(target) && !std::filesystem::is_regular_file(target))
    fail("cannot write ", path.string(), ": ",
         std::filesystem::is_directory(target) ? reason(EISDIR) : "it is no regular file");
  if (!std::filesystem::exists(target) && std::filesystem::is_symlink(std::filesystem::symlink_status(path, unknown)))
    fail("cannot write ", path.string(), ": it is a link to a file that is not there");
}

void spare_inputs(const std::filesystem::path& path, const std::vector<std::filesystem::path>& inputs) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return;
  const std::filesystem::path there = std::filesystem::canonical(path, unknown);
  for (const std::filesystem::path& input : inputs) {
    if (std::filesystem::equivalent(path, input, unknown)) fail("cannot write ", path.string(), ": it is what is read");
    if (!std::filesystem::is_directory(input, unknown)) continue;
    const std::filesystem::path folder = std::filesystem::canonical(input, unknown);
    if (std::ranges::mismatch(folder, there).in1 == folder.end())
      fail("cannot write ", path.string(), ": it lies in ", input.string(), ", which is read");
  }
}

void write_file(const std::filesystem::path& path, std::span<const std::span<const std::uint8_t>> parts,
                const std::filesystem::path& keep) {
  check_target(path);
  const std::filesystem::path folder = folder_of(path);
  remove_leftovers(folder);
  int failed = EEXIST;
  for (int i = 0; failed == EEXIST && i < 10; ++i) failed = replace_file(path, parts, keep);
  if (failed) fail("cannot write ", path.string(), ": ", reason(failed));
  // The new name itself must reach the disk as well.
  if (const int unsynced = sync_folder(folder)) fail("cannot write ", path.string(), ": ", reason(unsynced));
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  const std::span<const std::uint8_t> part(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  write_file(path, std::span(&part, 1));
}

std::vector<std::filesystem::path> list_folder(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) fail("there is no folder ", path.string());
  std::vector<std::filesystem::path> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path, failed), end; !failed && entry != end; entry.increment(failed))
    found.push_back(entry->path());
  if (failed) fail("cannot read the folder ", path.string(), ": ", failed.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::filesystem::path> make_folder(const std::filesystem::path& path) {
  std::error_code failed, unknown;
  std::vector<std::filesystem::path> made;
  for (auto folder = path; folder.has_relative_path() && !std::filesystem::exists(folder, unknown);
       folder = folder.parent_path())
    made.push_back(folder);
  std::filesystem::create_directories(path, failed);
  if (failed) fail("cannot make the folder ", path.string(), ": ", failed.message());
  // A folder whose name is lost with the power takes what was saved in it along.
  for (const std::filesystem::path& folder : made)
    if (const int unsynced = sync_folder(folder_of(folder)))
      fail("cannot make the folder ", path.string(), ": ", reason(unsynced));
  return made;
}

}  // namespace tessera::runtime
