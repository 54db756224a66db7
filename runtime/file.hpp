// Whole files in and out: size limits on the way in, all or nothing on the way out.
#pragma once

#include <cstdint>
#include <filesystem>
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

/// The content of a file. Throws an Error that names the file when it cannot be read or is longer than `limit` bytes.
Bytes read_file(const std::filesystem::path& path, std::uint64_t limit);

/// As read_file, and unpacks the content when it starts with gzip's magic number, whatever the file is called.
/// `limit` holds for the packed and for the unpacked size: a small file cannot unpack into a full memory.
Bytes read_packed_file(const std::filesystem::path& path, std::uint64_t limit);

/// Unpacks gzip (RFC 1952; several members one after the other are one content). `where` names it in errors.
Bytes unpack_gzip(std::span<const std::uint8_t> packed, std::uint64_t limit, const std::string& where);

/// Replaces the file by the parts, one after the other, or leaves it as it was: the parts go into a temporary file of
/// its own in the same folder, reach the disk, and only then take the name. A crash or a kill at any moment leaves the
/// old or the new content, and of several writers at once the last one's, whole. What the file was before stays as
/// `keep`, unless that is empty; it is touched no sooner than the new content is on the disk. Throws an Error that
/// names the file (disk full, no permission, a folder or a device of this name) and leaves nothing behind.
void write_file(const std::filesystem::path& path, std::span<const std::span<const std::uint8_t>> parts,
                const std::filesystem::path& keep = {});
void write_file(const std::filesystem::path& path, std::string_view content);

/// What lies in the folder, sorted by name. Throws an Error that names it when it is none or cannot be read.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& path);

/// Makes the folder and those above it. Throws an Error that names it.
void make_folder(const std::filesystem::path& path);

}  // namespace tessera::runtime
