// Training as a terminal shows it: where the run is, how fast, how long still, and its curves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/curve.hpp"

namespace tessera::runtime {

/// Where a run is.
struct Now {
  std::int64_t epoch = 0, epochs = 0;  ///< the running one, counted from 1, and how many there are
  std::int64_t seen = 0, images = 0;   ///< images of this epoch: done, and in all
  std::int64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy{};   ///< none: of a model that does not classify
  std::span<const CurveRow> curve{};  ///< so far
};

/// What can be shown, and where.
struct Screen {
  int columns = 80, rows = 24;
  bool unicode = true;  ///< Braille patterns may be written, which curves are drawn with
  bool colours = true;
};

/// The screen behind standard output, as the terminal and the environment (LC_ALL, LC_CTYPE, LANG, NO_COLOR, TERM) say.
Screen this_screen();

/// "accuracy 96.2%  ", or "" of a model that does not classify.
std::string accuracy_text(const Now& now);

/// "epoch 2/5  [====    ]  loss 0.1234  accuracy 96.2%  12,345 images/s  0:12 left", no longer than `columns`.
std::string bar(const Now& now, double rate, double left, int columns);

/// Lines of no more than the screen's columns, fewer than its rows: the bar, what the last test said, and where there
/// is room two plots over the steps, of loss and accuracy, of training (dots) and of the tests (bold, in another
/// colour). `rate` in images a second, `left` in seconds.
std::vector<std::string> live_view(const Now& now, double rate, double left, const Screen& screen);

}  // namespace tessera::runtime
