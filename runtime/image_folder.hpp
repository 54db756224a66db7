// Pictures in folders: train/CLASS/*.png and test/CLASS/*.png (or val/), PNG or JPEG of any size.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/dataset.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Whether the folder has a folder train, test or val.
bool is_image_folder(const std::filesystem::path& folder);

/// The pictures of one split, decoded and prepared for the model. The classes are the names of the folders below train
/// (below test or val where there is no train) in their order; the images take turns, one of each class, each class in
/// the order of its files' names, so that the first ones are of all classes. `limit` of them are read; 0: all. Pixels
/// go into `room`, where there is one. Throws an Error that names what is wrong: no such folder, no classes, a class
/// without pictures, a class that training does not know, a picture that cannot be read.
/// PyTorch equivalent: torchvision.datasets.ImageFolder, class by class there.
Dataset read_image_folder(const std::filesystem::path& folder, Split split, const Model& model,
                          const Preprocessing& input, std::int64_t limit, const Room& room = {});

}  // namespace tessera::runtime
