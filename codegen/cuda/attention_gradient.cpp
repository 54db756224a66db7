#include "codegen/cuda/attention_gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <set>

#include "codegen/cuda/attention_recompute.hpp"
#include "codegen/cuda/emitter.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

using graph::Op;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

using Part = AttentionGradient::Part;
using Axes = Attention::Axes;

/// The accesses of all loads of a tensor; nothing where two of them differ.
std::optional<Access> only_access(const Kernel& k, TensorId tensor, std::vector<ExprId>& loads) {
  for (const ExprId e : k.expressions.ids()) {
    const Expression& x = expression_of(k, e);
    if (x.kind == Expression::Kind::load && x.access.tensor == tensor) loads.push_back(e);
  }
  for (ExprId e : loads)
    if (!(expression_of(k, e).access == expression_of(k, loads[0]).access)) return {};
  return loads.empty() ? std::nullopt : std::optional(expression_of(k, loads[0]).access);
}

bool same_size(const Kernel& a, const Kernel& b, int in_a, int in_b) {
  return (in_a < 0) == (in_b < 0) && (in_a < 0 || size_of(a, in_a) == size_of(b, in_b));
}

/// A product of `given`, as it lies behind `written` in the kernel of the softmax, and of something else: which has the
/// width, and is neighbours along it. The depth is the softmax' rows, or its keys.
std::optional<Part> product_of(const KernelProgram& program, const std::vector<const Kernel*>& kernels, int number,
                               TensorId given, const std::vector<int>& written, const Axes& in_softmax,
                               bool over_rows) {
  const Kernel& k = *kernels[number];
  const Operands f = operands_of(k, program.precision);
  if (!f.a.valid() || f.rows.size() != 1 || f.columns.size() != 1 || f.depth.size() != 1) return {};
  for (const bool left : {true, false}) {
    const Expression& e = expression_of(k, left ? f.a : f.b);
    if (e.kind != Expression::Kind::load || e.access.tensor != given) continue;
    const std::vector<int> read = axes_along(e.access);
    if (read.size() != written.size()) return {};
    Part found;
    found.kernel = number;
    found.factor = left ? f.b : f.a;
    found.axes = {mapped({in_softmax.row}, written, read)[0], mapped({in_softmax.key}, written, read)[0],
                  (left ? f.columns : f.rows)[0], mapped(in_softmax.groups, written, read)};
    const int across = (left ? f.rows : f.columns)[0];
    if (across != (over_rows ? found.axes.key : found.axes.row) ||
        f.depth[0] != (over_rows ? found.axes.row : found.axes.key) || found.axes.groups != batch_first(k, f.groups) ||
        !vectorisable_along(program, k, found.factor, found.axes.width))
      return {};
    return found;
  }
  return {};
}

/// A kernel that stores what a part gives somewhere else, and does nothing more.
std::optional<Part> copy_of(const KernelProgram& program, const std::vector<const Kernel*>& kernels, int number,
                            const Part& part) {
  const Kernel &k = *kernels[number], &product = *kernels[part.kernel];
  if (product.steps.size() != 2 || product.steps[1].stores.size() != 1) return {};
  const Step::Store& given = product.steps[1].stores[0];
  if (k.anchor != Anchor::elementwise || k.steps.size() != 1 || k.steps[0].stores.size() != 1 ||
      !is_local(product, given.value, 0))
    return {};
  const Step::Store& store = k.steps[0].stores[0];
  const Expression& loaded = expression_of(k, store.value);
  const auto element = [&](TensorId tensor) { return program.tensors[tensor].element; };
  if (loaded.kind != Expression::Kind::load || loaded.access.tensor != given.to.tensor ||
      element(store.to.tensor) != element(given.to.tensor))
    return {};
  const std::vector<int> written = axes_along(given.to), read = axes_along(loaded.access);
  if (written.empty() || written.size() != read.size()) return {};
  Part copy;
  copy.kernel = number;
  copy.loaded = store.value;
  const auto there = [&](int axis) { return axis < 0 ? -1 : mapped({axis}, written, read)[0]; };
  copy.axes = {there(part.axes.row), there(part.axes.key), there(part.axes.width),
               mapped(part.axes.groups, written, read)};
  const std::vector<int> all = all_of(copy.axes);
  if (std::count(all.begin(), all.end(), -1) != 1) return {};  // the row or the key
  for (int a = 0; a < static_cast<int>(k.axes.size()); ++a)
    if (!ranges::contains(all, a) && size_of(k, a) != 1) return {};
  return copy;
}

}  // namespace

