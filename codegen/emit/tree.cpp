#include "codegen/emit/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/error.hpp"

namespace tessera::codegen::tree {

namespace {

constexpr std::size_t columns = 120;

Expr make(Node n) { return std::make_shared<const Node>(std::move(n)); }

int precedence(const Node& n) {
  if (n.kind == Node::Kind::integer && n.integer < 0) return 3;
  if (n.kind == Node::Kind::choose) return -1;
  if (n.kind != Node::Kind::binary) return 10;
  if (n.text == "*" || n.text == "/" || n.text == "%") return 5;
  if (n.text == "+" || n.text == "-") return 4;
  if (n.text == "&&") return 1;
  if (n.text == "||") return 0;
  return 2;  // comparisons
}

std::string number(double value) {
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return "real(" + text + ")";
}

}  // namespace

std::string variable(const std::string& declared) {
  static const std::set<std::string> taken{
      // C++, and what is written before the kernels
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "class", "co_await", "co_return", "co_yield", "compl", "concept", "const", "consteval", "constexpr", "constinit",
      "const_cast", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
      "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
      "protected", "public", "register", "reinterpret_cast", "requires", "return", "short", "signed", "sizeof",
      "static", "static_assert", "static_cast", "std", "struct", "switch", "template", "this", "thread_local", "throw",
      "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
      "wchar_t", "while", "xor", "xor_eq", "real", "vec", "lanes",
      // arguments and loops of every kernel and entry point
      "parameters", "images", "tokens", "labels", "targets", "output_gradients", "factor", "losses", "random", "batch",
      "outputs", "loss", "gradients", "image_gradients", "maps", "magnitudes", "scratch", "moment1", "moment2",
      "velocity", "average", "learning_rate", "learning_rate_corrected", "second_correction", "decay", "gradient_scale",
      "average_kept", "first", "last", "begin", "end", "chunk", "partial", "image", "place", "part", "parts", "share",
      "team", "rest", "mine", "threads", "layer", "pass", "sum", "sums", "all", "value", "row", "column", "rows",
      "tile", "way", "some", "line", "lines", "kept", "held", "epilogue", "transposed", "own", "here", "left",
      "widened", "panel", "panels", "depth", "top", "bottom", "turn", "group", "chunks", "seen", "key_begin", "key_end",
      "at_once", "context", "ready"};
  // Numbered: temporaries, sums, and what is left of an axis.
  const std::string word = declared.substr(0, declared.find_first_of("0123456789"));
  const bool numbered = word.size() < declared.size() && (word == "x" || word == "t" || word == "sum" ||
                                                          word == "most" || word == "row" || word == "pass");
  return numbered || taken.contains(declared) || declared.starts_with("v_") || declared.ends_with("_rest")
             ? declared + "_"
             : declared;
}

Expr name(std::string text) {
  Node n;
  n.text = std::move(text);
  return make(std::move(n));
}
Expr integer(std::int64_t value) {
  Node n;
  n.kind = Node::Kind::integer;
  n.integer = value;
  return make(std::move(n));
}
Expr real(double value) {
  Node n;
  n.kind = Node::Kind::real;
  n.real = value;
  return make(std::move(n));
}
Expr call(std::string function, std::vector<Expr> arguments) {
  Node n;
  n.kind = Node::Kind::call;
  n.text = std::move(function);
  n.operands = std::move(arguments);
  return make(std::move(n));
}
Expr least(Expr a, Expr b) { return call("std::min<std::int64_t>", {std::move(a), std::move(b)}); }
Expr binary(std::string op, Expr a, Expr b) {
  Node n;
  n.kind = Node::Kind::binary;
  n.text = std::move(op);
  n.operands = {std::move(a), std::move(b)};
  return make(std::move(n));
}
Expr index(Expr a, Expr b) {
  Node n;
  n.kind = Node::Kind::index;
  n.operands = {std::move(a), std::move(b)};
  return make(std::move(n));
}
Expr choose(Expr condition, Expr a, Expr b) {
  Node n;
  n.kind = Node::Kind::choose;
  n.operands = {std::move(condition), std::move(a), std::move(b)};
  return make(std::move(n));
}
Expr operator+(Expr a, Expr b) {
  auto zero = [](const Expr& e) { return e->kind == Node::Kind::integer && e->integer == 0; };
  if (zero(a)) return b;
  if (zero(b)) return a;
  if (a->kind == Node::Kind::integer && b->kind == Node::Kind::integer) return integer(a->integer + b->integer);
  return binary("+", std::move(a), std::move(b));
}
Expr operator*(Expr a, std::int64_t factor) {
  if (factor == 0) return integer(0);
  if (factor == 1) return a;
  if (a->kind == Node::Kind::integer) return integer(a->integer * factor);
  return binary("*", std::move(a), integer(factor));
}

namespace {

/// Appends, since an expression's text is otherwise copied once for each level above it.
void append(std::string& out, const Expr& e) {
  const auto inside = [&](const Expr& o, int at_least) {
    const bool enclosed = precedence(*o) < at_least;
    if (enclosed) out += '(';
    append(out, o);
    if (enclosed) out += ')';
  };
  switch (e->kind) {
    case Node::Kind::name:
      out += e->text;
      return;
    case Node::Kind::integer:
      out += std::to_string(e->integer);
      return;
    case Node::Kind::real:
      out += number(e->real);
      return;
    case Node::Kind::index:
      inside(e->operands[0], 9);
      out += '[';
      append(out, e->operands[1]);
      out += ']';
      return;
    case Node::Kind::binary: {
      const int p = precedence(*e);
      inside(e->operands[0], p);
      out += ' ';
      out += e->text;
      out += ' ';
      inside(e->operands[1], p + 1);
      return;
    }
    case Node::Kind::choose:
      inside(e->operands[0], 0);
      out += " ? ";
      inside(e->operands[1], 0);
      out += " : ";
      inside(e->operands[2], 0);
      return;
    case Node::Kind::call:
      break;
  }
  out += e->text;
  out += '(';
  for (std::size_t i = 0; i < e->operands.size(); ++i) {
    if (i) out += ", ";
    append(out, e->operands[i]);
  }
  out += ')';
}

}  // namespace

std::string print(const Expr& e) {
  std::string text;
  append(text, e);
  return text;
}

Statement declare(std::string type, std::string name, Expr value) {
  Statement s;
  s.kind = Statement::Kind::declare;
  s.type = std::move(type);
  s.name = std::move(name);
  s.value = std::move(value);
  return s;
}
Statement assign(std::string name, Expr value) {
  Statement s = declare("", std::move(name), std::move(value));
  s.kind = Statement::Kind::assign;
  return s;
}
Statement evaluate(Expr call) {
  Statement s;
  s.kind = Statement::Kind::evaluate;
  s.value = std::move(call);
  return s;
}
Statement loop(std::string name, Expr from, Expr while_true, std::int64_t step, Block body) {
  return loop("std::int64_t", std::move(name), std::move(from), std::move(while_true), step, std::move(body));
}
Statement loop(std::string type, std::string name, Expr from, Expr while_true, std::int64_t step, Block body) {
  Statement s;
  s.kind = Statement::Kind::loop;
  s.type = std::move(type);
  s.name = std::move(name);
  s.value = std::move(from);
  s.limit = std::move(while_true);
  s.step = step;
  s.body = std::move(body);
  return s;
}
Statement each(std::string function, std::string arguments, Expr first, std::vector<Parameter> parameters, Block body) {
  Statement s;
  s.kind = Statement::Kind::each;
  s.name = std::move(function);
  s.type = std::move(arguments);
  s.value = std::move(first);
  s.parameters = std::move(parameters);
  s.body = std::move(body);
  return s;
}
Statement unroll(std::string name, const Expr& turns, Block body) {
  Statement s = each("unroll", print(turns), nullptr, {{"auto", std::move(name)}}, std::move(body));
  if (s.body.size() == 1 && s.body[0].kind == Statement::Kind::each && s.body[0].name == "unroll" &&
      s.body[0].parameters.size() == 1) {
    Statement inner = std::move(s.body[0]);
    s.type += ", " + inner.type;
    s.parameters.push_back(std::move(inner.parameters[0]));
    s.body = std::move(inner.body);
  }
  return s;
}
Statement lambda(std::string name, std::vector<Parameter> parameters, Block body) {
  Statement s;
  s.kind = Statement::Kind::lambda;
  s.name = std::move(name);
  s.parameters = std::move(parameters);
  s.body = std::move(body);
  return s;
}
Statement lambda_of_constant(std::string name, std::string constant, std::vector<Parameter> parameters, Block body) {
  Statement s = lambda(std::move(name), std::move(parameters), std::move(body));
  s.type = std::move(constant);
  return s;
}
Statement lambda_not_inlined(std::string name, std::vector<Parameter> parameters, Block body) {
  Statement s = lambda(std::move(name), std::move(parameters), std::move(body));
  s.noinline = true;
  return s;
}
Statement when(Expr condition, Block body, Block otherwise) {
  Statement s;
  s.kind = Statement::Kind::when;
  s.value = std::move(condition);
  s.body = std::move(body);
  s.otherwise = std::move(otherwise);
  return s;
}
Statement scope(Block body) {
  Statement s;
  s.kind = Statement::Kind::scope;
  s.body = std::move(body);
  return s;
}
Statement comment(std::string text) {
  Statement s;
  s.kind = Statement::Kind::comment;
  s.name = std::move(text);
  return s;
}
Statement pragma(std::string text) {
  Statement s = comment(std::move(text));
  s.kind = Statement::Kind::pragma;
  return s;
}
Statement give(Expr value) {
  Statement s = evaluate(std::move(value));
  s.kind = Statement::Kind::give;
  return s;
}
Statement blank() { return {}; }

namespace {

class Checker {
 public:
  Checker(const Function& f, const std::set<std::string>& known) : function_(f), known_(known) {}

