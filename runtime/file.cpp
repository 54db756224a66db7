#include "runtime/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <system_error>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

constexpr std::string_view temporary_front = ".tessera-", temporary_end = ".partial";
constexpr std::size_t temporary_digits = 16;

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

/// Gives what `path` is now the name `keep` as well; without hard links `path` is then free until it is written.
/// Returns 0 or errno.
int keep_as(const std::filesystem::path& path, const std::filesystem::path& keep) {
  const std::filesystem::path link = temporary_name(path.parent_path());
  if (::link(path.c_str(), link.c_str()) == 0) {
    if (::rename(link.c_str(), keep.c_str()) == 0) {
      ::unlink(link.c_str());  // still there where both were one file already
      return 0;
    }
    const int failed = errno;
    ::unlink(link.c_str());
    return failed;
  }
  return errno == ENOENT || ::rename(path.c_str(), keep.c_str()) == 0 ? 0 : errno;
}

/// Returns 0 or errno.
int replace_file(const std::filesystem::path& path, std::span<const std::span<const std::uint8_t>> parts,
                 const std::filesystem::path& keep, const std::filesystem::path& temporary) {
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) return errno;
  // Held until the file has its name; a file system without locks keeps the leftovers.
  ::flock(file.number(), LOCK_EX);
  struct stat about{};
  int failed = ::fstat(file.number(), &about) != 0 ? errno : about.st_nlink == 0 ? EEXIST : 0;  // another removed it
  for (const auto& part : parts)
    if (!failed) failed = write_all(file, part);
  if (!failed && ::fsync(file.number()) != 0) failed = errno;
  if (!failed && !keep.empty()) failed = keep_as(path, keep);
  if (!failed && ::rename(temporary.c_str(), path.c_str()) != 0) failed = errno;
  if (failed) ::unlink(temporary.c_str());
  return failed;
}

class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&stream_, 15 + 16) == Z_OK) {
    if (!ready_) fail("zlib cannot be started: out of memory");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_;
};

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

Bytes read_file(const std::filesystem::path& path, std::uint64_t limit) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) fail("cannot open ", path.string(), ": ", reason(errno));
  struct stat about{};
  if (::fstat(file.number(), &about) != 0) fail("cannot read ", path.string(), ": ", reason(errno));
  if (S_ISDIR(about.st_mode)) fail("cannot read ", path.string(), ": it is a folder");
  const auto too_long = [&] { fail(path.string(), " is longer than the ", limit, " bytes that are accepted here"); };
  if (about.st_size > 0 && static_cast<std::uint64_t>(about.st_size) > limit) too_long();
  Bytes content;
  // One byte more than expected shows the end of the file without a second allocation; pipes tell no size.
  content.resize(about.st_size > 0 ? static_cast<std::size_t>(about.st_size) + 1 : 1 << 16);
  std::size_t size = 0;
  for (;;) {
    if (size == content.size()) content.resize(content.size() * 2);
    const ssize_t got = ::read(file.number(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read ", path.string(), ": ", reason(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > limit) too_long();
  }
  content.resize(size);
  return content;
}

Bytes unpack_gzip(std::span<const std::uint8_t> packed, std::uint64_t limit, const std::string& where) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  Bytes content;
  std::array<std::uint8_t, 1 << 16> chunk;
  std::size_t fed = 0;
  for (;;) {
    if (stream.avail_in == 0 && fed < packed.size()) {
      const std::size_t part = std::min<std::size_t>(packed.size() - fed, std::size_t{1} << 30);
      stream.next_in =
          const_cast<Bytef*>(packed.data() + fed);  // zlib does not write here: its C signature predates const
      stream.avail_in = static_cast<uInt>(part);
      fed += part;
    }
    stream.next_out = chunk.data();
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = chunk.size() - stream.avail_out;
    if (content.size() + made > limit)
      fail(where, " unpacks to more than the ", limit, " bytes that are accepted here");
    content.insert(content.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(made));
    const bool all_fed = stream.avail_in == 0 && fed == packed.size();
    if (result == Z_STREAM_END) {
      if (all_fed) return content;
      if (inflateReset(&stream) != Z_OK) fail(where, " cannot be unpacked: zlib cannot be restarted");
    } else if (result == Z_BUF_ERROR || (result == Z_OK && all_fed && made == 0)) {
      fail(where, " is truncated: its gzip data ends too early");
    } else if (result != Z_OK) {
      fail(where, " is not valid gzip data: ", stream.msg ? stream.msg : "it is damaged");
    }
  }
}

Bytes read_packed_file(const std::filesystem::path& path, std::uint64_t limit) {
  Bytes content = read_file(path, limit);
  if (content.size() >= 2 && content[0] == 0x1f && content[1] == 0x8b)
    return unpack_gzip(content, limit, path.string());
  return content;
}

void write_file(const std::filesystem::path& path, std::span<const std::span<const std::uint8_t>> parts,
                const std::filesystem::path& keep) {
  // A device or a pipe would be replaced by a file.
  std::error_code unknown;
  const std::filesystem::file_status target = std::filesystem::status(path, unknown);
  if (!std::filesystem::status_known(target)) fail("cannot write ", path.string(), ": ", unknown.message());
  if (std::filesystem::exists(target) && !std::filesystem::is_regular_file(target))
    fail("cannot write ", path.string(), ": ",
         std::filesystem::is_directory(target) ? reason(EISDIR) : "it is no regular file");
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  remove_leftovers(folder);
  int failed = EEXIST;
  for (int i = 0; failed == EEXIST && i < 10; ++i) failed = replace_file(path, parts, keep, temporary_name(folder));
  if (failed) fail("cannot write ", path.string(), ": ", reason(failed));
  // The new name itself must reach the disk as well. A file system that cannot do this (EINVAL) has done what it can.
  const Descriptor entry(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entry.number() >= 0 && ::fsync(entry.number()) != 0 && errno == EIO)
    fail("cannot write ", path.string(), ": ", reason(EIO));
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

void make_folder(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) fail("cannot make the folder ", path.string(), ": ", failed.message());
}

}  // namespace tessera::runtime