namespace {

/// Of kernels of which the first two compute p again.
std::optional<AttentionGradient> with_recompute(const KernelProgram& program,
                                                const std::vector<const Kernel*>& kernels) {
  const AttentionRecompute again = *attention_recompute_of(*kernels[1]);
  std::optional<AttentionGradient> found = attention_gradient_of(program, {kernels.begin() + 2, kernels.end()});
  if (!found) return {};
  Part* const parts[] = {&found->mixed, &found->softmax, &found->of_query, &found->of_key, &found->of_value};
  for (Part* part : parts) part->kernel += 2;
  for (std::optional<Part>& copy : found->copies)
    if (copy) copy->kernel += 2;
  const Kernel& softmax = *kernels[found->softmax.kernel];
  const Access& read = expression_of(softmax, found->p[0]).access;
  if (read.tensor != again.p.tensor) return {};
  const std::vector<int> from = axes_along(read), to = axes_along(again.p);
  const Axes& axes = found->softmax.axes;
  found->again =
      Part{1, {mapped({axes.row}, from, to)[0], mapped({axes.key}, from, to)[0], -1, mapped(axes.groups, from, to)}};
  return found;
}

}  // namespace

std::optional<AttentionGradient> attention_gradient_of(const KernelProgram& program,
                                                       const std::vector<const Kernel*>& kernels) {
  if (kernels.size() < 5) return {};
  AttentionGradient found;
  const auto kernel = [&](const Part& part) -> const Kernel& { return *kernels[part.kernel]; };
  for (const Kernel* k : kernels)
    for (const Expression& e : k->expressions)
      if (e.kind == Expression::Kind::keep || e.kind == Expression::Kind::extent) return {};

  // The softmax: a row's sum of p dp, and what follows from it.
  for (int i = 0; i < 5; ++i)
    if (kernels[i]->anchor == Anchor::row) found.softmax.kernel = i;
  if (found.softmax.kernel < 0) return {};
  const Kernel& softmax = kernel(found.softmax);
  if (softmax.steps.size() != 2) return {};
  const Step &sum = softmax.steps[0], &changed = softmax.steps[1];
  if (!sum.reduces || sum.reduction != Reduction::sum || !sum.stores.empty() || sum.over.size() != 1 ||
      changed.reduces || changed.over != sum.over || changed.stores.size() != 1 ||
      !is_op(softmax, sum.value, Op::multiply))
    return {};
  Axes& in_softmax = found.softmax.axes;
  in_softmax.key = sum.over[0];
  found.change = changed.stores[0].value;
  const TensorId changes = changed.stores[0].to.tensor;
  const std::vector<int> changes_written = axes_along(changed.stores[0].to);
  if (program.tensors[changes].element != DType::bf16) return {};

  // One of its factors is dp: a product that is stored as it is.
  TensorId p, dp;
  std::vector<int> dp_written;
  for (const bool first : {true, false}) {
    const Expression& product = expression_of(softmax, sum.value);
    const Expression &one = expression_of(softmax, first ? product.a : product.b),
                     &other = expression_of(softmax, first ? product.b : product.a);
    if (one.kind != Expression::Kind::load || other.kind != Expression::Kind::load) return {};
    for (int i = 0; i < 5; ++i) {
      const Kernel& k = *kernels[i];
      if (i == found.softmax.kernel || k.steps.size() != 2 || k.steps[1].stores.size() != 1 ||
          k.steps[1].stores[0].to.tensor != one.access.tensor || !is_local(k, k.steps[1].stores[0].value, 0))
        continue;
      found.mixed.kernel = i;
      dp = one.access.tensor;
      p = other.access.tensor;
      dp_written = axes_along(k.steps[1].stores[0].to);
    }
  }
  if (!dp.valid() || dp == p || program.tensors[dp].element != DType::real) return {};
  const std::optional<Access> loads_p = only_access(softmax, p, found.p), loads_dp = only_access(softmax, dp, found.dp);
  if (!loads_p || !loads_dp) return {};
  const std::vector<int> p_read = axes_along(*loads_p), dp_read = axes_along(*loads_dp);
  const Kernel& mixed = kernel(found.mixed);
  const Operands f = operands_of(mixed, program.precision);
  if (!f.a.valid() || f.rows.size() != 1 || f.columns.size() != 1 || f.depth.size() != 1 ||
      dp_written.size() != dp_read.size() || dp_written.size() != f.groups.size() + 2)
    return {};
  const int key = mapped({in_softmax.key}, dp_read, dp_written)[0];
  const bool keys_are_rows = f.rows[0] == key;
  if (!keys_are_rows && f.columns[0] != key) return {};
  Axes& in_mixed = found.mixed.axes;
  in_mixed = {(keys_are_rows ? f.columns : f.rows)[0], key, f.depth[0], batch_first(mixed, f.groups)};
  found.mixed.factor = keys_are_rows ? f.a : f.b;
  found.gradient = keys_are_rows ? f.b : f.a;
  in_softmax.row = mapped({in_mixed.row}, dp_written, dp_read)[0];
  in_softmax.groups = mapped(in_mixed.groups, dp_written, dp_read);
  if (in_softmax.row < 0 || ranges::contains(in_softmax.groups, -1) || changes_written.size() != dp_read.size() ||
      p_read.size() != dp_read.size())
    return {};

  // The three products. That of p takes it as bf16, from the same tensor or from its twin.
  for (int i = 0; i < 5; ++i) {
    if (i == found.softmax.kernel || i == found.mixed.kernel) continue;
    if (const auto part = product_of(program, kernels, i, changes, changes_written, in_softmax, false))
      found.of_query = *part;
    if (const auto part = product_of(program, kernels, i, changes, changes_written, in_softmax, true))
      found.of_key = *part;
    for (const TensorId t : program.tensors.ids()) {
      const Tensor &twin = program.tensors[t], &original = program.tensors[p];
      if (twin.element != DType::bf16 || twin.node == graph::none || twin.node != original.node ||
          twin.slots != original.slots || twin.storage != original.storage)
        continue;
      if (const auto part = product_of(program, kernels, i, t, p_read, in_softmax, true)) found.of_value = *part;
    }
  }
  const Part* const products[] = {&found.of_query, &found.of_key, &found.of_value};
  for (const Part* part : products) {
    if (part->kernel < 0 || ranges::contains(all_of(part->axes), -1)) return {};
    const std::vector<int> mine = all_of(part->axes), theirs = all_of(in_mixed);
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (!same_size(kernel(*part), mixed, mine[i], theirs[i])) return {};
  }
  // It is the same gradient in both products that take it, and neighbours along the width, as the value is.
  const Expression& once_more = expression_of(kernel(found.of_value), found.of_value.factor);
  if (!vectorisable_along(program, mixed, found.gradient, in_mixed.width) ||
      !vectorisable_along(program, mixed, found.mixed.factor, in_mixed.width) ||
      !same_number(expression_of(mixed, found.gradient).access, in_mixed, once_more.access, found.of_value.axes))
    return {};

  found.rows = size_of(mixed, in_mixed.row);
  found.keys = size_of(mixed, in_mixed.key);
  found.width = size_of(mixed, in_mixed.width);
  found.most_keys = ceiling(found.keys, 16) * 16;
  if (found.rows < 1 || found.keys < 1 || found.most_keys > 256 ||
      !ranges::contains(std::vector<std::int64_t>{16, 32, 64, 128}, found.width) || found.most_keys + found.width > 320)
    return {};

  for (int i = 5; i < static_cast<int>(kernels.size()); ++i) {
    bool copies = false;
    for (std::size_t part = 0; part < 3; ++part) {
      if (found.copies[part]) continue;
      found.copies[part] = copy_of(program, kernels, i, *products[part]);
      copies = copies || found.copies[part];
      if (copies) break;
    }
    if (!copies) return {};
  }
  return found;
}

