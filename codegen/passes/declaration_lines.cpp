#include "codegen/passes/declaration_lines.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Line;
using graph::Module;
using graph::Node;
using graph::Op;
using graph::Output;

namespace {

namespace fs = std::filesystem;

bool in_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

bool begins_word(std::string_view text, std::size_t at, std::string_view word) {
  return text.substr(at, word.size()) == word && (at == 0 || !in_word(text[at - 1])) &&
         (at + word.size() == text.size() || !in_word(text[at + word.size()]));
}

/// The source with spaces in the place of comments and of what literals hold; every line stays where it is.
std::string without_comments(std::string_view source) {
  std::string text(source);
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, text.size()); ++i)
      if (text[i] != '\n') text[i] = ' ';
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::size_t end = i + 1;
    if (source.substr(i, 2) == "//") {
      end = std::min(source.find('\n', i), text.size());
      blank(i, end);
    } else if (source.substr(i, 2) == "/*") {
      end = std::min(source.find("*/", i + 2), text.size()) + 2;
      blank(i, end);
    } else if (c == '"' || (c == '\'' && (i == 0 || !in_word(source[i - 1])))) {  // 1'000 has no literal
      while (end < text.size() && source[end] != c && source[end] != '\n') end += source[end] == '\\' ? 2 : 1;
      blank(i + 1, end++);
    }
    i = end - 1;
  }
  return text;
}

/// What a declaration calls for a node of this op.
std::vector<std::string_view> calls_for(Op op) {
  if (op == Op::einsum) return {"einsum", "linear", "conv2d"};
  if (op == Op::reduce_sum) return {"sum", "mean"};
  if (op == Op::reduce_max) return {"max"};
  return {op_name(op)};
}

class Lookup {
 public:
  explicit Lookup(Graph& graph) : graph_(graph) {
    for (const Module& m : graph.modules)
      if (!m.library) declared_[m.path].push_back(&m);
    for (const Output& o : graph.outputs)
      if (o.kind == Output::Kind::value) given_ = std::max(given_, &std::as_const(graph)[o.node]);
  }

  void run() {
    std::map<std::pair<std::string, Op>, std::vector<Node*>> recorded;
    for (Node& n : graph_.nodes)
      if (!n.operands.empty() && n.op != Op::carry && n.op != Op::carry_out) recorded[{n.path, n.op}].push_back(&n);
    for (const auto& [from, nodes] : recorded) {
      std::string path = from.first, member;
      while (!path.empty() && !declared_.contains(path)) {
        const std::size_t dot = path.rfind('.');
        member = path.substr(dot + 1);  // npos + 1 is 0
        path.resize(dot == path.npos ? 0 : dot);
      }
      if (!declared_.contains(path)) continue;
      const std::vector<std::string_view> names =
          member.empty() ? calls_for(from.second) : std::vector<std::string_view>{member};
      std::vector<Line> lines = lines_of(path, names, Mention::call);
      if (lines.empty() && !member.empty()) lines = lines_of(path, names, Mention::any);
      const bool one_each = member.empty() && lines.size() == nodes.size();
      for (std::size_t i = 0; i < nodes.size(); ++i)
        if (!path.empty() || !lines.empty() || nodes[i] <= given_)
          nodes[i]->line = number_of(one_each ? lines[i] : common(lines, *declared_.at(path).front()));
    }
  }

 private:
  /// Of each mention in the structs at a path.
  std::vector<Line> lines_of(const std::string& path, const std::vector<std::string_view>& names, Mention mention) {
    std::vector<Line> lines;
    for (const Module* m : declared_.at(path)) {
      const auto [source, fresh] = sources_.try_emplace(m->file);
      if (fresh) source->second = text_of_source(m->file);
      for (const std::size_t at : mentions_of(source->second, *m, names, mention))
        lines.push_back(line_of(*m, line_around(source->second, at)));
    }
    return lines;
  }

