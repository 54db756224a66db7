// CIFAR-10's binary files: records of one label byte and 3 x 32 x 32 bytes, red, green and blue plane by plane.
// Source: Krizhevsky, "The CIFAR-10 dataset", "Binary version".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/dataset.hpp"

namespace tessera::runtime {

/// Adds the records to the labels and pixels of `data`. Throws an Error that names `where`: nothing in it, no whole
/// number of records, labels from 10 on.
void parse_cifar(std::span<const std::uint8_t> content, const std::string& where, Dataset& data);

/// The files in a folder that hold the images, in the order of their names, plain or .gz: of training, *.bin that
/// begin with data_batch or have "train" in their names; of the test, those that have "test". None: an empty list.
std::vector<std::filesystem::path> cifar_files(const std::filesystem::path& folder, Split split);

/// All records of these files, one file after the other. Throws an Error when there are none, and for each that
/// parse_cifar refuses.
Dataset read_cifar(const std::filesystem::path& folder, Split split);

}  // namespace tessera::runtime
