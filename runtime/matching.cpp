#include "runtime/matching.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/parallel.hpp"
#include "runtime/positions.hpp"

namespace tessera::runtime {
namespace {

constexpr std::size_t most_lines = 10;
constexpr std::size_t most_advised = 3;

/// The names in "[D=192, 3]": "D" and "".
std::vector<std::string> names_of(const std::string& named_shape) {
  std::vector<std::string> names;
  std::string dim;
  for (const char c : named_shape.substr(1)) {
    if (c == ' ') continue;
    if (c != ',' && c != ']') {
      dim += c;
      continue;
    }
    const std::size_t equals = dim.find('=');
    names.push_back(equals == std::string::npos ? "" : dim.substr(0, equals));
    dim.clear();
  }
  return names;
}

/// A found shape in the names of the needed one, where it has as many dims.
std::string named(const Shape& found, std::vector<std::string> names, bool turned) {
  if (names.size() != found.size()) return printed(found);
  if (turned) std::ranges::reverse(names);
  std::string out = "[";
  for (std::size_t i = 0; i < found.size(); ++i)
    out += text(i ? ", " : "", names[i], names[i].empty() ? "" : "=", found[i]);
  return out + "]";
}

/// What may have happened to a tensor of another shape.
const char* guess(const Shape& found, const Shape& needed) {
  if (std::ranges::equal(found, Shape(needed.rbegin(), needed.rend()))) return " (transposed?)";
  if (std::ranges::is_permutation(found, needed)) return " (transposed? the sizes are the same)";
  if (elements(found) == elements(needed)) return " (reshaped? it holds as many numbers)";
  return "";
}

bool matches(const std::string& pattern, const std::string& key) {
  return pattern.ends_with('*') ? key.starts_with(pattern.substr(0, pattern.size() - 1)) : key == pattern;
}

/// In blocks without a way out, which compilers vectorise.
bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t exponent = 0x7f800000;
  while (!values.empty()) {
    const std::span<const float> block = values.first(std::min<std::size_t>(values.size(), 4096));
    std::uint32_t wrong = 0;
    for (const float value : block) wrong |= (std::bit_cast<std::uint32_t>(value) & exponent) == exponent ? 1 : 0;
    if (wrong) return false;
    values = values.subspan(block.size());
  }
  return true;
}

/// "head.*" of "head.weight"
std::string family(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(0, dot) + ".*";
}

}  // namespace

Shape shape_of(const tessera_parameter& parameter) { return {parameter.shape, parameter.shape + parameter.rank}; }

Matching::Matching(const Safetensors& file, const Model& model, Allowance allowance)
    : file_(file), model_(model), allowance_(std::move(allowance)) {}

bool Matching::skipped(const std::string& key) {
  bool any = false;
  for (const std::string& pattern : allowance_.skip)
    if (matches(pattern, key)) any = true, used_.insert(pattern);
  return any;
}

void Matching::take(const std::string& prefix, float* numbers) {
  // Most tensors become parameters as they are: threads read them before any difference is told.
  struct Read {
    const Tensor* tensor = nullptr;  ///< null: there is none that fits as it is
    std::span<float> to{};
    bool finite = false;
  };
  std::vector<Read> reads(model_.parameters.size());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const tessera_parameter& parameter = model_.parameters[i];
    const std::string key = prefix + parameter.name;
    const auto found = file_.tensors.find(key);
    if (found == file_.tensors.end() || skipped(key) || !fit(parameter, key, found->second).as_it_is) continue;
    reads[i].tensor = &found->second;
    reads[i].to = {numbers + parameter.offset, static_cast<std::size_t>(elements(found->second.shape))};
  }
  parallel_for(std::ssize(reads), [&](std::int64_t i) {
    Read& read = reads[static_cast<std::size_t>(i)];
    if (!read.tensor) return;
    read.tensor->read(read.to);
    read.finite = all_finite(read.to);
  });

  for (std::size_t i = 0; i < reads.size(); ++i) {
    const tessera_parameter& parameter = model_.parameters[i];
    const std::string key = prefix + parameter.name;
    asked_.insert(key);
    if (reads[i].finite) continue;
    if (skipped(key)) {
      notes_.push_back(text(key, " ", parameter.named_shape, " keeps its starting value"));
    } else if (const auto found = file_.tensors.find(key); found != file_.tensors.end()) {
      compare(parameter, key, found->second, numbers + parameter.offset);
    } else {
      missing_.push_back(text(printable(key), " ", parameter.named_shape));
      keys_.push_back(key);
    }
  }
}

Matching::Fit Matching::fit(const tessera_parameter& parameter, const std::string& key, const Tensor& tensor) const {
  Fit fit;
  const Shape needed = shape_of(parameter);
  fit.counts = parameter.rank == 0 && (tensor.dtype == "I64" || tensor.dtype == "I32" || tensor.dtype == "U8");
  fit.table = is_position_table(key, tensor.shape, needed)   ? Table::tokens
              : is_relative_table(key, tensor.shape, needed) ? Table::ways
              : is_position_map(key, tensor.shape, needed)   ? Table::map
              : is_distance_table(key, tensor.shape, needed) ? Table::distances
                                                             : Table::none;
  const std::optional<Grid> grid = grid_of(file_);
  const bool told = fit.table == Table::tokens || fit.table == Table::ways;  // of these, shapes do not tell the grid
  fit.other_grid = allowance_.resample && fit.table != Table::none &&
                   (tensor.shape != needed || (told && grid.value_or(model_.patches) != model_.patches));
  const auto resampled = [&]() -> std::optional<Resampling> {
    if (fit.table == Table::map) return Resampling{0, {tensor.shape[1], tensor.shape[2]}, {needed[1], needed[2]}};
    if (fit.table == Table::distances) return Resampling{0, {tensor.shape[0], 1}, {needed[0], 1}};
    const std::size_t tokens = needed.size() - 2;
    const auto of_tokens = fit.table == Table::ways ? relative_resampling : resampling;
    return of_tokens(tensor.shape[tokens], needed[tokens], model_.patches, grid);
  };
  if (fit.other_grid) fit.how = resampled();
  fit.as_it_is = tensor.is_real() && tensor.shape == needed && !fit.how;
  return fit;
}

