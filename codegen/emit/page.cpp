#include "codegen/emit/page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "codegen/emit/contract.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/emit/summary.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/passes/flops.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

namespace {

using graph::Graph;
using graph::Node;

std::string escaped(std::string_view plain) {
  std::string out;
  for (const char c : plain) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// 12,345,678
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

/// "12.3 M", "4.5 k", "17": for numbers that are compared by eye.
std::string rounded(std::int64_t value) {
  const auto number = static_cast<double>(value);
  if (value >= 1'000'000'000) return fmt::format("{:.2f} G", number / 1e9);
  if (value >= 1'000'000) return fmt::format("{:.2f} M", number / 1e6);
  if (value >= 10'000) return fmt::format("{:.1f} k", number / 1e3);
  return grouped(value);
}

std::string bytes(std::int64_t value) {
  const auto number = static_cast<double>(value);
  if (value >= 1 << 20) return fmt::format("{:.1f} MiB", number / (1 << 20));
  if (value >= 1 << 10) return fmt::format("{:.1f} KiB", number / (1 << 10));
  return fmt::format("{} bytes", value);
}

constexpr const char* style = R"(
:root { color-scheme: light dark; --ink: #2b2f36; --dim: #69707c; --ground: #fff; --line: #dde1e7; --code: #f5f6f8; --mark: #2e62a6; --bar: #bcd2ee; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #d8dadf; --dim: #9299a5; --ground: #16181c; --line: #33373d; --code: #1f2227; --mark: #7fb0ee; --bar: #2c4668; }
}
body { font: 15px/1.5 Helvetica, Arial, 'DejaVu Sans', sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto; max-width: 1100px; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.4rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 0.4rem; }
p, .dim { color: var(--dim); }
summary { cursor: pointer; }
code, pre, .shape { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12.5px; }
pre { line-height: 1.35; overflow-x: auto; background: var(--code); padding: 0.8rem; margin: 0.3rem 0 0.8rem; max-height: 32rem; }
p code { color: var(--ink); overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: 0.4rem 2.2rem; margin: 0.8rem 0; }
.facts b { display: block; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
details.module { border: 1px solid var(--line); border-radius: 6px; margin: 0.35rem 0; padding: 0.25rem 0.7rem; }
details.module > summary, details.kernel > summary { display: flex; flex-wrap: wrap; gap: 0.1rem 1rem; align-items: baseline; overflow-wrap: anywhere; }
details.module > summary::before, details.kernel > summary::before { content: '+'; color: var(--mark); width: 0.6rem; margin-right: -0.6rem; }
details[open].module > summary::before, details[open].kernel > summary::before { content: '-'; }
summary .shape { color: var(--mark); }
summary .cost { margin-left: auto; color: var(--dim); font-size: 13px; font-variant-numeric: tabular-nums; }
.step { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: 0.1rem 0 0.1rem 0.9rem; border-left: 2px solid var(--line); overflow-wrap: anywhere; }
.step .shape { color: var(--mark); margin-left: auto; }
.step.parameter { color: var(--dim); }
.share { height: 4px; background: var(--bar); border-radius: 2px; }
details.kernel { border-bottom: 1px solid var(--line); padding: 0.2rem 0; }
.region { border-left: 3px solid var(--bar); padding-left: 0.7rem; margin: 0.4rem 0; }
.plan { overflow-x: auto; }
.plan svg { display: block; min-width: 640px; width: 100%; height: auto; }
.plan text { fill: var(--dim); font-size: 11px; }
.plan rect { stroke: var(--ground); stroke-width: 0.5; }
.plan rect:hover { stroke: var(--ink); stroke-width: 1.5; }
.plan line { stroke: var(--line); }
)";

/// A module with what it records and what it holds.
struct ModuleNode {
  std::string name, path;
  std::int64_t parameters = 0, flops = 0;  ///< with those of the modules below, all layers together; FLOPs of an image
  int layers = 1;
  std::string shape;  ///< of the last step
  std::vector<std::string> steps;
  std::vector<ModuleNode> below;
};

/// Modules by their paths, in the order in which they run.
class Modules {
 public:
  explicit Modules(const ModelFiles& m) : m_(m) {
    root_.name = m.name;
    for (const ShapeRow& row : shape_rows(m.forward)) {
      const Node& n = m.forward[row.node];
      ModuleNode& at = of(n.op == graph::Op::input ? "" : row.path == m.name ? "" : row.path, row.layers);
      at.shape = row.shape;
      at.steps.push_back(fmt::format("<div class=\"step\"><code>{}</code><span class=\"shape\">{}</span></div>\n",
                                     escaped(n.name.empty() ? row.step : n.name), escaped(row.shape)));
    }
    for (const Node& n : m.forward.nodes) {
      if (n.op != graph::Op::parameter) continue;
      std::int64_t reals = 1;
      for (const Dim& d : n.shape) reals *= d.value();
      const int layers = m.forward.regions[n.region].count;
      const std::size_t dot = n.name.rfind('.');
      ModuleNode& at = of(dot == std::string::npos ? "" : n.name.substr(0, dot), layers);
      at.parameters += reals * layers;
      at.steps.push_back(fmt::format(
          "<div class=\"step parameter\"><code>{}</code><span class=\"shape\">{}</span></div>\n",
          escaped(dot == std::string::npos ? n.name : n.name.substr(dot + 1)), escaped(to_string(n.shape))));
    }
    for (const auto& [path, flops] : m.module_flops) of(path, 1).flops += flops.at(1);
    add_up(root_);
    for (const graph::Output& o : m.forward.outputs)
      if (o.kind == graph::Output::Kind::value) root_.shape = to_string(m.forward[o.node].shape);
  }
  const ModuleNode& root() const { return root_; }

  std::string html(const ModuleNode& node, bool open) const {
    const std::int64_t real = m_.real == "double" ? 8 : 4;
    std::string cost;
    if (node.parameters > 0)
      cost = fmt::format("{} parameters, {}", rounded(node.parameters), bytes(real * node.parameters));
    if (node.flops > 0) cost += fmt::format("{}{} FLOPs", cost.empty() ? "" : ", ", rounded(node.flops));
    const double share =
        root_.flops > 0 ? 100.0 * static_cast<double>(node.flops) / static_cast<double>(root_.flops) : 0;
    std::string out = fmt::format(
        "<details class=\"module\"{}><summary><b>{}{}</b><span class=\"shape\">{}</span><span "
        "class=\"cost\">{}</span></summary>\n<div class=\"share\" style=\"width:{:.1f}%\"></div>\n",
        open ? " open=\"\"" : "", escaped(node.name), node.layers > 1 ? fmt::format(" x {}", node.layers) : "",
        escaped(node.shape), cost, share);
    for (const std::string& step : node.steps) out += step;
    for (const ModuleNode& below : node.below) out += html(below, false);
    return out + "</details>\n";
  }

 private:
  ModuleNode& of(const std::string& path, int layers) {
    ModuleNode* at = &root_;
    std::istringstream parts(path);
    std::string walked;
    for (std::string part; std::getline(parts, part, '.');) {
      walked += (walked.empty() ? "" : ".") + part;
      auto found = std::ranges::find(at->below, part, &ModuleNode::name);
      if (found == at->below.end())
        found = at->below.insert(at->below.end(), ModuleNode{part, walked, 0, 0, 1, "", {}, {}});
      at = &*found;
      if (part.starts_with('{')) at->layers = std::max(at->layers, layers);
    }
    return *at;
  }
  static void add_up(ModuleNode& node) {
    for (ModuleNode& below : node.below) {
      add_up(below);
      node.parameters += below.parameters;
      node.flops += below.flops;
      if (node.shape.empty()) node.shape = below.shape;
    }
  }

  const ModelFiles& m_;
  ModuleNode root_;
};

/// The functions of an emitted file by their names.
std::map<std::string, std::string> functions_of(const std::string& file) {
  std::map<std::string, std::string> functions;
  std::istringstream lines(file);
  std::string text, name;
  for (std::string line; std::getline(lines, line);) {
    const bool begins = line.starts_with("static ") || line.starts_with("[[gnu::noinline]] static ");
    if (text.empty() && begins && line.find('(') != std::string::npos && line.find('=') > line.find('(')) {
      const std::size_t bracket = line.find('('), space = line.rfind(' ', bracket);
      name = line.substr(space + 1, bracket - space - 1);
      text = line + "\n";
    } else if (!text.empty()) {
      text += line + "\n";
      if (line != "}") continue;
      functions[name] = text;
      text.clear();
    }
  }
  return functions;
}

/// One program: its kernels in the order in which they run, and its memory over that order.
class ProgramPage {
 public:
  ProgramPage(const Plan& plan, const Target& target, const std::map<std::string, std::string>& functions,
              const std::map<std::string, std::string>& standing, std::int64_t real_bytes)
      : plan_(plan),
        p_(plan.program),
        target_(target),
        functions_(functions),
        standing_(standing),
        real_bytes_(real_bytes) {}

  /// Rows of runtime::PageKernel, once html() was called.
  const std::string& table() const { return table_; }

  std::string html() {
    std::string kernels = region(0);
    return memory() + fmt::format("<h3>{} kernels</h3>\n", count_) + kernels;
  }

 private:
  /// How many operations of the graph became one kernel, and which.
  std::string fused(const Kernel& k) const {
    std::vector<std::string> names;
    for (const NodeId id : k.nodes) names.emplace_back(op_name(p_.graph[id].op));
    for (const Kernel& with : k.fused.parts)
      for (const NodeId id : with.nodes) names.emplace_back(op_name(p_.graph[id].op));
    std::vector<std::string> counted;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::ranges::count(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i])) continue;
      const auto times = std::ranges::count(names, names[i]);
      counted.push_back(times > 1 ? fmt::format("{} x {}", times, names[i]) : names[i]);
    }
    return fmt::format("{}", fmt::join(counted, ", "));
  }

  std::string source(const Kernel& k) const {
    std::string out;
    for (const char* part : {"", "_partial", "_sum"})
      if (const auto name = standing_.find(k.name + part + suffix_of(p_)); name != standing_.end())
        out += functions_.at(name->second) + "\n";
    return out;
  }

  /// FLOPs of a kernel and of those that are fused with it, of an image in one layer.
  std::int64_t work_of(const Kernel& k) const {
    std::int64_t work = 0;
    for (const NodeId id : k.nodes) work += flops(p_.graph, p_.graph[id]).at(1);
    for (const Kernel& with : k.fused.parts) work += work_of(with);
    return work;
  }

  std::string kernel(const Kernel& k, std::size_t index) {
    const std::int64_t work = work_of(k);
    const std::string text = source(k);
    std::string functions;
    for (const char* part : {"", "_partial", "_sum"})
      if (const auto name = standing_.find(k.name + part + suffix_of(p_)); name != standing_.end())
        functions += (functions.empty() ? "" : " ") + name->second;
    table_ += fmt::format("    {{\"{}\", \"{}\", \"{}\", {}}},\n", p_.name, k.name, functions,
                          work * p_.graph.regions[k.region].count);
    std::string results;
    for (const Step& step : k.steps)
      for (const Step::Store& store : step.stores) {
        const Tensor& t = p_.tensors[store.to.tensor];
        results += fmt::format("{}{} {}", results.empty() ? "" : ", ", t.name, to_string(t.shape));
      }
    std::vector<std::string> schedule;
    const Schedule& s = plan_.schedules.at(std::string(target_.name))[index];
    const auto axis = [&](int a) { return k.axes[a].name; };
    if (k.gemm.columns >= 0) schedule.push_back("GEMM");
    if (s.parallel >= 0) schedule.push_back(fmt::format("threads over {}", axis(s.parallel)));
    if (s.vector >= 0) schedule.push_back(fmt::format("lanes over {}", axis(s.vector)));
    for (std::size_t a = 0; a < s.tile.size(); ++a)
      if (s.tile[a] > 1) schedule.push_back(fmt::format("tile {} {}", k.axes[a].name, s.tile[a]));
    const std::string line = declared_at(p_, k);
    return fmt::format(
        "<details class=\"kernel\"><summary><span class=\"dim\">{}</span><b>{}</b><span class=\"shape\">{}</span><span "
        "class=\"cost\">{}{}</span></summary>\n{}<p>made of: {}{}</p>\n{}</details>\n",
        count_++, escaped(k.name), escaped(results), work > 0 ? rounded(work) + " FLOPs" : "",
        fmt::format("<!--time {} {}-->", p_.name, k.name),
        line.empty() ? "" : "<p><code>" + escaped(line) + "</code></p>\n", escaped(fused(k)),
        schedule.empty() ? "" : fmt::format("; {}", fmt::join(schedule, ", ")),
        text.empty() ? "<p>No function of its own: it runs within another kernel.</p>\n"
                     : "<pre>" + escaped(text) + "</pre>\n");
  }

  std::string region(int number) {
    std::string out;
    for (const Item& item : p_.order[number]) {
      if (item.kernel >= 0) {
        out += kernel(p_.kernels[item.kernel], item.kernel);
        continue;
      }
      const graph::Region& r = p_.graph.regions[item.region];
      out += fmt::format("<div class=\"region\"><p>{} x {}{}</p>\n", escaped(r.path), r.count,
                         r.reversed ? ", last layer first" : "");
      out += region(item.region) + "</div>\n";
    }
    return out;
  }

  /// Each buffer of an image's arena as a box: from the kernel that first writes it to the one that last reads it, and
  /// where it lies.
  std::string memory() const {
    if (plan_.scratch.per_batch == 0) return "";
    constexpr double width = 1000, height = 320, left = 64, top = 8, bottom = 28;
    int last = 1;
    for (const Buffer& b : plan_.buffers)
      if (b.per_image) last = std::max(last, b.last + 1);
    const auto all = static_cast<double>(plan_.scratch.per_batch);
    const auto x = [&](int kernel) { return left + (width - left) * kernel / last; };
    const auto y = [&](std::int64_t offset) { return top + (height - top) * static_cast<double>(offset) / all; };
    std::string boxes;
    std::size_t drawn = 0;
    for (const Buffer& b : plan_.buffers) {
      if (!b.per_image || b.size == 0) continue;
      const std::string name =
          b.tensor.valid() ? p_.tensors[b.tensor].name : p_.kernels[b.kernel].name + ", partial sums";
      const std::string shape = b.tensor.valid() ? " " + to_string(p_.tensors[b.tensor].shape) : "";
      // The golden angle: neighbours differ.
      boxes += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"hsl({} 45% 58%)\"><title>{}{}: "
          "{}, kernels {} to {}</title></rect>\n",
          x(b.first), y(b.offset), std::max(1.0, x(b.last + 1) - x(b.first)),
          std::max(0.8, y(b.offset + b.size) - y(b.offset)), drawn * 137 % 360, escaped(name), escaped(shape),
          bytes(real_bytes_ * b.size), b.first, b.last);
      ++drawn;
    }
    std::string marks;
    for (int i = 0; i <= 4; ++i) {
      const std::int64_t at = plan_.scratch.per_batch * i / 4;
      marks += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 6,
                           std::min(y(at) + 8, height), bytes(real_bytes_ * at));
      const int kernel = last * i / 4;
      marks +=
          fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x(kernel), height + 16,
                      i == 4 ? "end" : "middle", i == 4 ? fmt::format("kernel {}", kernel) : std::to_string(kernel));
    }
    return fmt::format(
        "<h3>Memory of an image over time</h3>\n<p>{} values share {} ({} if none were placed where another had been); "
        "across: kernels in the order in which they run, a block's once; down: where in the image's memory.</p>\n<div "
        "class=\"plan\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\">\n{}{}</svg></div>\n",
        drawn, bytes(real_bytes_ * plan_.scratch.per_batch), bytes(real_bytes_ * sum_of_sizes()), width,
        height + bottom, marks, boxes);
  }

  std::int64_t sum_of_sizes() const {
    std::int64_t sum = 0;
    for (const Buffer& b : plan_.buffers) sum += b.per_image ? b.size : 0;
    return sum;
  }

  const Plan& plan_;
  const KernelProgram& p_;
  const Target& target_;
  const std::map<std::string, std::string>& functions_;
  const std::map<std::string, std::string>& standing_;
  std::int64_t real_bytes_;
  int count_ = 0;
  std::string table_;
};

