// Parameters out of Tessera and into it: what `export` and `import` do.
#pragma once

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/checkpoint.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Writes the parameters alone, with the model's keys and layouts, which are PyTorch's, as `dtype` "F32", "F16" or
/// "BF16", rounded to the nearest, and their usage as metadata; all or nothing. Throws an Error that names the
/// parameter where a number is none or too large for the type. PyTorch equivalent: safetensors.torch.save_file({k:
/// v.to(dtype) for k, v in model.state_dict().items()}, path)
void export_parameters(const std::filesystem::path& path, const Model& model, const float* parameters,
                       const std::string& dtype, const Usage& usage);

/// Makes `out`/checkpoint.safetensors, a model without a training run, from the parameters of `file` as start_from
/// takes them; those that `skip` names get their starting values of `seed`. A checkpoint that is there is kept under
/// another name; what the file says of its usage is kept too. Writes to `notes` what was taken.
void import_parameters(const std::filesystem::path& file, const std::filesystem::path& out, const Model& model,
                       const std::vector<std::string>& skip, std::uint64_t seed, std::ostream& notes = std::cout);

/// The name under which the checkpoint of a run before stays when a new one takes its place; empty where there is none.
std::filesystem::path name_of_previous(const std::filesystem::path& out);

}  // namespace tessera::runtime