std::vector<const Kernel*> parts_of_gradient(const Kernel& kernel) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& k : kernel.fused.parts) kernels.push_back(&k);
  kernels.push_back(&kernel);
  return kernels;
}

std::optional<AttentionGradient> attention_gradient_of(const KernelProgram& program, const Kernel& fused) {
  const std::vector<const Kernel*> kernels = parts_of_gradient(fused);
  return fused.fused.has(Fused::Role::softmax) ? with_recompute(program, kernels)
                                               : attention_gradient_of(program, kernels);
}

void fuse_attention_gradients(KernelProgram& program) {
  std::vector<Kernel>& kernels = program.kernels;
  std::set<int> gone;
  for (std::vector<Item>& order : program.order)
    for (std::size_t i = 0; i + 4 < order.size(); ++i) {
      std::vector<int> numbers;
      std::vector<const Kernel*> parts;
      for (std::size_t at = i; at < i + 5 && order[at].kernel >= 0; ++at) {
        numbers.push_back(order[at].kernel);
        parts.push_back(&kernels[numbers.back()]);
      }
      if (!attention_gradient_of(program, parts)) continue;
      // What one of them makes, and nobody but them reads.
      const auto inside = [&](TensorId tensor) {
        for (int k = 0; k < static_cast<int>(kernels.size()); ++k)
          if (!ranges::contains(numbers, k) && !gone.contains(k) && tensors_of(kernels[k]).contains(tensor))
            return false;
        return program.tensors[tensor].storage == Storage::scratch;
      };
      std::set<TensorId> made;
      for (std::size_t at = i + 5; at < order.size() && order[at].kernel >= 0; ++at) {
        const Kernel& copy = kernels[order[at].kernel];
        parts.push_back(&copy);
        TensorId copied;
        if (attention_gradient_of(program, parts)) {
          numbers.push_back(order[at].kernel);
          copied = expression_of(copy, copy.steps[0].stores[0].value).access.tensor;
          if (inside(copied)) {
            made.insert(copied);
            continue;
          }
          numbers.pop_back();
        }
        parts.pop_back();
        break;
      }
      const AttentionGradient found = *attention_gradient_of(program, parts);
      made.insert(parts[found.mixed.kernel]->steps[1].stores[0].to.tensor);
      made.insert(parts[found.softmax.kernel]->steps[1].stores[0].to.tensor);
      if (!ranges::all_of(made, inside)) continue;
      for (const TensorId t : made) program.tensors[t].storage = Storage::registers;
      Fused fused{Fused::Kind::attention_gradient, {}, {}};
      for (std::size_t part = 0; part + 1 < parts.size(); ++part) {
        fused.roles.push_back(Fused::Role::gradient);
        fused.parts.push_back(*parts[part]);
      }
      kernels[numbers.back()].fused = std::move(fused);
      gone.insert(numbers.begin(), numbers.end() - 1);
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(i),
                  order.begin() + static_cast<std::ptrdiff_t>(i + numbers.size() - 1));
    }
  remove_kernels(program, gone);
}

