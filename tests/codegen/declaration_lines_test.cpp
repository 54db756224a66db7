// The lines of a declaration: that each node has the one that it comes from, and none that might be another's.
#include "codegen/passes/declaration_lines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "codegen/kernels/lower.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/pipeline.hpp"
#include "dsl/tessera.hpp"
#include "dsl/trace.hpp"

namespace tessera::test {
namespace {

using codegen::Mention;

constexpr auto B = axis<"B">;
constexpr auto N = axis<"N", 3>;
constexpr auto D = axis<"D", 4>;
using Tokens = Tensor<B, N, D>;

/// A part, whose members stand at the path of what it is a part of.
struct Gate : Part {
  Linear<D, D> gate;
  TESSERA_MEMBERS(Gate, gate)

  Tokens forward(Tokens x) const { return x * sigmoid(gate(x)); }
};

struct Mixer : Module {
  struct Inner : Module {
    Linear<D, D> map;
    TESSERA_MEMBERS(Inner, map)

    Tokens forward(Tokens x) const { return exp(map(x)); }
  };

  LayerNorm<D> norm1, norm2;
  Gate parts;
  Inner inner;
  Sequential<Linear<D, D>, Gelu, Linear<D, D>> mlp;
  TESSERA_MEMBERS(Mixer, norm1, norm2, parts, inner, mlp)

  Tokens forward(Tokens x) const {
    // A comment calls inner(x), and a text "mlp(x)".
    const auto scores = einsum<"b i k, b j k -> b i j">(x, inner(parts(x))) / sqrt(D);
    const auto mixed = einsum<"b i j, b j k -> b i k">(softmax<-1>(scores), normed(x, norm1));
    const auto y = true ? norm2(mixed) : mixed;
    return x + mlp(norm2(y));
  }

 private:
  static Tokens normed(const Tokens& x, const LayerNorm<D>& norm) { return norm(x); }
};

struct Mixing : Module {
  static constexpr Recipe recipe{};
  Stack<Mixer, 2> blocks;
  Linear<D, axis<"J", 5>> head;
  TESSERA_MEMBERS(Mixing, blocks, head)