void Matching::compare(const tessera_parameter& parameter, const std::string& key, const Tensor& tensor,
                       float* numbers) {
  const auto differs = [&](const auto&... how) {
    differ_.push_back(text(printable(key), " ", how...));
    keys_.push_back(key);
  };
  const auto [counts, other_grid, table, how, as_it_is] = fit(parameter, key, tensor);
  if (!tensor.is_real() && !counts) return differs("holds ", tensor.dtype, ", where F32, F16, BF16 or F64 is needed");
  const Shape needed = shape_of(parameter);
  if (tensor.shape != needed && !how) {
    const bool turned = std::ranges::equal(tensor.shape, Shape(needed.rbegin(), needed.rend()));
    return differs("is ", named(tensor.shape, names_of(parameter.named_shape), turned), ", where ",
                   parameter.named_shape, " is needed",
                   !other_grid            ? guess(tensor.shape, needed)
                   : table == Table::ways ? " (no grid of patches has so many distances)"
                                          : " (no grid of patches has so many tokens)");
  }
  std::vector<float> values;
  if (counts)
    values = {static_cast<float>(tensor.integers()[0])};
  else
    values = tensor.floats();
  if (const auto wrong = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
      wrong != values.end()) {
    const double exact = tensor.doubles()[static_cast<std::size_t>(wrong - values.begin())];
    return differs("holds ", exact, std::isfinite(exact) ? ", too large for F32" : ", which is no finite number");
  }
  if (how && table == Table::distances) {
    values = resample_distances(values, how->from.rows, how->to.rows);
    notes_.push_back(text(key, " is resampled (linear) from ", how->from.rows, " to ", how->to.rows, " distances"));
  } else if (how) {
    const bool relative = table == Table::ways;
    values = (relative ? resample_relative : resample)(values, *how);
    const auto kept = [&](const char* where) {
      return how->kept ? text(", ", how->kept, how->kept == 1 ? " row " : " rows ", where, " kept") : "";
    };
    notes_.push_back(text(key, " is resampled (", relative ? "linear" : "bicubic", ") from ", how->from.rows, "x",
                          how->from.columns, " to ", how->to.rows, "x", how->to.columns, " patches",
                          kept(relative ? "behind" : "in front")));
  }
  std::ranges::copy(values, numbers);
}

/// What may be done about the differences; empty where nothing comes to mind.
std::string Matching::advice() const {
  // Names that only begin otherwise: "module." of a wrapper, say.
  for (const auto& [name, tensor] : file_.tensors) {
    if (keys_.empty() || file_.has(keys_.front()) || !name.ends_with("." + keys_.front())) continue;
    const std::string front = name.substr(0, name.size() - keys_.front().size());
    if (std::ranges::all_of(keys_, [&](const std::string& key) { return file_.has(front + key); }))
      return text("its names begin with ", printable(front), ", which those of ", model_.name, " do not");
  }
  // Where most differs it is another model's file.
  if (!allowance_.skipping || keys_.empty() || (asked_.size() > 2 && keys_.size() * 2 > asked_.size())) return "";
  std::set<std::string> families;
  for (const std::string& key : keys_) families.insert(family(key));
  if (families.size() > most_advised)
    return "--skip KEY leaves a parameter at its starting value, * ends a part of a key";
  std::string options;
  for (const std::string& pattern : families) options += text(options.empty() ? "" : " ", "--skip '", pattern, "'");
  return options + " leaves what does not fit at its starting values";
}

void Matching::finish() {
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : file_.tensors)
    if (!asked_.contains(name) && !skipped(name)) unknown.push_back(text(printable(name), " ", printed(tensor.shape)));
  for (const std::string& pattern : allowance_.skip)
    if (!used_.contains(pattern)) refuse(text("neither has anything that --skip ", printable(pattern), " could mean"));

  const std::size_t count = other_.size() + missing_.size() + differ_.size() + unknown.size();
  if (count == 0) return;
  const std::string further = advice(), head = text(file_.where, " does not fit ", model_.name, ": ");
  if (count == 1) {
    const std::string rest = further.empty() ? "" : text(" (", further, ")");
    if (!missing_.empty()) fail(head, missing_[0], " is missing", rest);
    if (!unknown.empty()) fail(head, "it holds ", unknown[0], ", which ", model_.name, " does not have", rest);
    fail(head, other_.empty() ? differ_[0] : other_[0], rest);
  }
  std::string list = text(head, count, " differences");
  const auto add = [&](const std::string& title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    list += text("\n  ", title, " (", lines.size(), "):");
    for (std::size_t i = 0; i < std::min(lines.size(), most_lines); ++i) list += "\n    " + lines[i];
    if (lines.size() > most_lines) list += text("\n    and ", lines.size() - most_lines, " more");
  };
  add("the file as a whole", other_);
  add("missing", missing_);
  add("of another shape or type", differ_);
  add("unknown to " + model_.name, unknown);
  fail(list, further.empty() ? "" : "\n  " + further);
}

}  // namespace tessera::runtime
