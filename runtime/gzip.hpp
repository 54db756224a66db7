// Files that may be packed with gzip (RFC 1952).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "runtime/file.hpp"

namespace tessera::runtime {

/// How many bytes a content has in all by its header; given are its first 16 bytes, or more. May throw an Error.
using DeclaredBytes = std::function<std::uint64_t(std::span<const std::uint8_t> first)>;

/// Unpacks gzip; several members one after the other are one content. `where` names it in errors. Throws an Error as
/// soon as more comes than `limit` or, where there is one, than `declared`: a small file cannot fill the memory.
Bytes unpack_gzip(std::span<const std::uint8_t> packed, std::uint64_t limit, const std::string& where,
                  const DeclaredBytes& declared = nullptr);

/// As read_file, and unpacks the content when it starts with gzip's magic number, whatever the file is called. Both
/// limits hold for the plain file too, before it is read; `limit` also for the packed one.
Bytes read_packed_file(const std::filesystem::path& path, std::uint64_t limit, const DeclaredBytes& declared = nullptr);

}  // namespace tessera::runtime
