// Passes: what rewrites a value (a graph, the kernels of a program) before the next stage reads it, in lists.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/error.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/verify.hpp"

namespace tessera::codegen {

/// `Value` has verify(value) and print(value).
template <class Value>
struct PassOver {
  std::string_view name;  ///< for --disable-pass
  std::string_view does;  ///< a line for --list-passes
  std::function<bool(const Value&)> applies;
  std::function<void(Value&)> run;
  bool required = false;     ///< what comes behind it relies on it: it cannot be left out
  std::string_view takes{};  ///< what --pass-option NAME=VALUE may say: "on", "CTAS"; "": nothing
};

struct PassOptions {
  std::set<std::string, std::less<>> disabled{};             ///< names of passes that are left out
  std::map<std::string, std::string, std::less<>> values{};  ///< by name of a pass that takes one
  /// Called with the value's text behind each pass that has run; else nothing is printed.
  std::function<void(std::string_view pass, const std::string& text)> after = nullptr;
};

/// Runs those that apply, in order, and verifies the value behind each: what that throws names the pass.
template <class Value>
void run_passes(Value& value, const std::vector<PassOver<Value>>& passes, const PassOptions& options) {
  for (const PassOver<Value>& pass : passes) {
    if (options.disabled.contains(pass.name) || !pass.applies(value)) continue;
    pass.run(value);
    try {
      verify(value);
    } catch (const Error& error) {
      throw Error("behind the pass " + std::string(pass.name) + ", " + error.what());
    }
    if (options.after) options.after(pass.name, print(value));
  }
}

/// A list of passes as --list-passes shows it, whatever they are over.
struct PassList {
  struct Row {
    std::string_view name, does;
    bool required = false;
    std::string_view takes{};
  };
  std::string_view over;  ///< "the kernels of a program for a CPU"
  std::vector<Row> rows;

  template <class Value>
  PassList(std::string_view what, const std::vector<PassOver<Value>>& passes) : over(what) {
    for (const PassOver<Value>& pass : passes) rows.push_back({pass.name, pass.does, pass.required, pass.takes});
  }
};

/// Throws Error with one sentence where a name is that of no pass of these lists, or of one that is required or that
/// takes no value.
void check_options(const PassOptions& options, const std::vector<PassList>& lists);

}  // namespace tessera::codegen
