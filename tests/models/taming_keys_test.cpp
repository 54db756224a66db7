// Published checkpoints of Taming Transformers: their keys, read and written.
#include "runtime/taming_keys.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "gpt_small.h"
#include "runtime/checkpoint.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

using runtime::Model;
using runtime::Safetensors;
using runtime::Tensor;
using Numbers = std::vector<float>;

const std::string published = std::string(paths::golden) + "/vq/taming_small/params.safetensors";

Model gpt() {
  Model model;
  model.name = "gpt_small";
  model.declaration_hash = GPT_SMALL_DECLARATION_HASH;
  model.parameters = gpt_small_parameters;
  model.parameter_floats = GPT_SMALL_PARAMETER_FLOATS;
  return model;
}

Numbers load(const std::string& path, std::ostream& notes) {
  Numbers numbers(GPT_SMALL_PARAMETER_FLOATS);
  runtime::load_parameters(path, gpt(), numbers.data(), notes);
  return numbers;
}

Tensor ones(runtime::Shape shape) {
  const std::vector<float> numbers(static_cast<std::size_t>(runtime::elements(shape)), 1);
  return Tensor::of(std::move(shape), numbers);
}

TEST(TamingKeys, WhatIsImportedIsExportedAsTheSameBytes) {
  std::ostringstream notes;
  const Numbers numbers = load(published, notes);
  EXPECT_EQ(notes.str(), "");
  Safetensors own;
  for (const tessera_parameter& row : gpt_small_parameters) {
    const runtime::Shape shape(row.shape, row.shape + row.rank);
    own.tensors[row.name] = Tensor::of(shape, std::span(&numbers[static_cast<std::size_t>(row.offset)],
                                                        static_cast<std::size_t>(runtime::elements(shape))));
  }
  const std::string path = testing::TempDir() + "taming_exported.safetensors";
  runtime::write_safetensors(path, runtime::as_taming(own));
  constexpr std::uint64_t most = 1 << 20;
  EXPECT_EQ(runtime::read_file(path, most), runtime::read_file(published, most));
  std::filesystem::remove(path);
}

TEST(TamingKeys, MasksAndOtherStagesAreLeftOut) {
  Safetensors file = runtime::read_safetensors(published);
  file.tensors["transformer.blocks.0.attn.mask"] = ones({1, 1, 16, 16});
  file.tensors["transformer.blocks.1.attn.mask"] = ones({1, 1, 16, 16});
  file.tensors["first_stage_model.quantize.embedding.weight"] = ones({32, 8});
  const std::string path = testing::TempDir() + "taming_whole.safetensors";
  runtime::write_safetensors(path, file);
  std::ostringstream notes, none;
  EXPECT_EQ(load(path, notes), load(published, none));
  EXPECT_EQ(notes.str(),
            "'first_stage_model.quantize.embedding.weight' and 2 more are left out: gpt_small does not need them\n");
  std::filesystem::remove(path);
}

TEST(TamingKeys, AKeyWithItsFrontAndWithoutIsRefused) {
  Safetensors file = runtime::read_safetensors(published);
  file.where = "a.safetensors";
  file.tensors["pos_emb"] = ones({1, 16, 32});
  std::vector<std::string> left_out;
  try {
    runtime::from_taming(file, gpt(), left_out);
    ADD_FAILURE();
  } catch (const runtime::Error& wrong) {
    EXPECT_STREQ(wrong.what(), "a.safetensors: holds 'pos_emb' with and without 'transformer.' in front of it");
  }
}

/// The decoding half, read of a file that holds all of both models, and of one that holds the VQGAN alone.
TEST(TamingKeys, TheVqganIsReadBehindItsFront) {
  const tessera_parameter rows[] = {{"quantize.embedding.weight", 2, 0, {2, 3}, 0, "[2, 3]"},
                                    {"decoder.conv_in.bias", 1, 0, {4}, 16, "[4]"}};
  Model model;
  model.name = "half";
  model.parameters = rows;
  const auto keys = [](const Safetensors& file) {
    std::vector<std::string> all;
    for (const auto& [key, tensor] : file.tensors) all.push_back(key);
    return all;
  };
  Safetensors alone;
  for (const std::string key :
       {"quantize.embedding.weight", "decoder.conv_in.bias", "encoder.conv_in.bias", "loss.logvar", "decoder.unknown"})
    alone.tensors[key] = ones({1});
  Safetensors whole;
  for (const auto& [key, tensor] : alone.tensors) whole.tensors["first_stage_model." + key] = tensor;
  whole.tensors["transformer.pos_emb"] = ones({1});
  const std::vector<std::string> expected{"decoder.conv_in.bias", "decoder.unknown", "quantize.embedding.weight"};
  std::vector<std::string> left_out;
  EXPECT_EQ(keys(runtime::from_taming(alone, model, left_out)), expected);
  EXPECT_EQ(left_out, (std::vector<std::string>{"encoder.conv_in.bias", "loss.logvar"}));
  left_out.clear();
  EXPECT_EQ(keys(runtime::from_taming(whole, model, left_out)), expected);
  EXPECT_EQ(left_out.size(), 3U);
}

}  // namespace
}  // namespace tessera::test