// ---- its text ----------------------------------------------------------------------------------------------------

Emitted Emitter::attention_gradient(const Launch& l) {
  const std::vector<const Kernel*> kernels = parts_of_gradient(kernel);
  const AttentionGradient a = *attention_gradient_of(plan.program, kernel);
  std::vector<Emitter> parts;
  for (const Kernel* k : kernels) parts.emplace_back(plan, *k, table_);
  const auto part_of = [&](const Part& part) -> Emitter& { return parts[part.kernel]; };

  Emitted e = of_launch(l);
  e.shared_bytes = call("attention_gradient_bytes", {integer(a.most_keys), integer(a.width)});

  Block b, functions;
  std::map<std::string, std::string> declared;
  std::vector<Argument> passed;
  std::vector<Expr> operands{integer(a.rows), integer(a.keys)};
  // Functions of one of the kernels, for the block's group of it, and what names them.
  const auto add_storing = [&](const Part& part, const std::function<Storing(Emitter&)>& function) {
    Emitter& kernel = part_of(part);
    kernel.arguments = std::move(passed);
    const FlatIndex group = kernel.fuse(part.axes.groups, "group");
    kernel.stand(group);
    const Storing added = function(kernel);
    functions.insert(functions.end(), added.functions.begin(), added.functions.end());
    operands.push_back(added.operand);
    kernel.leave();
    Block needed = kernel.declare_needed(group);
    if (!group.axes.empty())
      needed.insert(needed.begin(), tree::declare("const int", group.variable, call("block_z", {})));
    for (const tree::Statement& s : needed) {
      const auto [at, fresh] = declared.try_emplace(s.name, tree::print(s.value));
      if (fresh)
        b.push_back(s);
      else if (at->second != tree::print(s.value))
        refuse("has two meanings of " + s.name);
    }
    passed = std::move(kernel.arguments);
  };
  const auto add = [&](const Part& part, const std::function<tree::Statement(Emitter&)>& function) {
    add_storing(part, [&](Emitter& k) -> Storing {
      tree::Statement f = function(k);
      return {{f}, name(f.name)};
    });
  };
  const auto factor = [&](const std::string& which, const Part& part, ExprId value, int line) {
    add(part, [&](Emitter& k) {
      return k.function_of(which, {k.fuse({line}, "line"), k.fuse({part.axes.width}, "place")}, {},
                           [&](Block& body) { body.push_back(tree::give(k.address(k.expression(value).access))); });
    });
  };
  factor("query", a.of_key, a.of_key.factor, a.of_key.axes.row);
  factor("key", a.of_query, a.of_query.factor, a.of_query.axes.key);
  factor("value", a.mixed, a.mixed.factor, a.mixed.axes.key);
  factor("gradient", a.mixed, a.gradient, a.mixed.axes.row);
  const auto without_warnings = [](tree::Statement f) {
    for (tree::Parameter& at_place : f.parameters)
      if (at_place.type == "int") at_place.type = "[[maybe_unused]] int";
    return f;
  };
  const auto of_softmax = [&](const std::string& which, const std::vector<tree::Parameter>& more,
                              const std::function<void(Emitter&, Block&)>& give) {
    add(a.softmax, [&](Emitter& k) {
      return without_warnings(
          k.function_of(which, {k.fuse({a.softmax.axes.row}, "row"), k.fuse({a.softmax.axes.key}, "column")}, more,
                        [&](Block& body) { give(k, body); }));
    });
  };
  if (a.again) {
    const AttentionRecompute again = *attention_recompute_of(*kernels[1]);
    const Axes& axes = a.again->axes;
    add(*a.again, [&](Emitter& k) {
      return k.function_of("kept", {k.fuse({axes.row}, "row")}, {}, [&](Block& body) {
        k.begin({again.most, again.inverse});
        const Expr most = k.evaluate(body, again.most), inverse = k.evaluate(body, again.inverse);
        body.push_back(tree::give(call("of_row", {most, inverse})));
      });
    });
    add(*a.again, [&](Emitter& k) {
      return without_warnings(k.function_of("probability", {k.fuse({axes.row}, "row"), k.fuse({axes.key}, "column")},
                                            {{"real", "sum"}, {"OfRow", "row_of_it"}}, [&](Block& body) {
                                              k.begin({again.score});
                                              k.take(again.sum, name("sum"));
                                              Expr p =
                                                  call("share_of", {k.evaluate(body, again.score), name("row_of_it")});
                                              if (k.rounds(again.p)) p = call("in_bf16", {std::move(p)});
                                              body.push_back(tree::give(std::move(p)));
                                            }));
    });
  } else {
    operands.push_back(call("KeptNothing", {}));
    of_softmax("probability", {}, [&](Emitter& k, Block& body) {
      k.begin({a.p[0]});
      body.push_back(tree::give(k.evaluate(body, a.p[0])));
    });
  }
  of_softmax("change", {{"real", "p"}, {"real", "dp"}, {"real", "delta"}}, [&](Emitter& k, Block& body) {
    k.begin({a.change});
    for (ExprId load : a.p) k.take(load, name("p"));
    for (ExprId load : a.dp) k.take(load, name("dp"));
    k.locals_[0] = name("delta");
    body.push_back(tree::give(k.evaluate(body, a.change)));
  });
  const auto store = [&](const std::string& which, const Part& product, const std::optional<Part>& copy, bool of_rows) {
    const Part& part = copy ? *copy : product;
    add_storing(part, [&](Emitter& k) {
      const FlatIndex line = k.fuse({of_rows ? part.axes.row : part.axes.key}, "row"),
                      column = k.fuse({part.axes.width}, "column");
      if (!copy)
        return k.store_function(which, {line, column}, k.stores_of_sum(), {},
                                [&](const std::string& sum) { k.begin_sum(sum); });
      return k.store_function(which, {line, column}, {k.step(0).stores[0]}, part.loaded, [&](const std::string& sum) {
        k.begin({part.loaded});
        k.take(part.loaded, name(sum));
      });
    });
  };
  store("store_query", a.of_query, a.copies[0], true);
  store("store_key", a.of_key, a.copies[1], false);
  store("store_value", a.of_value, a.copies[2], false);
  arguments = std::move(passed);
  b.insert(b.end(), functions.begin(), functions.end());
  b.push_back(tree::evaluate(call(
      fmt::format("attention_gradient<{}, {}, {}>", a.most_keys, a.width, a.again.has_value()), std::move(operands))));
  finish(e, std::move(b), "attention's gradients, a head a block", false, false);
  return e;
}

}  // namespace tessera::codegen::cuda
