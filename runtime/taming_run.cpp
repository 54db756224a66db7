#include "runtime/taming_run.hpp"

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/matching.hpp"
#include "runtime/picture_sheet.hpp"
#include "runtime/progress.hpp"
#include "runtime/taming_keys.hpp"
#include "runtime/tokens.hpp"

namespace tessera::runtime {

namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path run_file(const fs::path& run) { return fs::is_directory(run) ? run / "checkpoint.safetensors" : run; }

Arena parameters_of(const Model& model, const fs::path& file) {
  Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  std::vector<std::string> left_out;  // nobody asked for them
  Safetensors content = read_safetensors(file);
  std::erase_if(content.tensors, [](const auto& one) { return one.first.starts_with("optimizer."); });
  content = from_taming(std::move(content), model, left_out);
  Matching matching(content, model);
  matching.take("", parameters.floats());
  matching.finish();
  return parameters;
}

PackedPass pass_from(const ForwardPass& pass, const fs::path& file, bool on_gpu) {
  Model model;
  model.name = "the VQGAN";
  model.parameters = pass.parameters;
  model.parameter_floats = pass.parameter_floats;
  model.alignment = pass.alignment;
  return {pass, parameters_of(model, file), on_gpu};
}

std::string codebook_hash(const ForwardPass& decode, const PackedPass& loaded) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const tessera_parameter& row : decode.parameters) {
    if (row.name != std::string_view("quantize.embedding.weight")) continue;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(loaded.parameters() + row.offset);
    for (std::int64_t i = 0; i < elements(shape_of(row)) * 4; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  char text_of_hash[17];
  std::snprintf(text_of_hash, sizeof text_of_hash, "%016llx", static_cast<unsigned long long>(hash));
  return text_of_hash;
}

std::string metadata_of(const Safetensors& file, const std::string& key) {
  const auto at = file.metadata.find(key);
  return at == file.metadata.end() ? "" : at->second;
}

Safetensors about(const fs::path& file) { return {{}, read_metadata(file), file.string()}; }

PackedPass decoder_of(const Taming& taming, const fs::path& run, const fs::path& named, fs::path& vqgan) {
  const Safetensors said = about(run);
  vqgan = named.empty() ? fs::path(metadata_of(said, "vqgan")) : run_file(named);
  if (vqgan.empty()) fail(run.string(), ": does not say which VQGAN its tokens are of; --vqgan names it");
  PackedPass decode = pass_from(taming.decode, vqgan);
  const std::string trained_on = metadata_of(said, "codebook"), codebook = codebook_hash(taming.decode, decode);
  if (!trained_on.empty() && trained_on != codebook)
    fail(run.string(), ": was trained on another codebook (", trained_on, ") than that of ", vqgan.string(), " (",
         codebook, ")");
  return decode;
}

void put(Safetensors& file, const Model& model, const std::string& front, const float* numbers) {
  for (const tessera_parameter& row : model.parameters)
    file.tensors[front + row.name] =
        Tensor::of(shape_of(row), std::span(numbers + row.offset, place(elements(shape_of(row)))));
}

Tokens tokens_of(const Taming& taming, const PackedPass& encode, const Dataset& data, const char* what) {
  const std::int64_t positions = taming.transformer.tokens.window.rows * taming.transformer.tokens.window.columns;
  if (taming.classes && data.classes > taming.classes)
    fail(data.source, ": has ", data.classes, " classes, and ", taming.transformer.model.name, " knows ",
         taming.classes);
  if (data.image_size() != size_product({taming.image_shape[0], taming.image_shape[1], taming.image_shape[2]}))
    fail(data.source, ": its images are [", data.channels, ", ", data.height, ", ", data.width, "], and the VQGAN's [",
         taming.image_shape[0], ", ", taming.image_shape[1], ", ", taming.image_shape[2], "]");
  Counter counter(text("encoding ", what, " images"), data.size());
  Tokens tokens;
  tokens.images = data.size();
  for (std::int64_t first = 0; first < data.size(); first += images_a_pass) {
    const std::int64_t batch = std::min(images_a_pass, data.size() - first);
    std::vector<float> images;
    for (std::int64_t i = first; i < first + batch; ++i) {
      const std::vector<float> one = numbers_of_pixels(data.image(i));
      images.insert(images.end(), one.begin(), one.end());
    }
    const std::vector<std::int32_t> found = tokens_of_numbers(
        encode(images, size_product({taming.image_shape[0], taming.image_shape[1], taming.image_shape[2]}),
               [&](std::int64_t done) { counter.add(done); }),
        taming.transformer.tokens.codes);
    for (std::int64_t i = 0; i < batch; ++i) {
      tokens.read.push_back(taming.classes ? data.labels[place(first + i)] : static_cast<std::int32_t>(taming.start));
      for (std::int64_t t = 0; t < positions; ++t) {
        const std::int32_t token = found[place(i * positions + t)];
        tokens.wanted.push_back(token);
        if (t + 1 < positions) tokens.read.push_back(token);
      }
    }
  }
  return tokens;
}

Dataset images_for(const Taming& taming, const DataChoice& choice, Split split) {
  Model pictures;
  pictures.name = taming.transformer.model.name;
  std::copy_n(taming.image_shape, 3, pictures.image_shape);
  return load(choice, split, pictures, {});
}

double nats_a_token(const Taming& taming, const float* parameters, const float* packed, const Tokens& tokens) {
  double sum = 0;
  const std::int64_t batch = std::min(images_a_pass, tokens.images);
  const std::int64_t positions = taming.transformer.tokens.window.rows * taming.transformer.tokens.window.columns;
  std::vector<float> outputs(place(batch * positions * taming.transformer.tokens.codes));
  const Arena scratch(taming.transformer.model.evaluate_scratch_bytes(batch), taming.transformer.model.alignment);
  for (std::int64_t first = 0; first < tokens.images; first += batch) {
    const std::int64_t images = std::min(batch, tokens.images - first);
    float loss = 0;
    if (const int code = taming.transformer.evaluate(parameters, packed, tokens.read.data() + first * positions,
                                                     tokens.wanted.data() + first * positions, images, outputs.data(),
                                                     &loss, scratch.data()))
      fail(taming.transformer.model.name, ": ", taming.transformer.model.error(code));
    sum += static_cast<double>(loss) * static_cast<double>(images);
  }
  return sum / static_cast<double>(tokens.images);
}

}  // namespace tessera::runtime