  void run() {
    for (const Parameter& p : function_.parameters) add(p.name);
    block(function_.body);
  }

 private:
  void add(const std::string& n) {
    if (known_.contains(n) || !names_.insert(n).second)
      throw Error(fmt::format("emitted function {} declares {} twice, or hides it", function_.name, n));
    declared_.push_back(n);
  }
  /// Forgets what has been declared since there were so many.
  void leave(std::size_t declared) {
    for (; declared_.size() > declared; declared_.pop_back()) names_.erase(declared_.back());
  }
  void use(const std::string& n) const {
    const std::string without_arguments = n.substr(0, n.find('<'));
    if (!names_.contains(n) && !known_.contains(n) && !known_.contains(without_arguments) &&
        !n.starts_with("constant<"))
      throw Error(fmt::format("emitted function {} uses {}, which nothing declares", function_.name, n));
  }
  void expression(const Expr& e) const {
    if (!e) return;
    if (e->kind == Node::Kind::name || e->kind == Node::Kind::call) use(e->text);
    for (const Expr& o : e->operands) expression(o);
  }
  /// A variable; or an array, whose extent follows its name, or an element of it.
  static std::string variable_of(const Statement& s) { return s.name.substr(0, s.name.find('[')); }
  void block(const Block& b) {
    const std::size_t outer = declared_.size();
    for (const Statement& s : b) {
      expression(s.value);
      if (s.kind == Statement::Kind::assign || (s.kind == Statement::Kind::each && s.name != "unroll"))
        use(variable_of(s));
      if (s.kind == Statement::Kind::declare || s.kind == Statement::Kind::lambda) add(variable_of(s));
      const std::size_t here = declared_.size();
      if (s.kind == Statement::Kind::loop) add(s.name);
      if (s.kind == Statement::Kind::lambda && !s.type.empty()) add(s.type);
      for (const Parameter& p : s.parameters)
        if (!p.name.empty()) add(p.name);
      expression(s.limit);
      block(s.body);
      block(s.otherwise);
      leave(here);
    }
    leave(outer);
  }

