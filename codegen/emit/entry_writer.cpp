#include "codegen/emit/entry_writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/passes/inspect.hpp"

namespace tessera::codegen {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// A tensor's name without what a C++ name cannot have.
std::string identifier(const std::string& text) {
  std::string n;
  for (char c : text) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (good)
      n += c;
    else if (!n.empty() && n.back() != '_')
      n += '_';
  }
  return n;
}

/// "[b, 17, 64]", from the outermost in memory.
std::string dims_of(const Tensor& tensor, const Layout& layout) {
  std::vector<std::string> dims;
  for (int d : layout.order) dims.push_back(to_string(tensor.shape[d]));
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

/// From row-major to the planned order.
std::vector<double> placed(const std::vector<double>& data, const Tensor& tensor, const Layout& layout) {
  std::vector<double> to(data.size());
  std::vector<std::int64_t> index(tensor.shape.size(), 0);
  for (double value : data) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * layout.stride[d];
    to[at] = value;
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.shape[d].value()) break;
      index[d] = 0;
    }
  }
  return to;
}

}  // namespace

Expr in_batch(const Extent& e) {
  return e.per_batch ? name("batch") * e.per_batch + integer(e.fixed) : integer(e.fixed);
}

std::string EntryWriter::table(const Plan& plan, TensorId tensor) {
  const Tensor& t = plan.program.tensors[tensor];
  const Layout& layout = plan.layouts[tensor];
  const std::vector<double> values = placed(plan.program.graph[t.node].data, t, layout);
  const bool doubles = dialect_.real == "double";
  std::string numbers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::string number = doubles ? fmt::format("{}", values[i]) : fmt::format("{}", static_cast<float>(values[i]));
    if (number.find_first_of(".en") == std::string::npos) number += ".0";
    if (!doubles) number += "f";
    numbers += (i % 8 == 0 ? "\n    " : " ") + number + (i + 1 < values.size() ? "," : "");
  }
  auto [at, fresh] =
      table_names_.try_emplace(numbers, fmt::format("table_{}_{}", identifier(t.name), table_names_.size()));
  if (fresh)
    tables_ += fmt::format("\n// {} {}\n{} {}[{}] = {{{}}};\n", t.name, dims_of(t, layout), dialect_.table, at->second,
                           values.size(), numbers);
  return at->second;
}

Expr EntryWriter::cast(DType element, Expr pointer) const {
  if (element == DType::real) return pointer;
  return call(fmt::format(fmt::runtime(dialect_.cast), name_of(element)), {std::move(pointer)});
}

Block EntryWriter::declare_scratch(const Plan& plan, std::set<std::string> taken) {
  Block b;
  scratch_name_.assign(plan.program.tensors.size(), "");
  for (const TensorId tensor : plan.program.tensors.ids()) {
    const int at = plan.buffer_of[tensor];
    if (at < 0) continue;
    const Buffer& buffer = plan.buffers[at];
    const Tensor& t = plan.program.tensors[tensor];
    std::string n = tree::variable(identifier(t.name));
    while (!taken.insert(n).second) n += "_";
    scratch_name_[tensor] = n;
    const Place place = place_of(plan, buffer);
    b.push_back(tree::declare((t.element == DType::real ? dialect_.real : name_of(t.element)) + "* const", n,
                              cast(t.element, name("scratch") + place.offset)));
    b.back().note = fmt::format("{}{}, kernels {} to {}", dims_of(t, plan.layouts[tensor]),
                                t.slots > 1 ? fmt::format(" x {} slots", t.slots) : "", buffer.first, buffer.last);
  }
  return b;
}

Block EntryWriter::report(const Plan&, int, bool) const { return {}; }

Block EntryWriter::stages(const Plan& plan, int region) {
  Block b;
  const auto append = [](Block& to, Block more) { to.insert(to.end(), more.begin(), more.end()); };
  for (std::size_t s = 0; s < plan.stages[region].size(); ++s) {
    const Stage& stage = plan.stages[region][s];
    const int inside = stage.items.front().region, at = static_cast<int>(s);
    if (inside < 0) {
      run(plan, stage, b);
      if (region == 0) append(b, report(plan, at, false));
      continue;
    }
    const graph::Region& inner = plan.program.graph.regions[inside];
    Block body, kernels = stages(plan, inside);
    if (region == 0) append(kernels, report(plan, at, true));
    if (inner.reversed && uses(kernels, "layer"))
      body.push_back(
          tree::declare("const std::int64_t", "layer", tree::binary("-", integer(inner.count - 1), name("pass"))));
    append(body, std::move(kernels));
    b.push_back(tree::comment(
        fmt::format("{}: {} layers{}", inner.path, inner.count, inner.reversed ? ", the last one first" : "")));
    const std::string variable = inner.reversed ? "pass" : "layer";
    b.push_back(
        tree::loop(variable, integer(0), tree::binary("<", name(variable), integer(inner.count)), 1, std::move(body)));
    if (region == 0) append(b, report(plan, at, false));
  }
  return b;
}