  /// The line on which all are; the struct alone where there is no such line.
  static Line common(const std::vector<Line>& lines, const Module& module) {
    const auto differs = [&](const Line& l) { return l.text != lines[0].text || l.module != lines[0].module; };
    return lines.empty() || std::any_of(lines.begin(), lines.end(), differs) ? line_of(module, "") : lines[0];
  }

  static Line line_of(const Module& m, std::string text) {
    return {m.name, line_around(fs::path(m.file).filename().string(), 0), std::move(text)};
  }

  int number_of(const Line& line) {
    const auto same = [&](const Line& l) {
      return std::tie(l.module, l.file, l.text) == std::tie(line.module, line.file, line.text);
    };
    const auto known = std::find_if(graph_.lines.begin(), graph_.lines.end(), same);
    const auto number = static_cast<int>(known - graph_.lines.begin());
    if (known == graph_.lines.end()) graph_.lines.push_back(line);
    return number;
  }

  Graph& graph_;
  const Node* given_ = nullptr;                                 // what the model gives; behind it comes the loss
  std::map<std::string, std::vector<const Module*>> declared_;  // by path; not the DSL's own
  std::map<std::string, std::string> sources_;                  // by file
};

}  // namespace

std::string text_of_source(const std::string& file) {
  std::error_code none;
  std::vector<fs::path> tried;
  if (fs::path(file).is_relative())
    for (fs::path folder = fs::read_symlink("/proc/self/exe", none); folder.has_relative_path();)
      tried.push_back((folder = folder.parent_path()) / file);
  tried.emplace_back(file);
  for (const fs::path& path : tried) {
    if (!fs::is_regular_file(path, none)) continue;
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  return "";
}

std::vector<std::size_t> mentions_of(std::string_view source, const Module& module,
                                     const std::vector<std::string_view>& names, Mention mention) {
  constexpr std::string_view macro = "TESSERA_MEMBERS(";
  const std::string text = without_comments(source);
  std::size_t end = 0;  // of the macro's line: compilers do not agree on which one that is, of several
  for (int line = 0; line < module.line && end != text.npos; ++line) end = text.find('\n', end + (line > 0));
  std::size_t begin = text.rfind(macro, end);
  if (begin == text.npos || !begins_word(text, begin + macro.size(), module.name)) return {};
  int open = 0;  // braces behind `begin` that nothing has opened
  while (begin > 0 && open >= 0) --begin, open += (text[begin] == '}') - (text[begin] == '{');
  if (open >= 0) return {};

  std::vector<std::size_t> found;
  std::vector<int> within;  // depths of the structs around
  int depth = 0;
  bool struct_follows = false;
  for (std::size_t i = begin + 1; i < text.size() && depth >= 0; ++i) {
    const char c = text[i];
    if (begins_word(text, i, "struct")) struct_follows = true;
    if (c == ';') struct_follows = false;
    if (c == '{' && std::exchange(struct_follows, false)) within.push_back(depth);
    depth += (c == '{') - (c == '}');
    if (c == '}' && !within.empty() && depth == within.back()) within.pop_back();
    if (!within.empty() || depth == 0) continue;
    for (const std::string_view name : names)
      if (const std::size_t next = i + name.size(); begins_word(text, i, name) && next < text.size())
        if (mention == Mention::any || text[next] == '(' || text[next] == '<') found.push_back(i);
  }
  return found;
}

std::string line_around(std::string_view source, std::size_t at) {
  const std::size_t before = source.rfind('\n', at), begin = before == source.npos ? 0 : before + 1;
  std::string line(source.substr(begin, std::min(source.find('\n', at), source.size()) - begin));
  if (const std::size_t body = line.rfind("{ ", at - begin); body != line.npos) {
    line.erase(0, body + 1);
    if (line.ends_with(" }")) line.resize(line.size() - 2);
  }
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
  line.erase(line.find_last_not_of(" \\") + 1);
  return line;
}

Graph with_declaration_lines(Graph graph) {
  Lookup(graph).run();
  graph.modules.clear();
  return graph;
}

}  // namespace tessera::codegen
