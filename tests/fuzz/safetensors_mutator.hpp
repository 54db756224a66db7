// Mutants of safetensors files: fields of the metadata, tensors' types, shapes and places, their numbers; the length of
// the header is mended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tests/fuzz/random.hpp"

namespace tessera::test {

/// Changes one thing of the header. `fields` are those of the metadata.
inline void change_header(nlohmann::json& header, std::span<const char* const> fields, Choices& choices) {
  using Json = nlohmann::json;
  Json& metadata = header["__metadata__"];
  if (choices.below(4) > 0) {
    const std::string field = choices.of(fields);
    switch (choices.below(8)) {
      case 0:
        metadata.erase(field);
        break;
      case 1:
        metadata[field] = metadata.value(choices.of(fields), "");
        break;
      case 2:
        metadata[field] = metadata.value(field, "") + choices.number();
        break;
      case 3:
        metadata[field] = 1;
        break;
      case 4: {  // a piece of the text
        const std::string old = metadata.value(field, "");
        std::string text = old.substr(0, choices.below(old.size() + 1));
        if (choices.one_in(2)) text += choices.number() + old.substr(std::min(old.size(), text.size() + 1));
        metadata[field] = text;
        break;
      }
      default:
        metadata[field] = choices.number();
    }
    return;
  }
  if (header.size() < 2) return;
  auto entry = std::next(header.begin(), static_cast<std::ptrdiff_t>(choices.below(header.size())));
  if (!entry->is_object() || !entry->contains("shape")) return;
  static const char* const types[] = {"F32", "F16", "BF16", "F64", "I64", "I32", "U8", "F8", ""};
  Json& shape = (*entry)["shape"];
  switch (choices.below(7)) {
    case 0:
      (*entry)["dtype"] = choices.of(types);
      break;
    case 1:
      (*entry)["data_offsets"][choices.below(2)] = choices.size();
      break;
    case 2:
      shape.push_back(choices.size());
      break;
    case 3:
      if (shape.is_array() && !shape.empty()) shape[choices.below(shape.size())] = choices.size();
      break;
    case 4: {
      const Json copy = *entry;
      header["optimizer.m." + entry.key()] = copy;
      break;
    }
    case 5: {  // as many numbers in another shape
      if (!shape.is_array() || shape.empty()) break;
      const Json first = shape[0];
      shape.erase(shape.begin());
      shape.push_back(choices.one_in(2) ? first : Json(1));
      break;
    }
    default:
      header.erase(entry.key());
  }
}

/// A mutant of the file in `data`, of at most `most` bytes; its size.
inline std::size_t mutate_safetensors(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                                      std::span<const char* const> fields) {
  using Json = nlohmann::json;
  Choices choices(seed);
  std::uint64_t length = 0;
  if (size >= 8) std::memcpy(&length, data, 8);
  if (choices.one_in(16) || size < 8 || length > size - 8) return LLVMFuzzerMutate(data, size, most);
  Json header = Json::parse(data + 8, data + 8 + length, nullptr, false);
  if (!header.is_object() || !header.value("__metadata__", Json::object()).is_object())
    return LLVMFuzzerMutate(data, size, most);
  std::string numbers(reinterpret_cast<char*>(data) + 8 + length, size - 8 - length);
  if (choices.one_in(4) && !numbers.empty()) {
    for (std::size_t times = 1 + choices.below(8); times > 0; --times)
      numbers[choices.below(numbers.size())] = static_cast<char>(choices.below(256));
  } else {
    try {
      for (std::size_t times = 1 + choices.below(3); times > 0; --times) change_header(header, fields, choices);
    } catch (const Json::exception&) {  // two changes that do not go together
    }
  }
  if (choices.one_in(16)) numbers.resize(choices.below(numbers.size() + 9));
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  length = text.size();
  std::string file(reinterpret_cast<char*>(&length), 8);
  file += text + numbers;
  if (file.size() > most) return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

}  // namespace tessera::test
