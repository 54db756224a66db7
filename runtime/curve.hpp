// The curve of a training run: how loss and accuracy went.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::runtime {

/// One row: means over the training steps since the row before, and the test results where they were measured.
struct CurveRow {
  std::int64_t step = 0;   ///< training steps done
  std::int64_t epoch = 0;  ///< the epoch they belong to, counted from 1
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;

  bool operator==(const CurveRow&) const = default;
};

using Curve = std::vector<CurveRow>;

/// Comma-separated values with a line of names. Numbers have six digits, so rows made of `rounded` numbers are read
/// back exactly.
std::string curve_csv(std::span<const CurveRow> rows);

/// Reads what curve_csv wrote; throws an Error that names `where` and the line.
Curve parse_curve_csv(std::string_view csv, const std::string& where);

/// Draws loss and accuracy over the steps as two panels. `epoch_steps` are the steps of one epoch, for the marks on the
/// axis.
std::string curve_svg(std::span<const CurveRow> rows, const std::string& title, std::int64_t epoch_steps);

/// The losses alone, as a picture with another name for them.
std::string loss_panel(std::span<const CurveRow> rows, const std::string& name, std::int64_t epoch_steps);

/// The same panels as two pictures without a title: what a page puts side by side or, on a phone, one below the other.
std::vector<std::string> curve_panels(std::span<const CurveRow> rows, std::int64_t epoch_steps);

}  // namespace tessera::runtime