  Tensor<B, axis<"J", 5>> forward(Tokens x) const { return head(mean<1>(relu(blocks(x)))); }
};

/// The lines of the nodes of an op that one module recorded, each once.
std::set<std::string> lines_of(const graph::Graph& g, const std::string& path, graph::Op op) {
  std::set<std::string> lines;
  for (const graph::Node& n : g.nodes)
    if (n.path == path && n.op == op)
      lines.insert(n.line == graph::none ? "none"
                                         : g.lines[static_cast<std::size_t>(n.line)].module + ": " +
                                               g.lines[static_cast<std::size_t>(n.line)].text);
  return lines;
}

TEST(DeclarationLines, AreThoseOfTheCalls) {
  using graph::Op;
  using Lines = std::set<std::string>;
  const graph::Graph g = codegen::with_declaration_lines(trace<Mixing>("mixing"));
  EXPECT_TRUE(g.modules.empty());
  EXPECT_EQ(lines_of(g, "blocks.{}.inner.map", Op::einsum), Lines{"Inner: return exp(map(x));"});
  EXPECT_EQ(lines_of(g, "blocks.{}.inner", Op::exp), Lines{"Inner: return exp(map(x));"});
  EXPECT_EQ(lines_of(g, "blocks.{}.gate", Op::einsum), Lines{"Gate: return x * sigmoid(gate(x));"});
  EXPECT_EQ(
      lines_of(g, "blocks.{}", Op::softmax),
      Lines{R"(Mixer: const auto mixed = einsum<"b i j, b j k -> b i k">(softmax<-1>(scores), normed(x, norm1));)"});
  EXPECT_EQ(
      lines_of(g, "blocks.{}", Op::einsum),
      (Lines{R"(Mixer: const auto scores = einsum<"b i k, b j k -> b i j">(x, inner(parts(x))) / sqrt(D);)",
             R"(Mixer: const auto mixed = einsum<"b i j, b j k -> b i k">(softmax<-1>(scores), normed(x, norm1));)"}));
  EXPECT_EQ(lines_of(g, "blocks.{}.mlp.0", Op::einsum), Lines{"Mixer: return x + mlp(norm2(y));"});
  EXPECT_EQ(lines_of(g, "blocks.{}.mlp.1", Op::gelu), Lines{"Mixer: return x + mlp(norm2(y));"});
  EXPECT_EQ(lines_of(g, "head", Op::einsum), Lines{"Mixing: return head(mean<1>(relu(blocks(x))));"});
  EXPECT_EQ(lines_of(g, "", Op::relu), Lines{"Mixing: return head(mean<1>(relu(blocks(x))));"});
  EXPECT_TRUE(std::all_of(g.lines.begin(), g.lines.end(),
                          [](const graph::Line& l) { return l.file == "declaration_lines_test.cpp"; }));
}

TEST(DeclarationLines, OfAMemberThatIsNotCalledIsWhereItIsPassedOn) {
  const graph::Graph g = codegen::with_declaration_lines(trace<Mixing>("mixing"));
  EXPECT_EQ(
      lines_of(g, "blocks.{}.norm1", graph::Op::layer_norm),
      std::set<std::string>{
          R"(Mixer: const auto mixed = einsum<"b i j, b j k -> b i k">(softmax<-1>(scores), normed(x, norm1));)"});
}

TEST(DeclarationLines, NoneIsGuessed) {
  const graph::Graph g = codegen::with_declaration_lines(trace<Mixing>("mixing"));
  EXPECT_EQ(lines_of(g, "blocks.{}.norm2", graph::Op::layer_norm), std::set<std::string>{"Mixer: "});
  EXPECT_EQ(lines_of(g, "", graph::Op::cross_entropy), std::set<std::string>{"none"});
}

TEST(DeclarationLines, StayWithWhatPassesMakeOfANode) {
  const graph::Graph declared = codegen::passed(trace<Mixing>("mixing"), codegen::declaration_passes());
  const graph::Graph joint =
      codegen::passed(codegen::passed(declared, codegen::program_passes(codegen::ProgramKind::loss_and_gradients)),
                      codegen::primitive_passes());
  std::string softmax, backward;
  const codegen::KernelProgram program = codegen::lower(joint, codegen::ProgramKind::loss_and_gradients);
  for (const codegen::Kernel& k : program.kernels) {
    if (k.name == "blocks_softmax_forward") softmax = codegen::declared_at(program, k);
    if (k.name == "blocks_mlp_2_weight_gradient") backward = codegen::declared_at(program, k);
    EXPECT_LE(codegen::declared_at(program, k).size(), 117U);
  }
  EXPECT_EQ(
      softmax,
      R"(Mixer, declaration_lines_test.cpp: const auto mixed = einsum<"b i j, b j k -> b i k">(softmax<-1>(scores), normed(...)");
  EXPECT_EQ(backward, "Mixer, declaration_lines_test.cpp: return x + mlp(norm2(y));");
}

/// What stands above a kernel, once its own nodes have no line.
std::string declared_at_path_of(codegen::KernelProgram program, const std::string& kernel) {
  for (const codegen::Kernel& k : program.kernels) {
    if (k.name != kernel) continue;
    for (const codegen::NodeId id : k.nodes) program.graph[id].line = graph::none;
    return codegen::declared_at(program, k);
  }
  return "no such kernel";
}

TEST(DeclarationLines, AKernelWithoutOneHasThatOfItsPath) {
  const graph::Graph declared = codegen::passed(trace<Mixing>("mixing"), codegen::declaration_passes());
  const graph::Graph joint =
      codegen::passed(codegen::passed(declared, codegen::program_passes(codegen::ProgramKind::loss_and_gradients)),
                      codegen::primitive_passes());
  const codegen::KernelProgram program = codegen::lower(joint, codegen::ProgramKind::loss_and_gradients);
  EXPECT_EQ(declared_at_path_of(program, "blocks_mlp_2_weight_gradient"),
            "Mixer, declaration_lines_test.cpp: return x + mlp(norm2(y));");
  EXPECT_EQ(declared_at_path_of(program, "blocks_softmax_forward"), "Mixer, declaration_lines_test.cpp");  // of several
  EXPECT_EQ(declared_at_path_of(program, "softmax_backward"), "");  // the loss, at the root
}

TEST(DeclarationLines, OfASourceThatCannotBeReadNameTheStruct) {
  graph::Graph g = trace<Mixing>("mixing");
  for (graph::Module& m : g.modules) m.file = "/nowhere/mixing.hpp";
  g = codegen::with_declaration_lines(std::move(g));
  EXPECT_EQ(lines_of(g, "head", graph::Op::einsum), std::set<std::string>{"Mixing: "});
}

constexpr const char* source = R"text(struct Before { int f() { return call(1); } };
struct Outer : Module {
  A call{1}, other;
  TESSERA_MEMBERS(Outer, call,
                  other)
  struct Within { int f() { return call(2); } };
  int g() const {
    /* call(3) */ const char* text = "call(4)";  // call(5)
    recall(1'000); call.x; x.call(6), call<7>(), helper(other);
  }
  int call(int x);
};
struct After { int f() { return call(8); } };
)text";

TEST(DeclarationLines, MentionsAreThoseOfTheStructsOwnFunctions) {
  const auto found = [](const std::string& text, int line, const char* name, Mention mention) {
    graph::Module module;
    module.name = "Outer";
    module.line = line;
    std::vector<std::string> rest;
    for (const std::size_t at : codegen::mentions_of(text, module, {name}, mention)) rest.push_back(text.substr(at, 8));
    return rest;
  };
  using Rest = std::vector<std::string>;
  for (const int line : {4, 5}) {  // GCC and Clang
    EXPECT_EQ(found(source, line, "call", Mention::call), (Rest{"call(6),", "call<7>("}));
    EXPECT_EQ(found(source, line, "call", Mention::any), (Rest{"call.x; ", "call(6),", "call<7>("}));
    EXPECT_EQ(found(source, line, "other", Mention::call), Rest{});
    EXPECT_EQ(found(source, line, "other", Mention::any), Rest{"other);\n"});
    EXPECT_EQ(found(source, line, "cal", Mention::any), Rest{});
  }
  for (const int line : {-1, 0, 1, 3}) EXPECT_EQ(found(source, line, "call", Mention::any), Rest{}) << line;
  for (const char* text : {"", "TESSERA_MEMBERS(", "TESSERA_MEMBERS(Outer)", "TESSERA_MEMBERS(Outer) {call()",
                           "{TESSERA_MEMBERS(Inner) {call()", "{TESSERA_MEMBERS(OuterOne) {call()", "\n{}"})
    EXPECT_EQ(found(text, 1, "call", Mention::any), Rest{}) << text;
  for (const char* text : {"{TESSERA_MEMBERS(Outer) {call()", "{TESSERA_MEMBERS(Outer) {call( /*",
                           "{TESSERA_MEMBERS(Outer) {call(\"\\", "{TESSERA_MEMBERS(Outer) {call(}}}}"})
    EXPECT_EQ(found(text, 1, "call", Mention::call).size(), 1U) << text;
}

TEST(DeclarationLines, ALineIsOneLineOfAComment) {
  EXPECT_EQ(codegen::line_around("a\n  int f() const { return call(x); }\nb", 26), "return call(x);");
  EXPECT_EQ(codegen::line_around("a\n\tcall(\tx) \\\nb", 3), "call( x)");
  EXPECT_EQ(codegen::line_around("call(x)\r\n", 0), "call(x)");
  EXPECT_EQ(codegen::line_around("\n\n", 1), "");
  EXPECT_EQ(codegen::line_around("", 0), "");
}

}  // namespace
}  // namespace tessera::test
