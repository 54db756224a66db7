// Metadata of files of somebody else's, field by field.
#pragma once

#include <charconv>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// Reads metadata of which no field is taken without bounds: whoever wrote the file could write anything. Refers to
/// what it reads. Errors name the file and the field.
class Metadata {
 public:
  using Fields = std::map<std::string, std::string>;

  explicit Metadata(const Safetensors& file) : Metadata(file.metadata, file.where, "checkpoint") {}
  /// `what` the file is, for errors.
  Metadata(const Fields& fields, std::string where, const char* what)
      : fields_(fields), where_(std::move(where)), what_(what) {}

  /// Throws an Error where there is no such field, or a zero byte in it.
  const std::string& text(const std::string& key) const {
    const auto found = fields_.find(key);
    if (found == fields_.end()) fail(where_, ": the ", what_, " does not say its '", key, "'");
    // Where it names a file, that would end there; where ranks share it, another field would begin.
    demand(found->second.find('\0') == std::string::npos, key);
    return found->second;
  }
  /// A number from `least` to `most`; throws an Error for all else, as for what is not a number or has more behind it.
  template <class Number>
  Number number(const std::string& key, Number least, Number most) const {
    const std::string& digits = text(key);
    Number value{};
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // Written so that what is not a number is refused as well.
    demand(failed == std::errc{} && end == digits.data() + digits.size() && value >= least && value <= most, key);
    return value;
  }
  /// Throws an Error where the field is not sound beside the others.
  void demand(bool sound, const std::string& key) const {
    if (!sound) fail(where_, ": the ", what_, "'s '", key, "' is damaged");
  }

 private:
  const Fields& fields_;
  std::string where_;
  const char* what_;
};

}  // namespace tessera::runtime