Expr EntryWriter::offset_of(const std::string& place, const std::string& key, std::int64_t reals) {
  auto& [taken, names] = offsets_[place];
  auto [at, fresh] = names.try_emplace(reals);
  if (fresh) {
    at->second = tree::variable(identifier(key));
    while (!taken.insert(at->second).second) at->second += "_";
  }
  return name(place + "::" + at->second);
}

std::string EntryWriter::offsets() const {
  std::string text;
  for (const auto& [place, constants] : offsets_) {
    text += fmt::format("\nnamespace {} {{  // where each lies, of repeated blocks the first layer's\n", place);
    for (const auto& [reals, constant] : constants.second)
      text += fmt::format("constexpr std::int64_t {} = {};\n", constant, reals);
    text += "}\n";
  }
  return text;
}

std::set<std::string> EntryWriter::constants() const {
  std::set<std::string> all;
  for (const auto& [numbers, table_name] : table_names_) all.insert(table_name);
  for (const auto& [place, constants] : offsets_)
    for (const auto& [reals, constant] : constants.second) all.insert(place + "::" + constant);
  return all;
}

Expr EntryWriter::in_arena(const Plan& plan, const Tensor& tensor, const std::string& array) {
  const auto [entry, layer] = arena_.place(plan.program.graph[tensor.parameter].name);
  const Expr first = name(array) + offset_of("at", entry->key, entry->at(0));
  if (entry->count == 1 || layer == 0) return first;
  return tree::binary("-", first, layer > 0 ? integer(layer * entry->stride) : name("layer") * entry->stride);
}

Expr EntryWriter::pointer(const Plan& plan, int kernel, const Argument& a) {
  const KernelProgram& p = plan.program;
  if (!a.tensor.valid()) return name("scratch") + place_of(plan, plan.buffers[plan.partial_of[kernel]]).offset;
  const Tensor& t = p.tensors[a.tensor];
  switch (t.storage) {
    case Storage::input:
    case Storage::labels:
      return name(t.name);
    case Storage::loss:
      return name("loss");
    case Storage::output: {
      if (!traits_of(p.kind).inspects) return name(t.name);
      const Layout& layout = plan.layouts[a.tensor];
      const Expr first = name(is_attention(t.name) ? "maps" : "magnitudes") + integer(layout.offset);
      return t.slots > 1 ? first + name("layer") * layout.slot : first;
    }
    case Storage::cache: {
      const Layout& layout = plan.layouts[a.tensor];
      const Expr first = name("cache") + integer(layout.offset);
      return cast(t.element, t.slots > 1 ? first + name("layer") * layout.slot : first);
    }
    case Storage::table:
      return name(table(plan, a.tensor));
    case Storage::parameter:
    case Storage::gradient:
      if (p.graph[t.parameter].op == graph::Op::input) return name("image_gradients");
      return in_arena(plan, t, t.storage == Storage::parameter ? "parameters" : "gradients");
    case Storage::packed:
      return packed(plan, t);
    case Storage::registers:
      throw Error(fmt::format("{} lies in registers, and yet a kernel is passed it", t.name));
    case Storage::scratch:
      break;
  }
  const Expr base = name(scratch_name_[a.tensor]);
  if (t.slots == 1) return base;
  const Kernel& k = p.kernels[kernel];
  Expr which;
  if (!counts_slots_of(p, k.region, t)) {
    which = integer(a.shift % t.slots);
  } else {
    const bool own = t.region == k.region;
    const bool reversed = p.graph.regions[k.region].reversed;
    which = name(own && t.carry && reversed ? "pass" : "layer");
    if (t.carry) which = which + integer(a.shift);
    const bool wraps = t.carry && t.slots == 2 && p.graph.regions[t.region].count > 1;
    if (wraps) which = tree::binary("%", which, integer(2));
  }
  const Extent reals = place_of(plan, plan.buffers[plan.buffer_of[a.tensor]]).slot;
  const Extent slot{reals.fixed * values_in_real(t.element), reals.per_batch * values_in_real(t.element)};
  if (slot.known()) return base + which * slot.fixed;
  if (which->kind == tree::Node::Kind::integer) return base + name("batch") * (which->integer * slot.per_batch);
  return base + tree::binary("*", which * slot.per_batch, name("batch"));
}

}  // namespace tessera::codegen