  const Function& function_;
  const std::set<std::string>& known_;
  std::set<std::string> names_;
  std::vector<std::string> declared_;
};

std::string text_of(const Parameter& p) { return p.name.empty() ? p.type : p.type + " " + p.name; }

class Printer {
 public:
  void block(const Block& b) {
    for (const Statement& s : b) statement(s);
  }
  void line(const std::string& text) { out += std::string(2 * depth, ' ') + text + "\n"; }

  /// head(a, b, c)tail, broken after commas where the line would be too long; and behind the parenthesis, where that
  /// takes fewer lines.
  void list(const std::string& head, const std::vector<std::string>& items, const std::string& tail) {
    const std::string indent(2 * depth, ' ');
    const auto filled = [&](const std::string& begin, std::size_t next) {
      std::vector<std::string> lines{begin};
      bool first = true;
      for (std::size_t i = 0; i < items.size(); ++i) {
        std::string item = items[i] + (i + 1 < items.size() ? "," : tail);
        if (!first && lines.back().size() + 1 + item.size() > columns)
          lines.push_back(std::string(next, ' ') + item);
        else
          lines.back() += (first ? "" : " ") + item;
        first = false;
      }
      if (items.empty()) lines.back() += tail;
      return lines;
    };
    std::vector<std::string> lines = filled(indent + head, indent.size() + head.size());
    const std::vector<std::string> behind = filled(indent + "    ", indent.size() + 4);
    const auto too_long = [](const std::vector<std::string>& all) {
      return std::any_of(all.begin(), all.end(), [](const std::string& text) { return text.size() > columns; });
    };
    if (behind.size() + 1 < lines.size() || (too_long(lines) && !too_long(behind))) {
      lines = behind;
      line(head);
    }
    for (const std::string& text : lines) out += text + "\n";
  }

