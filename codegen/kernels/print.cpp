#include "codegen/kernels/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/passes/op.hpp"

namespace tessera::codegen {

namespace {

std::string print_affine(const Kernel& k, const Affine& a) {
  std::string text;
  for (const Affine::Part& p : a.parts) {
    if (!text.empty()) text += "+";
    if (p.coefficient != 1) text += fmt::format("{}*", p.coefficient);
    text += k.axes[p.axis].name;
  }
  if (a.offset || text.empty()) text += fmt::format("{}{}", text.empty() ? "" : "+", a.offset);
  return text;
}

std::string print_access(const KernelProgram& p, const Kernel& k, const Access& a) {
  std::vector<std::string> index;
  for (const Affine& i : a.index) index.push_back(print_affine(k, i));
  const Tensor& t = p.tensors[a.tensor];
  std::string shift = a.shift ? fmt::format("@{}", a.shift) : "";
  return fmt::format("{}{}[{}]", t.name, shift, fmt::join(index, ", "));
}

std::string print_expression(const KernelProgram& p, const Kernel& k, ExprId i) {
  const Expression& e = k.expressions[i];
  switch (e.kind) {
    case Expression::Kind::load:
      return print_access(p, k, e.access);
    case Expression::Kind::constant:
      return fmt::format("{}", e.value);
    case Expression::Kind::extent:
      return fmt::format("extent({})", to_string(e.dim));
    case Expression::Kind::local:
      return fmt::format("r{}", e.step);
    case Expression::Kind::index:
      return fmt::format("index({})", print_affine(k, e.element));
    case Expression::Kind::index_equals:
      return fmt::format("({} == {})", print_affine(k, e.element), print_expression(p, k, e.a));
    case Expression::Kind::keep:
      return fmt::format("keep{}(rate {}, element {})", e.dropout, e.value, print_affine(k, e.element));
    case Expression::Kind::op:
      break;
  }
  std::string a = print_expression(p, k, e.a);
  if (!e.b.valid()) return fmt::format("{}({})", op_name(e.op), a);
  const std::string b = print_expression(p, k, e.b);
  if (!e.c.valid()) return fmt::format("{}({}, {})", op_name(e.op), a, b);
  return fmt::format("{}({}, {}, {})", op_name(e.op), a, b, print_expression(p, k, e.c));
}

std::string_view anchor_name(Anchor a) {
  switch (a) {
    case Anchor::elementwise:
      return "elementwise";
    case Anchor::row:
      return "row";
    case Anchor::contraction:
      return "contraction";
  }
  return "?";
}

std::string_view kind_name(Fused::Kind kind) {
  switch (kind) {
    case Fused::Kind::none:
      return "";
    case Fused::Kind::attention:
      return "attention";
    case Fused::Kind::attention_gradient:
      return "attention_gradient";
    case Fused::Kind::bias_gradient:
      return "bias_gradient";
  }
  return "?";
}

void print_kernel(std::string& out, const KernelProgram& p, const Kernel& k, const std::string& indent) {
  auto named = [&](bool inner) {
    return k.axes | ranges::views::filter([=](const Axis& a) { return a.inner == inner; }) |
           ranges::views::transform([&](const Axis& a) {
             const std::string last = a.last.valid() ? fmt::format(" up to {}", p.tensors[a.last].name) : "";
             return fmt::format("{} < {}{}", a.name, to_string(a.dim), last);
           }) |
           ranges::to<std::vector<std::string>>();
  };
  out += fmt::format("{}{} {} [{}]", indent, anchor_name(k.anchor), k.name, fmt::join(named(false), ", "));
  if (auto inner = named(true); !inner.empty()) out += fmt::format(" over [{}]", fmt::join(inner, ", "));
  if (k.by_gemm) out += ", or by the GEMM before it";
  out += fmt::format("   # nodes %{}\n", fmt::join(k.nodes, " %"));
  if (!k.fused.empty()) out += fmt::format("{}  {} with\n", indent, kind_name(k.fused.kind));
  for (const Kernel& part : k.fused.parts) print_kernel(out, p, part, indent + "    ");
  for (std::size_t s = 0; s < k.steps.size(); ++s) {
    const Step& step = k.steps[s];
    if (step.reduces) {
      out += fmt::format("{}  r{} = {} {}\n", indent, s, step.reduction == Reduction::sum ? "sum" : "max",
                         print_expression(p, k, step.value));
    }
    for (const Step::Store& store : step.stores)
      out += fmt::format("{}  {} = {}\n", indent, print_access(p, k, store.to), print_expression(p, k, store.value));
  }
}

void print_region(std::string& out, const KernelProgram& p, int region, const std::string& indent) {
  for (const Item& item : p.order[region]) {
    if (item.kernel >= 0) {
      print_kernel(out, p, p.kernels[item.kernel], indent);
      continue;
    }
    const graph::Region& r = p.graph.regions[item.region];
    out += fmt::format("{}{} x {}{} {{\n", indent, r.path, r.count, r.reversed ? ", last layer first" : "");
    print_region(out, p, item.region, indent + "  ");
    out += indent + "}\n";
  }
}

}  // namespace

std::string print(const KernelProgram& program) {
  std::string out = fmt::format("kernels of {}\n", program.name);
  print_region(out, program, 0, "  ");
  for (const KernelProgram& folded : program.folded) out += "when parameters are packed, " + print(folded);
  return out;
}

std::string print(const KernelProgram& program, const Kernel& kernel) {
  std::string out;
  print_kernel(out, program, kernel, "");
  return out;
}

}  // namespace tessera::codegen
