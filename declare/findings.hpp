// What is found of a checkpoint's model, part by part, and what each part implies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "declare/declare.hpp"
#include "declare/header_text.hpp"

namespace tessera::declare {

struct Findings {
  /// Begins with what the configuration, or the name of the architecture, tells. Both must outlive this.
  Findings(const Checkpoint& checkpoint, const Config& config);

  const Checkpoint& checkpoint;
  const Config& config;
  std::map<std::string, std::string> facts;        ///< by the words of facts.txt
  Model model;                                     ///< as far as it is found
  std::map<std::string, runtime::Shape> expected;  ///< of each key that the declaration will have
  std::vector<std::string> assumptions;            ///< a sentence each

  std::array<std::int64_t, 2> image{};               ///< height, width
  std::int64_t width = 0, channels = 0;              ///< of the model; of a picture
  std::int64_t height = 0, across = 0, patches = 0;  ///< of a patch; how many there are
  std::int64_t front = 0;                            ///< tokens before the patches
  std::int64_t heads = 0, head = 0, inner = 0;       ///< how many, and how wide one is; the MLP's hidden width
  int depth = 0;                                     ///< blocks
  std::string first_norm;                            ///< the key of the first block's first norm
  bool rms = false, scaled = false;                  ///< norms have no bias; branches have factors
  bool gated = false, separate_gate = false;         ///< the MLP has a gate: in one map with it, or a map of its own
  bool is_cait = false;                              ///< the class token comes after the blocks of the patches

  std::string library() const { return checkpoint.library(); }
  bool has(const std::string& key) const { return checkpoint.has(key); }
  std::string named(const std::string& key) const { return checkpoint.named(key); }
  /// Whether images and texts were trained together, as the library's name or the architecture's says.
  bool trained_with_texts() const;
  /// Throws a runtime::Error where the key is missing, or is of another rank.
  const runtime::Shape& shape(const std::string& key, std::size_t rank) const;
  std::string fact(const std::string& word, const std::string& otherwise) const;

  void assume(const std::string& sentence) { assumptions.push_back(sentence); }
  /// Of VitSpec.
  void field(const std::string& name, const std::string& value) { model.fields[name] = value; }
  void field(const std::string& name, std::int64_t value, std::int64_t otherwise) {
    if (value != otherwise) field(name, std::to_string(value));
  }
  void expect(const std::string& key, runtime::Shape of) { expected[key] = std::move(of); }
  void linear(const std::string& key, std::int64_t in, std::int64_t out, bool bias = true);
  void norm(const std::string& key, std::int64_t of);

 private:
  void assume_usual();
};

}  // namespace tessera::declare