  void statement(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::declare:
        declare(s);
        break;
      case Statement::Kind::assign:
        value(s.name + " = ", s.value);
        break;
      case Statement::Kind::evaluate:
        value("", s.value);
        break;
      case Statement::Kind::give:
        s.value ? value("return ", s.value) : line("return;");
        break;
      case Statement::Kind::comment:
        line("// " + s.name);
        break;
      case Statement::Kind::pragma:
        out += "#pragma " + s.name + "\n";
        break;
      case Statement::Kind::blank:
        out += "\n";
        break;
      case Statement::Kind::scope:
        line("{");
        indented(s.body);
        line("}");
        break;
      case Statement::Kind::when:
        if (s.otherwise.empty()) {
          body("if (" + print(s.value) + ")", s.body);
          break;
        }
        line("if (" + print(s.value) + ") {");
        indented(s.body);
        line("} else {");
        indented(s.otherwise);
        line("}");
        break;
      case Statement::Kind::loop: {
        std::string next = s.step == 1 ? "++" + s.name : fmt::format("{} += {}", s.name, s.step);
        body(fmt::format("for ({} {} = {}; {}; {})", s.type, s.name, print(s.value), print(s.limit), next), s.body);
        break;
      }
      case Statement::Kind::lambda: {
        std::string head;
        for (const Parameter& p : s.parameters)
          head += fmt::format("{}{} {}", head.empty() ? "" : ", ", p.type, p.name);
        if (s.type.empty())
          enclosed(
              fmt::format("const auto {} = [=]({}) {}{{", s.name, head, s.noinline ? "__attribute__((noinline)) " : ""),
              s.body, "};");
        else
          enclosed(fmt::format("const auto {0} = [&]<int {1}>(Constant<{1}>, {2}) __attribute__((always_inline)) {{",
                               s.name, s.type, head),
                   s.body, "};");
        break;
      }
      case Statement::Kind::each: {
        std::string names;
        for (const Parameter& p : s.parameters) names += (names.empty() ? "" : ", ") + text_of(p);
        const std::string function = fmt::format("{}{}(", s.name, s.type.empty() ? "" : "<" + s.type + ">"),
                          first = s.value ? print(s.value) : "",
                          lambda = fmt::format("[&]{} {}{{", names.empty() ? "" : "(" + names + ")",
                                               s.always_inline ? "__attribute__((always_inline)) " : "");
        const std::string head = function + (first.empty() ? "" : first + ", ") + lambda;
        if (first.empty() || 2 * depth + head.size() <= columns) {
          enclosed(head, s.body, "});");
        } else {
          list(function, {first, lambda}, "");
          indented(s.body);
          line("});");
        }
        break;
      }
    }
  }

  std::string out;
  std::size_t depth = 0;

