// Whole files in and out: size limits on the way in, all or nothing on the way out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::runtime {

using Bytes = std::vector<std::uint8_t>;

/// An open file that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();
  int number() const { return number_; }  ///< negative: it could not be opened

 private:
  int number_;
};

/// errno's number in words.
std::string reason(int number);

/// Writes all of it. Returns 0 or errno.
int write_all(const Descriptor& file, std::span<const std::uint8_t> bytes);

/// A file of somebody else's, open for reading. Throws an Error that names the file when it cannot be opened or is no
/// regular one: a pipe or a device may wait for ever, or have no end.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  std::uint64_t size() const { return size_; }  ///< when it was opened; no more is read
  const std::string& where() const { return where_; }
  int number() const { return file_.number(); }  ///< its descriptor
  /// Bytes from `at` on. Throws an Error when they cannot be read or the file has become shorter.
  void read(std::uint64_t at, std::span<std::uint8_t> bytes) const;

 private:
  std::string where_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

/// All of the file in memory, `protection` as mmap takes it; null where it is empty. It may be given up with the file
/// still mapped. Where the file loses bytes later, or its disk cannot be read, a sentence says so and the program ends.
/// Throws an Error where it cannot be mapped.
std::shared_ptr<std::uint8_t> mapped(const InputFile& file, int protection);
std::shared_ptr<std::uint8_t> mapped(int file, std::size_t bytes, int protection, const std::string& where);

/// The content of an InputFile. Throws an Error that names the file when it is longer than `limit` bytes.
Bytes read_file(const std::filesystem::path& path, std::uint64_t limit);
Bytes read_file(const InputFile& file, std::uint64_t limit);

/// Throws the Error that write_file would throw for what has the name now: a folder, a device, a link to nothing.
void check_target(const std::filesystem::path& path);

/// Throws an Error where what is there under the name would be lost though it is what is read: one of the inputs, or a
/// file that lies in one which is a folder.
void spare_inputs(const std::filesystem::path& path, const std::vector<std::filesystem::path>& inputs);

/// Replaces the file by the parts, one after the other, or leaves it as it was: the parts go into a temporary file of
/// its own in the same folder, reach the disk, and only then take the name. A crash or a kill at any moment leaves the
/// old or the new content, and of several writers at once the last one's, whole. What the file was before stays as
/// `keep`, unless that is empty; it is touched no sooner than the new content is on the disk. Throws an Error that
/// names the file (disk full, no permission, what check_target refuses) and leaves nothing behind.
void write_file(const std::filesystem::path& path, std::span<const std::span<const std::uint8_t>> parts,
                const std::filesystem::path& keep = {});
void write_file(const std::filesystem::path& path, std::string_view content);

/// What lies in the folder, sorted by name. Throws an Error that names it when it is none or cannot be read.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& path);

/// Makes the folder and those above it, and gives those that it made, the innermost first. Throws an Error that names
/// it.
std::vector<std::filesystem::path> make_folder(const std::filesystem::path& path);

}  // namespace tessera::runtime
