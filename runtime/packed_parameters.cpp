#include "runtime/packed_parameters.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "runtime/error.hpp"
#include "runtime/file.hpp"

namespace tessera::runtime {
namespace {

constexpr std::string_view file_format = "tessera packed parameters 1\n";
constexpr std::size_t page_bytes = 4096;  // before the numbers, which are aligned so
constexpr std::uint64_t least_bytes = std::uint64_t{4} << 20;
constexpr std::time_t settled = 2;  // seconds, more than the steps in which any file system counts its times

/// What tells a file from any other and from what it was before a change; empty where that cannot be told.
std::string identity(const std::filesystem::path& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return {};
  const auto time = [](const timespec& t) { return text(t.tv_sec, '.', t.tv_nsec); };
  if (std::max(about.st_mtim.tv_sec, about.st_ctim.tv_sec) + settled >= std::time(nullptr)) return {};
  return text(about.st_ino, ' ', about.st_size, ' ', time(about.st_mtim), ' ', time(about.st_ctim), '\n');
}

/// Its key, and zeros.
std::string first_page(const InputFile& file) {
  std::string page(page_bytes, '\0');
  file.read(0, {reinterpret_cast<std::uint8_t*>(page.data()), page.size()});
  return page;
}

}  // namespace

PackedParameters::PackedParameters(const std::filesystem::path& checkpoint, const Model& model)
    : checkpoint_(checkpoint),
      path_(checkpoint),
      isa_(model.isa()),
      bytes_(sizeof(float) * static_cast<std::uint64_t>(model.packed_forward_floats)) {
  path_.replace_extension(text(isa_, ".packed"));
  key_ = files_as_they_are();
  if (key_.empty() || bytes_ < least_bytes) return;
  try {
    const InputFile file(path_);
    if (file.size() != page_bytes + bytes_ || !first_page(file).starts_with(key_)) return;
    mapping_ = mapped(file, PROT_READ);
  } catch (const Error&) {  // no file for this process
    return;
  }
#ifdef MADV_POPULATE_READ
  // All of it is read by the first forward pass: one call, and not a fault for each few pages.
  ::madvise(mapping_.get(), page_bytes + bytes_, MADV_POPULATE_READ);
#endif
}

const float* PackedParameters::floats() const {
  return mapping_ ? reinterpret_cast<const float*>(mapping_.get() + page_bytes) : nullptr;
}

void PackedParameters::keep(const float* packed) const {
  if (mapping_ || bytes_ < least_bytes || key_.empty() || files_as_they_are() != key_) return;
  const auto bytes = [](const void* from, std::size_t size) {
    return std::span(static_cast<const std::uint8_t*>(from), size);
  };
  const std::string page = key_ + std::string(page_bytes - key_.size(), '\0');
  const std::span<const std::uint8_t> parts[]{bytes(page.data(), page.size()), bytes(packed, bytes_)};
  try {
    const bool taken = std::filesystem::symlink_status(path_).type() != std::filesystem::file_type::not_found;
    if (taken && !first_page(InputFile(path_)).starts_with(file_format)) return;
    write_file(path_, parts);
  } catch (const std::exception&) {  // another file, a folder of somebody else's, a full disk
  }
}

/// The key of what is made of them: the header's text. Empty where files cannot be told from what they may become.
std::string PackedParameters::files_as_they_are() const {
  const std::string checkpoint = identity(checkpoint_), program = identity("/proc/self/exe");
  if (checkpoint.empty() || program.empty()) return {};
  return text(file_format, isa_, ' ', bytes_, '\n', checkpoint, program);
}

}  // namespace tessera::runtime
