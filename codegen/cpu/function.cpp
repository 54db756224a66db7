#include "codegen/cpu/function.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/any_of.hpp>

#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cpu {

namespace {

bool drops_out(const Expression& e) { return e.kind == Expression::Kind::keep; }

bool drops_along(const Kernel& kernel, int axis) {
  return ranges::any_of(kernel.expressions, [&](const Expression& e) {
    return drops_out(e) && ranges::any_of(e.element.parts, [&](const Affine::Part& p) { return p.axis == axis; });
  });
}

/// "b < batch, n < 17, j < 64 (row); lanes along j"
std::vector<std::string> describe(const Values& v) {
  const std::string summed = v.schedule.depth ? fmt::format(" (summed, {} at a time)", v.schedule.depth) : " (summed)";
  std::string axes;
  for (std::size_t a = 0; a < v.kernel.axes.size(); ++a)
    axes += fmt::format("{}{} < {}{}", a ? ", " : "", v.kernel.axes[a].name, to_string(v.kernel.axes[a].dim),
                        v.kernel.axes[a].inner ? (v.kernel.anchor == Anchor::row ? " (row)" : summed) : "");
  std::string lanes = v.vector >= 0 && v.schedule.vector >= 0 && v.target.lanes > 1
                          ? "; lanes along " + v.axis_name(v.schedule.vector)
                          : "";
  if (axes.empty()) return {};
  return {axes + lanes};
}

}  // namespace

void add_images(const Kernel& kernel, Emitted& e) {
  if (kernel.accumulates)
    e.function.parameters.push_back({"const Group&", "group"});
  else
    e.function.parameters.push_back({"const std::int64_t", "batch"});
}

void add_layer(const Kernel& kernel, Emitted& e) {
  if (kernel.region && ranges::any_of(kernel.expressions, drops_out))
    e.function.parameters.push_back({"const std::int64_t", "layer"});
}

bool uses_batch(const Kernel& kernel) {
  return ranges::any_of(kernel.expressions,
                        [](const Expression& e) { return e.kind == Expression::Kind::extent && !e.dim.known(); });
}

void add_numbers(const Values& v, Emitted& e) {
  if (uses_batch(v.kernel) && (e.tasks != Emitted::Tasks::batch || v.kernel.accumulates))
    e.function.parameters.push_back({"const std::int64_t", "batch"});
  if (e.tasks == Emitted::Tasks::images && drops_along(v.kernel, v.schedule.parallel))
    e.function.parameters.push_back({"const std::int64_t", "image"});
  add_layer(v.kernel, e);
}

void finish(const Values& v, Emitted& e, const std::set<std::string>& called) {
  for (const Argument& a : v.arguments) {
    const Tensor& t = v.plan.program.tensors[a.tensor];
    std::string type = t.type == graph::Type::integer ? "std::int32_t*" : std::string(name_of(t.element)) + "*";
    e.function.parameters.push_back({(a.written ? "" : "const ") + type, a.name});
  }
  e.arguments = v.arguments;
  e.function.declared = declared_at(v.plan.program, v.kernel);
  e.function.comment = describe(v);
  std::set<std::string> names = known_names();
  names.insert("partial");
  names.insert(called.begin(), called.end());
  tree::check(e.function, names);
}

}  // namespace tessera::codegen::cpu
