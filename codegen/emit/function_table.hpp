// The functions of an emitted file: text that repeats another's up to names stands once.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/tree.hpp"

namespace tessera::codegen {

/// The same for two functions that differ in nothing but comments, the names of what they declare, and in which
/// elements of lists their own names speak of: "heads_0_forward" and "heads_11_forward" may give the same.
std::string text_up_to_names(tree::Function f);

/// Deduplicates functions while a file is made, in the order in which they are first asked for.
class FunctionTable {
 public:
  enum class Share {
    all,       ///< whatever repeats a text up to names
    of_a_list  ///< of those that differ in comments and names, the elements of one list alone: profilers tell by names
  };
  explicit FunctionTable(Share share) : share_(share) {}

  /// The name under which the function stands in the file: its own, unless that is taken, or that of an earlier one
  /// that it repeats. Where another function has its name, `suffix` and, if need be, a number go behind it.
  std::string place(tree::Function f, const std::string& suffix);
  const std::set<std::string>& names() const { return names_; }
  /// The name and suffix of everything that was asked for -> the name under which it stands.
  const std::map<std::string, std::string>& standing() const { return standing_; }
  /// Whether one of them calls a function whose name begins so.
  bool calls(std::string_view begin) const;
  bool has_noinline() const;
  /// All of them; one that stands for others says so.
  std::string print() const;

 private:
  struct Placed {
    tree::Function function;
    std::set<std::string> given;  ///< the plan's names of it
  };
  Share share_;
  std::vector<Placed> placed_;
  std::map<std::string, std::size_t> by_text_;
  std::map<std::string, std::string> standing_;
  std::set<std::string> names_;
};

}  // namespace tessera::codegen