/// The page, and the rows of its kernels.
std::pair<std::string, std::string> page(const ModelFiles& m, const Target& target, const std::string& kernels,
                                         const std::map<std::string, std::string>& standing) {
  const Contract c = contract(m);
  const std::map<std::string, std::string> functions = functions_of(kernels);
  std::string rows;
  const std::int64_t real_bytes = m.real == "double" ? 8 : 4;
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<h1>{0}</h1>\n<p>What was declared, and what became of it. Declaration {2:016x}.</p>\n<div class=\"facts\">\n",
      escaped(m.name), style, m.hash);
  const auto fact = [&](const std::string& what, const std::string& value) {
    out += fmt::format("<div><b>{}</b>{}</div>\n", value, what);
  };
  fact("parameters", grouped(c.parameters));
  fact("of parameters", bytes(c.parameter_bytes));
  fact("FLOPs to predict an image", rounded(c.forward_flops.at(1)));
  fact("in all to predict an image", bytes(c.forward_bytes.at(1)));
  if (trains(m.plans)) fact("FLOPs of a training step, an image", rounded(c.train_flops.per_batch));
  out +=
      "</div>\n<h2>Declared</h2>\n<p>Modules as they run, with the named shape that each gives; the bar is its share "
      "of "
      "the FLOPs. Click to unfold.</p>\n";
  const Modules modules(m);
  out += modules.html(modules.root(), true);
  for (const auto& [kind, title] : {std::pair{ProgramKind::forward, "Predicting"},
                                    {ProgramKind::loss_and_gradients, "Training: loss and gradients"}}) {
    const auto plan = std::ranges::find_if(m.plans, [&](const Plan& p) { return p.program.kind == kind; });
    if (plan == m.plans.end()) continue;
    out += fmt::format("<h2>{}</h2>\n<p>Kernels for {}.</p>\n", title, target.name);
    ProgramPage program(*plan, target, functions, standing, real_bytes);
    out += program.html();
    rows += program.table();
  }
  return {out + "</body>\n</html>\n", rows};
}

}  // namespace

std::string emit_page(const ModelFiles& m, const Target& target, const std::string& kernels,
                      const std::map<std::string, std::string>& standing) {
  std::string out = fmt::format(
      "// Generated by Tessera from the declaration of {}. The page that its program's `summary --html` writes.\n"
      "#include \"runtime/page.hpp\"\n\nnamespace {{\n\nconst char* const texts[] = {{\n",
      m.name);
  const auto [html, rows] = page(m, target, kernels, standing);
  // Compilers promise 65,536 characters of a literal.
  constexpr std::size_t longest = 32'000;
  for (std::size_t at = 0; at < html.size(); at += longest)
    out += "R\"tessera(" + html.substr(at, longest) + ")tessera\",\n";
  return out + "};\n\nconst tessera::runtime::PageKernel kernels[] = {\n" + rows +
         "};\n\nconst tessera::runtime::Page page(texts, kernels);\n\n}  // namespace\n";
}

}  // namespace tessera::codegen