 private:
  void value(const std::string& head, const Expr& e) {
    if (!e) return line(head + ";");
    if (e->kind == Node::Kind::binary && e->text.ends_with("=") && e->text != "==" &&
        2 * depth + print(e).size() + 1 > columns) {
      line(print(e->operands[0]) + " " + e->text);
      return line("    " + print(e->operands[1]) + ";");
    }
    if (e->kind != Node::Kind::call || 2 * depth + head.size() + print(e).size() + 1 <= columns)
      return line(head + print(e) + ";");
    std::vector<std::string> items;
    for (const Expr& o : e->operands) items.push_back(print(o));
    list(head + e->text + "(", items, ");");
  }
  void declare(const Statement& s) {
    const std::string head = s.type + " " + s.name + (s.value ? " = " : "");
    const std::string text = head + (s.value ? print(s.value) : "") + ";  // " + s.note;
    if (!s.note.empty() && 2 * depth + text.size() <= columns) return line(text);
    if (!s.note.empty()) line("// " + s.note);
    value(head, s.value);
  }
  void body(const std::string& head, const Block& b) {
    bool plain = b.size() == 1 && (b[0].kind == Statement::Kind::evaluate || b[0].kind == Statement::Kind::assign);
    if (plain && 2 * depth + head.size() + print(b[0].value).size() + b[0].name.size() + 8 <= columns) {
      std::string text = b[0].kind == Statement::Kind::assign ? b[0].name + " = " : "";
      return line(head + " " + text + print(b[0].value) + ";");
    }
    line(head + " {");
    indented(b);
    line("}");
  }
  /// On one line, where the body is one statement that fits.
  void enclosed(const std::string& head, const Block& b, const std::string& tail) {
    Printer inside;
    inside.block(b);
    const std::string text = inside.out.substr(0, inside.out.find('\n'));
    if (b.size() == 1 && text.size() + 1 == inside.out.size() &&
        2 * depth + head.size() + text.size() + 2 + tail.size() <= columns)
      return line(fmt::format("{} {} {}", head, text, tail));
    line(head);
    indented(b);
    line(tail);
  }
  void indented(const Block& b) {
    ++depth;
    block(b);
    --depth;
  }
};

std::vector<std::string> parameter_texts(const Function& f) {
  std::vector<std::string> items;
  for (const Parameter& p : f.parameters) items.push_back(text_of(p));
  return items;
}

std::string head(const Function& f) {
  return (f.linkage.empty() ? "" : f.linkage + " ") + f.returns + " " + f.name + "(";
}

bool uses(const Expr& e, const std::string& variable) {
  if (!e) return false;
  return (e->kind == Node::Kind::name && e->text == variable) ||
         std::any_of(e->operands.begin(), e->operands.end(), [&](const Expr& o) { return uses(o, variable); });
}

bool calls(const Expr& e, std::string_view begin) {
  if (!e) return false;
  return (e->kind == Node::Kind::call && e->text.starts_with(begin)) ||
         std::any_of(e->operands.begin(), e->operands.end(), [&](const Expr& o) { return calls(o, begin); });
}

}  // namespace

bool uses(const Block& block, const std::string& variable) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& s) {
    return uses(s.value, variable) || uses(s.limit, variable) || uses(s.body, variable) || uses(s.otherwise, variable);
  });
}

bool calls(const Block& block, std::string_view begin) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& s) {
    return calls(s.value, begin) || calls(s.limit, begin) || calls(s.body, begin) || calls(s.otherwise, begin) ||
           (s.kind == Statement::Kind::each && s.name.starts_with(begin));
  });
}

void check(const Function& function, const std::set<std::string>& known) { Checker(function, known).run(); }

std::string print(const Function& f) {
  Printer p;
  if (!f.declared.empty()) p.line("// " + f.declared);
  for (const std::string& c : f.comment) p.line("// " + c);
  p.list((f.noinline ? "[[gnu::noinline]] " : "") + head(f), parameter_texts(f), ") {");
  p.depth = 1;
  p.block(f.body);
  p.depth = 0;
  p.line("}");
  return std::move(p.out);
}

std::string print(const Block& block, std::size_t depth) {
  Printer p;
  p.depth = depth;
  p.block(block);
  return std::move(p.out);
}

std::string print_head(const Function& f) {
  Printer p;
  p.list(head(f), parameter_texts(f), ") {");
  return std::move(p.out);
}

std::string print_declaration(const Function& f) {
  Printer p;
  p.list(head(f), parameter_texts(f), ");");
  return std::move(p.out);
}

}  // namespace tessera::codegen::tree
