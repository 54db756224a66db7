#include "runtime/curve.hpp"

#include <charconv>

#include "runtime/error.hpp"
#include "runtime/numbers.hpp"

namespace tessera::runtime {
namespace {

constexpr std::string_view names = "step,epoch,train_loss,train_accuracy,test_loss,test_accuracy";

template <class Number>
bool read(std::string_view field, Number& value) {
  const auto [end, failed] = std::from_chars(field.data(), field.data() + field.size(), value);
  return failed == std::errc{} && end == field.data() + field.size();
}

bool read(std::string_view field, std::optional<double>& value) {
  return field.empty() || read(field, value.emplace());
}

std::string_view cut(std::string_view& rest, char at) {
  const std::size_t end = rest.find(at);
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return field;
}

}  // namespace

std::string curve_csv(std::span<const CurveRow> rows) {
  std::string csv(names);
  csv += '\n';
  const auto optional = [](const std::optional<double>& value) { return value ? shortest(*value) : std::string(); };
  for (const CurveRow& row : rows)
    csv += text(row.step, ',', row.epoch, ',', shortest(row.train_loss), ',', shortest(row.train_accuracy), ',',
                optional(row.test_loss), ',', optional(row.test_accuracy), '\n');
  return csv;
}

Curve parse_curve_csv(std::string_view csv, const std::string& where) {
  if (cut(csv, '\n') != names) fail(where, ": the curve does not begin with ", names);
  Curve rows;
  for (int line = 2; !csv.empty(); ++line) {
    std::string_view rest = cut(csv, '\n');
    CurveRow& row = rows.emplace_back();
    const bool good = read(cut(rest, ','), row.step) && read(cut(rest, ','), row.epoch) &&
                      read(cut(rest, ','), row.train_loss) && read(cut(rest, ','), row.train_accuracy) &&
                      read(cut(rest, ','), row.test_loss) && read(cut(rest, ','), row.test_accuracy) && rest.empty();
    if (!good) fail(where, ": line ", line, " of the curve is damaged");
  }
  return rows;
}

}  // namespace tessera::runtime
