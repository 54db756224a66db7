// A data set in one file of fixed-size records, which is mapped into memory and not read: processes of a machine share
// its pages, and it may be larger than memory. The file is a safetensors file: train.pixels and test.pixels, U8 [count,
// channels, height, width], train.labels and test.labels, I32 [count], and the rest as metadata.
#pragma once

#include <filesystem>

#include "runtime/dataset.hpp"

namespace tessera::runtime {

/// Writes both splits, all or nothing. They have to be of one shape.
void write_packed_data(const std::filesystem::path& path, const Dataset& train, const Dataset& test);

/// The images of a split, where they lie in the file. Throws an Error for a file that write_packed_data does not write.
Dataset read_packed_data(const std::filesystem::path& path, Split split);

/// Whether such a file has the name.
bool is_packed_data(const std::filesystem::path& path);

/// Room for bytes in a file without a name in `folder`: what it holds need not fit into memory. Goes with the last
/// copy.
std::shared_ptr<std::uint8_t> room_on_disk(const std::filesystem::path& folder, std::int64_t bytes);

}  // namespace tessera::runtime
