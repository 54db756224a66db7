// What the commands of a transformer's program have in common: runs, the VQGAN of their tokens, images as tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/dataset.hpp"
#include "runtime/forward_pass.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/taming_program.hpp"

namespace tessera::runtime {

/// How many images go through a VQGAN or a transformer at once where nothing is trained.
inline constexpr std::int64_t images_a_pass = 64;

/// An index from a count that is not negative.
inline std::size_t place(std::int64_t n) { return static_cast<std::size_t>(n); }

/// A run's folder means its checkpoint.
std::filesystem::path run_file(const std::filesystem::path& run);

/// The parameters of a model out of a file that may hold others as well: the other half of the VQGAN, other stages.
Arena parameters_of(const Model& model, const std::filesystem::path& file);

/// A pass of the VQGAN with its parameters out of a file.
PackedPass pass_from(const ForwardPass& pass, const std::filesystem::path& file, bool on_gpu = false);

/// FNV-1a of the codes: two VQGANs with one hash give tokens the same meaning.
std::string codebook_hash(const ForwardPass& decode, const PackedPass& loaded);

/// What a checkpoint says beside its tensors; "" where it does not.
std::string metadata_of(const Safetensors& file, const std::string& key);

/// A file's metadata alone.
Safetensors about(const std::filesystem::path& file);

/// Where the VQGAN is that a run's tokens are of: `named`, or else what the run says, whose codebook has to be the one
/// that the run was trained on. Throws an Error where nothing says it, or where the codebook is another.
PackedPass decoder_of(const Taming& taming, const std::filesystem::path& run, const std::filesystem::path& named,
                      std::filesystem::path& vqgan);

/// The numbers of all parameters among the file's tensors, with `front` before the keys.
void put(Safetensors& file, const Model& model, const std::string& front, const float* numbers);

/// Images as the transformer reads them.
struct Tokens {
  std::vector<std::int32_t> read, wanted;  ///< [images, positions]: the class and all but the last; all
  std::int64_t images = 0;
};
Tokens tokens_of(const Taming& taming, const PackedPass& encode, const Dataset& data, const char* what);

/// A data set whose images are the VQGAN's.
Dataset images_for(const Taming& taming, const DataChoice& choice, Split split);

/// The mean cross entropy of a token, in nats.
double nats_a_token(const Taming& taming, const float* parameters, const float* packed, const Tokens& tokens);

}  // namespace tessera::runtime
