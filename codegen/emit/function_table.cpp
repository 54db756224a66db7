#include "codegen/emit/function_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tessera::codegen {

namespace {

/// Numbers what a function declares, in that order. A name stands for one thing alone: tree::check sees to it that
/// nothing is declared that the file knows of, too.
class Numbered {
 public:
  void run(tree::Function& f) {
    f.declared.clear();
    f.comment.clear();
    for (tree::Parameter& p : f.parameters) declare(p.name);
    block(f.body);
  }

 private:
  void declare(std::string& name) {
    // The printer breaks lines by their length: numbers of one width, whatever the names were.
    const std::size_t end = std::min(name.find('['), name.size());  // of an array's, before its extent
    name.replace(0, end,
                 numbers_.try_emplace(name.substr(0, end), fmt::format("@{:04}", numbers_.size())).first->second);
  }
  void use(std::string& name) const {
    const std::size_t end = std::min(name.find('['), name.size());
    if (const auto at = numbers_.find(name.substr(0, end)); at != numbers_.end()) name.replace(0, end, at->second);
  }
  tree::Expr renamed(const tree::Expr& e) const {
    if (!e) return e;
    tree::Node n = *e;
    if (n.kind == tree::Node::Kind::name || n.kind == tree::Node::Kind::call) use(n.text);
    for (tree::Expr& operand : n.operands) operand = renamed(operand);
    return std::make_shared<const tree::Node>(std::move(n));
  }
  void block(tree::Block& b) {
    std::erase_if(b, [](const tree::Statement& s) { return s.kind == tree::Statement::Kind::comment; });
    for (tree::Statement& s : b) {
      using Kind = tree::Statement::Kind;
      s.value = renamed(s.value);
      if (s.kind == Kind::assign) use(s.name);
      if (s.kind == Kind::declare || s.kind == Kind::lambda || s.kind == Kind::loop) declare(s.name);
      for (tree::Parameter& p : s.parameters)
        if (!p.name.empty()) declare(p.name);
      s.limit = renamed(s.limit);
      block(s.body);
      block(s.otherwise);
    }
  }

  std::map<std::string, std::string> numbers_;
};

/// A name whose words that are numbers are all the same.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < name.size(); begin = end + 1) {
    end = std::min(name.find('_', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    text += "_" + (word.find_first_not_of("0123456789") == std::string::npos ? "0" : word);
  }
  return text;
}

}  // namespace

std::string text_up_to_names(tree::Function f) {
  f.name = without_numbers(f.name);
  Numbered().run(f);
  return tree::print(f);
}

std::string FunctionTable::place(tree::Function f, const std::string& suffix) {
  const std::string given = f.name;
  tree::Function unnamed = f;
  unnamed.name = "@";
  unnamed.declared.clear();
  std::vector<std::string> keys;
  if (share_ == Share::all)
    keys = {text_up_to_names(std::move(unnamed))};
  else
    keys = {tree::print(unnamed), text_up_to_names(f)};
  for (const std::string& key : keys)
    if (auto at = by_text_.find(key); at != by_text_.end()) {
      Placed& placed = placed_[at->second];
      placed.given.insert(given);
      return standing_[given + suffix] = placed.function.name;
    }
  if (names_.contains(f.name)) f.name = given + suffix;
  for (int i = 2; names_.contains(f.name); ++i) f.name = fmt::format("{}_{}", given, i);
  names_.insert(f.name);
  for (std::string& key : keys) by_text_[std::move(key)] = placed_.size();
  placed_.push_back({std::move(f), {given}});
  return standing_[given + suffix] = placed_.back().function.name;
}

bool FunctionTable::calls(std::string_view begin) const {
  return std::any_of(placed_.begin(), placed_.end(),
                     [&](const Placed& p) { return tree::calls(p.function.body, begin); });
}

bool FunctionTable::has_noinline() const {
  return std::any_of(placed_.begin(), placed_.end(), [](const Placed& p) { return p.function.noinline; });
}

std::string FunctionTable::print() const {
  std::string out;
  for (const auto& [function, given] : placed_) {
    tree::Function f = function;
    if (given.size() > 1)
      f.comment.push_back(fmt::format("for {} kernels of the plan, of which this is the first", given.size()));
    out += "\n" + tree::print(f);
  }
  return out;
}

}  // namespace tessera::codegen
