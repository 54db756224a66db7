// The IDX file format of the MNIST digits: a magic number, big-endian dims, bytes.
// Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits", "File formats".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/dataset.hpp"
#include "runtime/file.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// Unsigned bytes in rows: [count] for labels, [count, height, width] for images.
struct Idx {
  Shape shape;
  Bytes data;
};

/// Reads labels (rank 1) or grey images (rank 3). Throws an Error that names `where`: wrong magic number, a size of
/// zero, truncated data, bytes after the data, sizes whose product is out of reach.
Idx parse_idx(Bytes content, const std::string& where);

/// How many bytes an IDX file has by its header, of which these are the first 16. Throws an Error as parse_idx, and for
/// more than is ever read.
std::uint64_t idx_bytes(std::span<const std::uint8_t> first, const std::string& where);

/// Reads a file, plain or gzip.
Idx read_idx(const std::filesystem::path& path);

/// MNIST's training or test digits: the four files of the original names in one folder, with or without .gz. Throws an
/// Error for a missing file, images and labels that differ in number, and labels from 10 on.
Dataset read_mnist(const std::filesystem::path& folder, Split split);

}  // namespace tessera::runtime
