#include "runtime/exchange.hpp"

#include <cmath>
#include <span>
#include <system_error>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/file.hpp"
#include "runtime/folder_lock.hpp"
#include "runtime/matching.hpp"

namespace tessera::runtime {

void export_parameters(const std::filesystem::path& path, const Model& model, const float* parameters,
                       const std::string& dtype, const Usage& usage) {
  Safetensors file;
  // What other readers of the format ask for: safetensors' own of PyTorch writes this too.
  file.metadata = {{"format", "pt"}};
  usage.write(file, model);
  for (const tessera_parameter& row : model.parameters) {
    const Shape shape = shape_of(row);
    const std::span<const float> numbers(parameters + row.offset, static_cast<std::size_t>(elements(shape)));
    Tensor tensor = Tensor::of(dtype, shape, numbers);
    const std::vector<float> written = tensor.floats();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!std::isfinite(written[i]))
        fail("cannot write ", path.string(), " as ", dtype, ": '", row.name, "' holds ", numbers[i],
             std::isfinite(numbers[i]) ? ", which is too large for it (F32 and BF16 reach further)" : "");
    file.tensors.emplace(row.name, std::move(tensor));
  }
  write_safetensors(path, file);
}

void import_parameters(const std::filesystem::path& file, const std::filesystem::path& out, const Model& model,
                       const std::vector<std::string>& skip, std::uint64_t seed, std::ostream& notes) {
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  check(model, model.init(parameters.floats(), seed));
  const std::optional<Usage> usage = start_from(file, model, skip, parameters.floats(), notes);
  const FolderLock lock(out);
  const std::filesystem::path previous = name_of_previous(out);
  save_model(out / "checkpoint.safetensors", model, parameters.floats(), usage, previous);
  if (!previous.empty()) notes << "the checkpoint of the run before is kept as " << previous.string() << std::endl;
  notes << (out / "checkpoint.safetensors").string() << " holds the parameters of " << file.string() << std::endl;
}

std::filesystem::path name_of_previous(const std::filesystem::path& out) {
  const std::filesystem::path checkpoint = out / "checkpoint.safetensors";
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(checkpoint, unknown);
  // Taken for missing, it would be overwritten.
  if (!std::filesystem::status_known(status)) fail("cannot open ", checkpoint.string(), ": ", unknown.message());
  return std::filesystem::exists(status) ? out / "checkpoint.previous.safetensors" : "";
}

}  // namespace tessera::runtime
