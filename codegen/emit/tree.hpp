// The target tree: a small C++/CUDA statement tree. Back ends build it; the printer lays it out as clang-format would,
// and dies on a name that nobody declared.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::codegen::tree {

struct Node;
/// An expression. Cheap to copy.
using Expr = std::shared_ptr<const Node>;

struct Node {
  enum class Kind : std::uint8_t { name, integer, real, call, binary, index, choose } kind = Kind::name;
  std::string text;  ///< a name, a function, an operator
  std::int64_t integer = 0;
  double real = 0;
  std::vector<Expr> operands;
};

Expr name(std::string text);
Expr integer(std::int64_t value);
Expr real(double value);
Expr call(std::string function, std::vector<Expr> arguments);
Expr binary(std::string op, Expr a, Expr b);
/// The lesser of two integers.
Expr least(Expr a, Expr b);
/// condition ? a : b
Expr choose(Expr condition, Expr a, Expr b);
/// a[b]
Expr index(Expr a, Expr b);
/// a + b and a * b, with 0 and 1 left out.
Expr operator+(Expr a, Expr b);
Expr operator*(Expr a, std::int64_t factor);

/// A name of the declaration's as a variable: one that emitted code needs for itself (a keyword, "batch", "x1") gets an
/// underscore behind it.
std::string variable(const std::string& declared);

std::string print(const Expr& e);

struct Parameter {
  std::string type, name;
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind : std::uint8_t {
    declare,
    assign,
    evaluate,
    loop,
    each,
    lambda,
    when,
    scope,
    comment,
    pragma,
    give,
    blank
  } kind = Kind::blank;
  std::string
      type;  ///< of a declaration, or of a loop's variable; each: template arguments, "6, 4"; lambda: its constant
  std::string name;  ///< declared or assigned variable or element; loop variable; comment, pragma; each: the function
  Expr value;        ///< initial value, assigned value, call, condition, returned value; each: first argument, or null
  Expr limit;        ///< loop: runs while `limit` holds
  std::int64_t step = 1;
  bool noinline = false;       ///< of a lambda: compilers shall not inline it
  std::string note;            ///< of a declaration: a comment behind it, or above where that is too long
  bool always_inline = false;  ///< of a lambda that is passed on: compilers shall inline it wherever it is called
  std::vector<Parameter> parameters;  ///< of a lambda; unused ones have no name
  Block body, otherwise;              ///< `otherwise`: of a condition
};

Statement declare(std::string type, std::string name, Expr value);
Statement assign(std::string name, Expr value);
Statement evaluate(Expr call);
/// for (std::int64_t name = from; while_true; name += step)
Statement loop(std::string name, Expr from, Expr while_true, std::int64_t step, Block body);
/// The same with a variable of another type.
Statement loop(std::string type, std::string name, Expr from, Expr while_true, std::int64_t step, Block body);
/// A loop that compilers unroll: `unroll<turns>([&](auto name) { body });` of simd/unroll.h. One whose body is nothing
/// but another unrolled loop becomes one with it.
Statement unroll(std::string name, const Expr& turns, Block body);
/// function<arguments>(first, [&](parameters) { body }); of a function that calls the lambda, at several places
/// perhaps.
Statement each(std::string function, std::string arguments, Expr first, std::vector<Parameter> parameters, Block body);
/// const auto name = [=](parameters) { body };
Statement lambda(std::string name, std::vector<Parameter> parameters, Block body);
/// const auto name = [&]<int constant>(Constant<constant>, parameters) { body }; which is always inlined.
Statement lambda_of_constant(std::string name, std::string constant, std::vector<Parameter> parameters, Block body);
/// The same as `lambda`, but never inlined.
Statement lambda_not_inlined(std::string name, std::vector<Parameter> parameters, Block body);
Statement when(Expr condition, Block body, Block otherwise = {});
Statement scope(Block body);
Statement comment(std::string text);
Statement pragma(std::string text);
/// return value; or, where there is none, return;
Statement give(Expr value);
Statement blank();

struct Function {
  std::string declared{};            ///< of a kernel: the line of the declaration, above the comment; ""
  std::vector<std::string> comment;  ///< lines
  std::string returns = "void";
  std::string linkage = "static";  ///< empty for external
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool noinline = false;  ///< a function even where it is called once: compilers shall not inline it
};

/// Whether a statement of the block reads the variable.
bool uses(const Block& block, const std::string& variable);
/// Whether a statement of the block calls a function whose name begins so.
bool calls(const Block& block, std::string_view begin);
/// Throws Error when the function uses a name that is neither declared before nor among `known` (types, functions,
/// constants of the file).
void check(const Function& function, const std::set<std::string>& known);
std::string print(const Function& function);
std::string print(const Block& block, std::size_t depth);
/// The first lines of a definition, up to its opening brace.
std::string print_head(const Function& function);
/// The declaration alone, ending in a semicolon.
std::string print_declaration(const Function& function);

}  // namespace tessera::codegen::tree
