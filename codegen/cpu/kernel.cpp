#include "codegen/cpu/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>

#include "codegen/cpu/values.hpp"
#include "codegen/passes/columns.hpp"

namespace tessera::codegen::cpu {

using graph::Op;
using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// A run of points along one axis that one piece of code handles: how many, and how many lanes the last vector has.
struct Piece {
  std::int64_t points = 0;  ///< tile points (vectors along the vector axis)
  int tail = 0;             ///< lanes of the last vector; 0: all
};

/// Below this many points, waiting for each other takes threads longer than what they share.
constexpr std::int64_t least_shared = 1 << 15;
/// Reals of a tensor that are asked for at once: a few pages, and half of a second cache.
constexpr std::int64_t least_fetched = 1 << 12, most_fetched = 1 << 18;

class Emitter : Values {
 public:
  Emitter(const Plan& plan, int kernel, const Target& target, bool in_team)
      : Values(plan, kernel, target), in_team_(in_team) {}

  std::vector<Emitted> run() {
    std::vector<Emitted> result;
    if (tasks_of(kernel_) == codegen::Tasks::chunks) {
      result.push_back(partials());
      arguments_.clear();
      result.push_back(combine());
      return result;
    }
    result.push_back(tasks_of(kernel_) == codegen::Tasks::rows ? sum_over_images() : whole());
    return result;
  }

 private:
  const Step& step(std::size_t i) const { return kernel_.steps[i]; }
  // ---- functions -----------------------------------------------------------------------------------------------

  Emitted whole() {
    Emitted e;
    e.function.name = kernel_.name;
    if (schedule_.parallel >= 0) {
      e.parallel = schedule_.parallel;
      e.block = schedule_.block;
      if (schedule_.block == 1) {
        e.tasks = Emitted::Tasks::images;
        set(schedule_.parallel, nullptr);
        if (in_team_) split_ = axis_to_split();
        if (split_ >= 0) {
          e.shared = true;
          e.function.parameters.push_back({"const Team&", "team"});
        }
      } else {
        e.tasks = Emitted::Tasks::blocks;
        e.function.parameters.push_back({"const std::int64_t", "begin"});
        e.function.parameters.push_back({"const std::int64_t", "end"});
        begin_ = name("begin");
        end_ = name("end");
      }
    } else if (kernel_.across_batch) {
      e.tasks = Emitted::Tasks::batch;
      begin_ = integer(0);
      end_ = name("batch");
    }
    if (uses_batch() || e.tasks == Emitted::Tasks::batch)
      e.function.parameters.push_back({"const std::int64_t", "batch"});
    if (e.tasks == Emitted::Tasks::images && drops_along(schedule_.parallel))
      e.function.parameters.push_back({"const std::int64_t", "image"});
    add_layer(e);
    e.function.body = kernel_.anchor == Anchor::contraction ? contraction() : sweeps();
    if (by_tiles()) e.function.body.push_back(tree::evaluate(call("t_release", {})));
    if (e.tasks == Emitted::Tasks::images && kernel_.product.columns >= 0) {
      Block asked = fetches([&](const Tensor& t) { return t.slots > 1 && t.region != kernel_.region; }, nullptr);
      e.function.body.insert(e.function.body.begin(), asked.begin(), asked.end());
    }
    if (split_ >= 0) {
      const Expr rows = integer(extent_[static_cast<std::size_t>(split_)]), tile = integer(rows_of_tile(split_));
      e.function.body.insert(e.function.body.begin(),
                             {tree::declare("const std::int64_t", "begin", call("team.begin", {rows, tile})),
                              tree::declare("const std::int64_t", "end", call("team.end", {rows, tile}))});
    }
    finish(e);
    return e;
  }

  /// Asks for an image's values of those tensors in scratch memory that `which` names, as far as the second cache has
  /// room for them. `image`: which of them; null where pointers are to an image's values already.
  template <class Which>
  Block fetches(Which which, const Expr& image) {
    Block b;
    std::set<int> seen;
    for (const Expression& e : kernel_.expressions) {
      if (e.kind != Expression::Kind::load) continue;
      const Tensor& t = plan_.program.tensors[static_cast<std::size_t>(e.access.tensor)];
      const Layout& layout = plan_.layouts[static_cast<std::size_t>(e.access.tensor)];
      const std::int64_t reals = layout.size.per_batch;
      if (t.storage != Storage::scratch || !which(t) || reals < least_fetched || reals > most_fetched ||
          !seen.insert(e.access.tensor).second)
        continue;
      Expr first = name(argument(e.access, false));
      for (std::size_t d = 0; image && d < t.shape.size(); ++d)
        if (!t.shape[d].known()) first = first + image * layout.stride[d];
      b.push_back(tree::evaluate(call("v_fetch", {first, integer(reals)})));
    }
    return b;
  }

  std::int64_t rows_of_tile(int a) const {
    return kernel_.anchor == Anchor::contraction ? schedule_.tile[static_cast<std::size_t>(a)] : 1;
  }

  /// The outer axis whose points a team shares out: the rows of a product, else the outermost. -1: there is none, or
  /// too little to do.
  int axis_to_split() const {
    if (points_of_image(kernel_) < least_shared) return -1;
    std::vector<int> axes = outer_axes();
    if (kernel_.product.columns >= 0) axes = {kernel_.product.rows};
    for (int a : axes) {
      if (a < 0 || a == schedule_.parallel || a == vector_) continue;
      const std::int64_t extent = extent_[static_cast<std::size_t>(a)];
      const bool everywhere = ranges::all_of(kernel_.steps, [&](const Step& s) {
        return ranges::all_of(s.stores, [&](const Step::Store& store) {
          return ranges::any_of(store.to.index, [&](const Affine& index) {
            return ranges::any_of(index.parts, [&](const Affine::Part& part) { return part.axis == a; });
          });
        });
      });
      if (extent > rows_of_tile(a) * 2 - 1 && everywhere) return a;
    }
    return -1;
  }

  /// A block of a product's rows, summed over the batch. Where an image alone has much to sum, its sums are added to
  /// what is stored, so that images are gone through one after the other; else the sums go on over all images.
  Emitted sum_over_images() {
    Emitted e;
    const int rows = kernel_.product.rows;
    e.function.name = kernel_.name;
    e.tasks = Emitted::Tasks::rows;
    e.parallel = rows;
    e.block = schedule_.tile[static_cast<std::size_t>(rows)];
    e.function.parameters = {
        {"const std::int64_t", "begin"}, {"const std::int64_t", "end"}, {"const std::int64_t", "batch"}};
    add_layer(e);
    if (by_tiles()) {
      e.function.body = gradient_by_tiles();
      finish(e);
      return e;
    }
    std::int64_t depth = 1;
    int images = -1;
    for (int a : step(0).over) {
      if (extent_[static_cast<std::size_t>(a)] >= 0)
        depth *= extent_[static_cast<std::size_t>(a)];
      else
        images = a;
    }
    if (depth < least_columns) {
      begin_ = integer(0);
      end_ = name("batch");
      e.function.body = contraction();
    } else {
      const Step::Store& store = step(1).stores.front();
      set(rows, name(axis_name(rows)));
      Block zero =
          nest({vector_}, [&](Block& b) { dense_store(b, address(store.to, true), call("v_zero", {}), false); });
      e.function.body.push_back(tree::loop(axis_name(rows), name("begin"),
                                           tree::binary("<", name(axis_name(rows)), name("end")), 1, std::move(zero)));
      set(images, name(axis_name(images)));
      adds_ = true;
      Block of_image = fetches([](const Tensor&) { return true; }, name(axis_name(images))), sums = contraction();
      of_image.insert(of_image.end(), sums.begin(), sums.end());
      e.function.body.push_back(tree::loop(axis_name(images), integer(0),
                                           tree::binary("<", name(axis_name(images)), name("batch")), 1,
                                           std::move(of_image)));
      adds_ = false;
    }
    finish(e);
    return e;
  }

  Emitted partials() {
    Emitted e;
    e.tasks = Emitted::Tasks::chunks;
    e.function.name = kernel_.name + "_partial";
    e.function.parameters = {{"const std::int64_t", "chunk"}, {"const std::int64_t", "batch"}};
    add_layer(e);
    begin_ = name("begin");
    end_ = name("end");
    to_partials_ = true;
    Block body{tree::declare("const std::int64_t", "begin", chunk_bound(name("chunk"))),
               tree::declare("const std::int64_t", "end", chunk_bound(name("chunk") + integer(1)))};
    Block rest = contraction();
    body.insert(body.end(), rest.begin(), rest.end());
    e.function.body = std::move(body);
    finish(e);
    e.function.parameters.push_back({"real*", "partial"});
    e.arguments.push_back({-1, 0, true, "partial"});
    to_partials_ = false;
    return e;
  }

  static Expr chunk_bound(Expr chunk) {
    return tree::binary("/", tree::binary("*", std::move(chunk), name("batch")), integer(batch_chunks));
  }

  Emitted combine() {
    Emitted e;
    e.function.name = kernel_.name + "_sum";
    std::vector<int> outer = outer_axes();
    vector_ = partial_vector();
    for (Place& p : place_) p = {};
    // Few sums are added up by one thread: waking another would cost more.
    std::int64_t sums = batch_chunks;
    for (int a : outer) sums *= extent_[static_cast<std::size_t>(a)];
    int parallel = -1;
    if (outer.size() > 1 && sums > 100000) parallel = outer[0] == vector_ ? outer[1] : outer[0];
    if (parallel >= 0) {
      e.tasks = Emitted::Tasks::points;
      e.parallel = parallel;
      e.function.parameters.push_back({"const std::int64_t", axis_name(parallel)});
      set(parallel, name(axis_name(parallel)));
    }
    if (uses_batch()) e.function.parameters.push_back({"const std::int64_t", "batch"});
    add_layer(e);
    std::vector<int> loops;
    for (int a : outer)
      if (a != parallel && a != vector_) loops.push_back(a);
    if (vector_ >= 0) loops.push_back(vector_);
    e.function.body = nest(loops, [&](Block& b) {
      reset();
      int reduction = 0;
      for (std::size_t s = 0; s < kernel_.steps.size(); ++s) {
        if (!step(s).reduces) continue;
        std::string sum = fmt::format("sum{}", reduction);
        b.push_back(tree::declare("vec", sum, identity(step(s))));
        Expr at = name("partial") + partial_index(reduction, name("chunk"));
        Block body{tree::assign(sum, accumulate(step(s), name(sum), dense_load(at)))};
        b.push_back(tree::loop("chunk", integer(0), tree::binary("<", name("chunk"), integer(batch_chunks)), 1, body));
        locals_[{static_cast<int>(s), offsets_of_outer()}] = name(sum);
        ++reduction;
      }
      stores(b);
    });
    finish(e);
    e.function.parameters.push_back({"const real*", "partial"});
    e.arguments.push_back({-1, 0, false, "partial"});
    return e;
  }

  void finish(Emitted& e) {
    for (const Argument& a : arguments_) {
      const Tensor& t = plan_.program.tensors[static_cast<std::size_t>(a.tensor)];
      std::string type = t.type == graph::Type::integer ? "std::int32_t*" : t.half ? "bf16*" : "real*";
      e.function.parameters.push_back({(a.written ? "" : "const ") + type, a.name});
    }
    e.arguments = arguments_;
    e.function.comment = describe();
    std::set<std::string> names = known_names();
    names.insert({"partial", gradient_name()});
    tree::check(e.function, names);
  }

  std::vector<std::string> describe() const {
    std::string axes;
    for (std::size_t a = 0; a < kernel_.axes.size(); ++a)
      axes += fmt::format("{}{} < {}{}", a ? ", " : "", kernel_.axes[a].name, to_string(kernel_.axes[a].dim),
                          kernel_.axes[a].inner ? (kernel_.anchor == Anchor::row ? " (row)" : " (summed)") : "");
    std::string lanes =
        schedule_.vector >= 0 && target_.lanes > 1 ? "; lanes along " + axis_name(schedule_.vector) : "";
    return {axes + lanes};
  }

  static bool keeps(const Expression& e) { return e.kind == Expression::Kind::keep; }
  bool drops_along(int axis) const {
    return ranges::any_of(kernel_.expressions, [&](const Expression& e) {
      return keeps(e) && ranges::any_of(e.element.parts, [&](const Affine::Part& p) { return p.axis == axis; });
    });
  }
  /// Dropout's factors differ from layer to layer.
  void add_layer(Emitted& e) const {
    if (kernel_.region && ranges::any_of(kernel_.expressions, keeps))
      e.function.parameters.push_back({"const std::int64_t", "layer"});
  }

  bool uses_batch() const {
    return std::any_of(kernel_.expressions.begin(), kernel_.expressions.end(),
                       [](const Expression& e) { return e.kind == Expression::Kind::extent && !e.dim.known(); });
  }

  // ---- places, loops -------------------------------------------------------------------------------------------

  /// Nested loops over whole axes; the vector axis in steps of the lanes with its tail.
  template <class Leaf>
  Block nest(const std::vector<int>& axes, Leaf leaf, std::size_t depth = 0) {
    Block b;
    if (depth == axes.size()) {
      leaf(b);
      return b;
    }
    int a = axes[depth];
    auto body = [&] { return nest(axes, leaf, depth + 1); };
    Expr i = name(axis_name(a));
    std::int64_t extent = extent_[static_cast<std::size_t>(a)];
    if (a != vector_) {
      set(a, i);
      Expr first = extent >= 0 ? integer(0) : begin_, limit = extent >= 0 ? integer(extent) : end_;
      if (a == split_) first = name("begin"), limit = name("end");
      Block inside = body();
      b.push_back(tree::loop(axis_name(a), first, tree::binary("<", i, limit), 1, std::move(inside)));
      return b;
    }
    int lanes = target_.lanes;
    bool in_range = extent < 0 || (a == schedule_.parallel && schedule_.block > 1);
    std::vector<Block> pieces;
    if (in_range) {  // the number of points is known only when the program runs
      set(a, i);
      Block full = body();
      Expr fits = lanes == 1 ? tree::binary("<", i, end_) : tree::binary("<=", i + integer(lanes), end_);
      b.push_back(tree::loop(axis_name(a), begin_, fits, lanes, std::move(full)));
      if (lanes == 1) return b;
      std::string rest = axis_name(a) + "_rest";
      Expr count = tree::binary("-", end_, begin_);
      b.push_back(tree::declare("const std::int64_t", rest, begin_ + tree::binary("/", count, integer(lanes)) * lanes));
      tail_ = call("static_cast<int>", {tree::binary("-", end_, name(rest))});
      set(a, name(rest));
      Block last = body();
      tail_ = nullptr;
      b.push_back(tree::when(tree::binary("<", name(rest), end_), std::move(last)));
      return b;
    }
    std::int64_t full = extent / lanes * lanes;
    if (full > lanes) {
      set(a, i);
      Block inside = body();
      pieces.push_back(
          {tree::loop(axis_name(a), integer(0), tree::binary("<", i, integer(full)), lanes, std::move(inside))});
    } else if (full == lanes) {
      set(a, nullptr);
      pieces.push_back(body());
    }
    if (extent > full) {
      tail_ = integer(extent - full);
      set(a, nullptr, full);
      pieces.push_back(body());
      tail_ = nullptr;
    }
    return join(std::move(pieces));
  }

  /// One block after the other, each in a scope of its own where names could meet.
  static Block join(std::vector<Block> pieces) {
    if (pieces.size() == 1) return std::move(pieces[0]);
    Block all;
    for (Block& piece : pieces) {
      bool declares =
          ranges::any_of(piece, [](const tree::Statement& s) { return s.kind == tree::Statement::Kind::declare; });
      if (declares)
        all.push_back(tree::scope(std::move(piece)));
      else
        all.insert(all.end(), piece.begin(), piece.end());
    }
    return all;
  }

  // ---- row and elementwise kernels -----------------------------------------------------------------------------

  Block sweeps() {
    std::vector<int> loops;
    for (int a : outer_axes())
      if (a != vector_ && !(a == schedule_.parallel && schedule_.block == 1)) loops.push_back(a);
    if (vector_ >= 0 && !inner(vector_)) loops.push_back(vector_);
    return nest(loops, [&](Block& b) {
      locals_.clear();
      reset();
      for (std::size_t first = 0, end = 0; first < kernel_.steps.size(); first = end) {
        end = first + 1;
        while (end < kernel_.steps.size() && joins_sweep(first, end)) ++end;
        sweep(b, first, end);
      }
    });
  }

  /// Whether step `s` can run in the sweep of the steps from `first` on: over the same axes, and without their results.
  bool joins_sweep(std::size_t first, std::size_t s) const {
    if (step(s).over != step(first).over) return false;
    std::vector<int> todo;
    if (step(s).reduces) todo.push_back(step(s).value);
    for (const Step::Store& store : step(s).stores) todo.push_back(store.value);
    while (!todo.empty()) {
      const Expression& e = expression(todo.back());
      todo.pop_back();
      if (e.kind == Expression::Kind::local && e.a >= static_cast<int>(first)) return false;
      if (e.kind != Expression::Kind::op) continue;
      todo.push_back(e.a);
      if (e.b >= 0) todo.push_back(e.b);
      if (e.c >= 0) todo.push_back(e.c);
    }
    return true;
  }

  /// The steps from `first` to before `end`, in one sweep.
  void sweep(Block& b, std::size_t first, std::size_t end) {
    std::vector<int> loops;
    for (int a : step(first).over)
      if (a != vector_) loops.push_back(a);
    const bool across = vector_ >= 0 && ranges::contains(step(first).over, vector_);
    if (across) loops.push_back(vector_);
    auto sum_of = [&](std::size_t s) {
      return fmt::format("{}{}", step(s).reduction == Reduction::sum ? "sum" : "most", s);
    };
    for (std::size_t s = first; s < end; ++s)
      if (step(s).reduces) b.push_back(tree::declare("vec", sum_of(s), identity(step(s))));
    Block body = nest(loops, [&](Block& inside) {
      reset();
      for (std::size_t s = first; s < end; ++s) {
        if (step(s).reduces) {
          Expr value = masked(step(s), evaluate(inside, step(s).value), across);
          inside.push_back(tree::assign(sum_of(s), accumulate(step(s), name(sum_of(s)), value)));
        }
        for (const Step::Store& store : step(s).stores) put(inside, store);
      }
      reset();
    });
    b.insert(b.end(), body.begin(), body.end());
    for (std::size_t s = first; s < end; ++s) {
      if (!step(s).reduces) continue;
      Expr result = name(sum_of(s));
      if (across) {
        const std::string all = fmt::format("row{}", s);
        const std::string reduce = step(s).reduction == Reduction::sum ? "v_sum" : "v_max_lane";
        b.push_back(tree::declare("const vec", all, call("v_set", {call(reduce, {result})})));
        result = name(all);
      }
      locals_[{static_cast<int>(s), offsets_of_outer()}] = result;
    }
  }

  // ---- contractions --------------------------------------------------------------------------------------------

  Block contraction() {
    std::vector<int> loops, tiled;
    for (int a : outer_axes()) {
      if (a == schedule_.parallel && schedule_.block == 1) continue;
      if (schedule_.tile[static_cast<std::size_t>(a)] > 1 || a == schedule_.parallel ||
          (a == vector_ && extent_[static_cast<std::size_t>(a)] >= 0))
        tiled.push_back(a);
      else
        loops.push_back(a);
    }
    // The columns of a product stay while its rows go by: a panel of the right factor is read from near memory.
    // Where rows have to be packed, they stay.
    const bool columns_first = kernel_.product.columns >= 0 && !(by_tiles() && packs_left());
    std::stable_sort(tiled.begin(), tiled.end(), [&](int x, int y) {
      return columns_first ? x == vector_ && y != vector_ : x != vector_ && y == vector_;
    });
    std::vector<std::pair<int, Piece>> tile;
    return nest(loops, [&](Block& b) {
      if (by_tiles()) b = before_tiles();
      Block all = tiles(tiled, 0, tile);
      b.insert(b.end(), all.begin(), all.end());
    });
  }

  Block tiles(const std::vector<int>& axes, std::size_t depth, std::vector<std::pair<int, Piece>>& tile) {
    Block b;
    if (depth == axes.size()) {
      std::vector<std::pair<int, Piece>> points = tile;
      std::stable_sort(points.begin(), points.end(),
                       [&](const auto& x, const auto& y) { return x.first != vector_ && y.first == vector_; });
      one_tile(b, points);
      return b;
    }
    int a = axes[depth];
    std::int64_t unit = a == vector_ ? target_.lanes : 1;
    std::int64_t extent = extent_[static_cast<std::size_t>(a)];
    std::int64_t points = schedule_.tile[static_cast<std::size_t>(a)], span = points * unit;
    std::int64_t full = extent / span * span;
    std::vector<Block> pieces;
    auto inside = [&](Piece piece) {
      tile.push_back({a, piece});
      Block first = by_tiles() ? before_tiles_of(a, piece) : Block{};
      Block body = tiles(axes, depth + 1, tile);
      body.insert(body.begin(), first.begin(), first.end());
      tile.pop_back();
      return body;
    };
    const auto configure = [&](Block& to, std::int64_t rows) {
      if (by_tiles() && a == kernel_.product.rows)
        to.insert(to.begin(), tree::evaluate(call("t_configure", {integer(rows)})));
    };
    if (a == schedule_.parallel) {  // a block of rows: whole tiles
      set(a, name(axis_name(a)));
      Block body = inside({points, 0});
      return {tree::loop(axis_name(a), name("begin"), tree::binary("<", name(axis_name(a)), name("end")), span,
                         std::move(body))};
    }
    if (full > span) {
      set(a, name(axis_name(a)));
      Block body = inside({points, 0});
      Expr first = integer(0), limit = integer(full);
      if (a == split_) {
        first = name("begin");
        limit = extent > full ? call("std::min<std::int64_t>", {name("end"), limit}) : name("end");
      }
      pieces.push_back(
          {tree::loop(axis_name(a), first, tree::binary("<", name(axis_name(a)), limit), span, std::move(body))});
      configure(pieces.back(), points);
    } else if (full == span) {
      set(a, nullptr);
      pieces.push_back(inside({points, 0}));
      configure(pieces.back(), points);
    }
    if (extent > full) {
      set(a, nullptr, full);
      std::int64_t rest = extent - full;
      Block last = inside({(rest + unit - 1) / unit, static_cast<int>(rest % unit)});
      configure(last, rest);
      if (a == split_) last = {tree::when(tree::binary(">", name("end"), integer(full)), std::move(last))};
      pieces.push_back(std::move(last));
    }
    return join(std::move(pieces));
  }

  /// Calls f once for each point of the tile, with place_ and tail_ set to it.
  template <class F>
  void for_points(const std::vector<std::pair<int, Piece>>& tile, F f, std::size_t depth = 0) {
    if (depth == tile.size()) {
      f();
      return;
    }
    auto [a, piece] = tile[depth];
    Place kept = place_[static_cast<std::size_t>(a)];
    Expr kept_tail = tail_;
    for (std::int64_t i = 0; i < piece.points; ++i) {
      place_[static_cast<std::size_t>(a)].offset = kept.offset + i * (a == vector_ ? target_.lanes : 1);
      if (a == vector_) tail_ = piece.tail && i + 1 == piece.points ? integer(piece.tail) : nullptr;
      for_points(tile, f, depth + 1);
    }
    place_[static_cast<std::size_t>(a)] = kept;
    tail_ = kept_tail;
  }

  void one_tile(Block& b, const std::vector<std::pair<int, Piece>>& tile) {
    if (by_tiles()) {
      product_by_tiles(b, tile);
      return;
    }
    const Step& st = step(0);
    locals_.clear();
    reset();
    std::map<std::vector<std::int64_t>, std::string> sums;
    for_points(tile, [&] {
      std::string sum = fmt::format("sum{}", sums.size());
      sums[offsets_of_outer()] = sum;
      b.push_back(tree::declare("vec", sum, identity(st)));
    });
    std::vector<int> loops;
    for (int a : st.over)
      if (extent_[static_cast<std::size_t>(a)] < 0 && a != vector_ && !adds_) loops.push_back(a);
    for (int a : st.over)
      if (extent_[static_cast<std::size_t>(a)] >= 0 && a != vector_) loops.push_back(a);
    bool across = vector_ >= 0 && inner(vector_);
    if (across) loops.push_back(vector_);
    Block body = nest(loops, [&](Block& inside) {
      reset();
      for_points_keeping_tail(tile, across, [&] {
        std::string sum = sums.at(offsets_of_outer());
        inside.push_back(tree::assign(sum, accumulate(st, inside, name(sum), across)));
      });
    });
    b.insert(b.end(), body.begin(), body.end());
    reset();
    if (kernel_.product.columns >= 0 && !adds_ && elaborate()) {
      std::int64_t width = 1;
      for (const auto& [axis, piece] : tile) width *= piece.points;
      b.push_back(tree::declare("alignas(64) real", fmt::format("sums[{}]", width * target_.lanes), nullptr));
      std::int64_t at = 0;
      for_points(tile, [&] {
        b.push_back(tree::evaluate(call("v_store", {name("sums") + integer(at), name(sums.at(offsets_of_outer()))})));
        at += target_.lanes;
      });
      store_in_loops(b, tile);
      return;
    }
    for_points(tile, [&] {
      Expr result = name(sums.at(offsets_of_outer()));
      if (across) {
        result = call(st.reduction == Reduction::sum ? "v_sum" : "v_max_lane", {result});
        std::string all = "all" + sums.at(offsets_of_outer()).substr(3);
        b.push_back(tree::declare("const vec", all, call("v_set", {result})));
        result = name(all);
      }
      if (to_partials_)
        dense_store(b, name("partial") + partial_index(0, name("chunk")), result, across);
      else if (adds_)
        add(b, step(1).stores.front(), result);
      else
        locals_[{0, offsets_of_outer()}] = result;
    });
    if (!to_partials_ && !adds_) for_points(tile, [&] { stores(b); });
  }

  /// Whether what is made of the sums takes so many instructions that they must not stand there once for each vector of
  /// a tile: they would not fit the processor's nearest memory, and compilers would call functions instead.
  bool elaborate() const {
    return ranges::any_of(kernel_.expressions, [&](const Expression& e) {
      static const std::set<Op> long_ones{Op::exp, Op::log, Op::tanh, Op::erf, Op::gelu, Op::gelu_gradient};
      return keeps(e) || (e.kind == Expression::Kind::op && long_ones.contains(e.op));
    });
  }

  /// What is made of a product's sums, which lie in memory, is a loop over the tile.
  void store_in_loops(Block& b, const std::vector<std::pair<int, Piece>>& tile) {
    const int columns = kernel_.product.columns, rows = kernel_.product.rows;
    Piece across{1, 0}, down{1, 0};
    for (const auto& [axis, piece] : tile) (axis == columns ? across : down) = piece;
    const std::int64_t lanes = target_.lanes, width = by_tiles() ? amx_tile : across.points * lanes;
    const std::vector<Place> kept = place_;
    const auto moved = [&](int axis, const char* by) {
      Place& p = place_[static_cast<std::size_t>(axis)];
      p.variable = p.variable ? p.variable + name(by) : name(by);
    };
    if (rows >= 0 && down.points > 1) moved(rows, "row");
    const Expr line = down.points > 1 ? name("row") * width : integer(0);
    const auto one = [&](const Expr& column) {
      Block body;
      reset();
      locals_.clear();
      body.push_back(tree::declare("const vec", "sum", call("v_load", {name("sums") + (line + column)})));
      locals_[{0, offsets_of_outer()}] = name("sum");
      stores(body);
      return body;
    };
    const std::int64_t whole = (across.points - (across.tail ? 1 : 0)) * lanes;
    Block body;
    if (whole) {
      const std::vector<Place> here = place_;
      moved(columns, "column");
      body.push_back(tree::loop("column", integer(0), tree::binary("<", name("column"), integer(whole)), lanes,
                                one(name("column"))));
      place_ = here;
    }
    if (across.tail) {
      place_[static_cast<std::size_t>(columns)].offset += whole;
      tail_ = integer(across.tail);
      body.push_back(tree::scope(one(integer(whole))));
      tail_ = nullptr;
    }
    if (down.points > 1)
      b.push_back(tree::loop("row", integer(0), tree::binary("<", name("row"), integer(down.points)), 1, body));
    else
      b.insert(b.end(), body.begin(), body.end());
    place_ = kept;
    reset();
    locals_.clear();
  }

  // ---- products by AMX's tiles ---------------------------------------------------------------------------------

  bool by_tiles() const { return target_.amx && kernel_.product.rounds && sums_along_one_axis(kernel_); }

  /// A factor in memory, as tiles are loaded from it.
  struct Factor {
    Access access;
    std::int64_t across = 0, along = 0;  ///< from one row, or column, to the next; along what is summed
  };
  Factor factor(bool right) const {
    const Expression& product = expression(step(0).value);
    Factor f;
    for (int e : {product.a, product.b})
      if ((lane_step(expression(e).access) != 0) == right) f.access = expression(e).access;
    const Layout& layout = plan_.layouts[static_cast<std::size_t>(f.access.tensor)];
    const int axis = right ? kernel_.product.columns : kernel_.product.rows;
    if (axis >= 0) f.across = step_along(f.access, layout, axis);
    if (depth_axis() >= 0) f.along = step_along(f.access, layout, depth_axis());
    return f;
  }
  int depth_axis() const {
    for (int a : step(0).over)
      if (extent_[static_cast<std::size_t>(a)] >= 0) return a;
    return -1;
  }
  std::int64_t depth() const { return depth_axis() < 0 ? 1 : extent_[static_cast<std::size_t>(depth_axis())]; }
  std::int64_t whole_depth() const { return (depth() + amx_tile - 1) / amx_tile * amx_tile; }
  bool packs_left() const { return factor(false).along != 1; }
  bool packs_right() const { return !is_packed(factor(true).access); }
  /// Where the columns of all panels are packed at once: while they stay, rows are packed.
  bool packs_whole_right() const { return packs_left() && packs_right(); }

  /// Before all tiles of a product.
  Block before_tiles() {
    Block b;
    if (kernel_.product.rows < 0) {
      b.push_back(tree::evaluate(call("t_configure", {integer(1)})));
      if (packs_left()) pack_left(b, 1);
    }
    if (!packs_whole_right()) return b;
    const Factor right = factor(true);
    const std::int64_t columns = extent_[static_cast<std::size_t>(kernel_.product.columns)];
    const std::int64_t panels = (columns + amx_tile - 1) / amx_tile;
    b.push_back(
        tree::declare("alignas(64) bf16", fmt::format("panels[{}]", panels * amx_tile * whole_depth()), nullptr));
    set(kernel_.product.columns, nullptr);
    const Expr column = name("column");
    b.push_back(tree::loop(
        "column", integer(0), tree::binary("<", column, integer(columns)), amx_tile,
        {tree::evaluate(call("t_pack_right", {address(right.access, false) + column, integer(right.along),
                                              call("std::min<std::int64_t>",
                                                   {integer(amx_tile), tree::binary("-", integer(columns), column)}),
                                              integer(depth()), name("panels") + column * whole_depth()}))}));
    return b;
  }

  void pack_left(Block& b, std::int64_t rows) {
    const Factor left = factor(false);
    b.push_back(tree::declare("alignas(64) bf16", fmt::format("rows[{}]", amx_tile * whole_depth()), nullptr));
    b.push_back(
        tree::evaluate(call("t_pack_left", {address(left.access, false), integer(left.across), integer(left.along),
                                            integer(rows), integer(depth()), name("rows"), integer(whole_depth())})));
  }

  /// Before the tiles of one piece of an axis: its rows or its columns are the same for them all.
  Block before_tiles_of(int axis, const Piece& piece) {
    Block b;
    if (axis == kernel_.product.rows) {
      if (packs_left()) pack_left(b, piece.points);
    } else if (axis == kernel_.product.columns && packs_right() && !packs_whole_right()) {
      const Factor right = factor(true);
      b.push_back(tree::declare("alignas(64) bf16", fmt::format("panel[{}]", amx_tile * whole_depth()), nullptr));
      b.push_back(
          tree::evaluate(call("t_pack_right", {address(right.access, false), integer(right.along),
                                               integer(columns_of_piece(piece)), integer(depth()), name("panel")})));
    }
    return b;
  }
  std::int64_t columns_of_piece(const Piece& piece) const {
    return (piece.points - 1) * target_.lanes + (piece.tail ? piece.tail : target_.lanes);
  }

  void product_by_tiles(Block& b, const std::vector<std::pair<int, Piece>>& tile) {
    Piece across{1, 0}, down{1, 0};
    for (const auto& [axis, piece] : tile) (axis == kernel_.product.columns ? across : down) = piece;
    const Factor left = factor(false), right = factor(true);
    Expr rows = packs_left() ? name("rows") : address(left.access, false);
    Expr panel = name("panel");
    if (!packs_right()) panel = address(right.access, false);
    if (packs_whole_right()) panel = name("panels") + along(kernel_.product.columns, whole_depth());
    // Weights lie far away: while one panel goes through the tiles, the next one comes.
    Expr ahead = name("nullptr");
    std::int64_t lines = 0;
    if (const int r = kernel_.product.rows; !packs_right() && r >= 0) {
      const std::int64_t blocks = (extent_[static_cast<std::size_t>(r)] + amx_tile - 1) / amx_tile;
      lines = (amx_tile + blocks - 1) / blocks;
      ahead = panel + integer(amx_tile * whole_depth()) + this->along(r, lines * whole_depth() / amx_tile);
    }
    b.push_back(tree::declare("alignas(64) real", fmt::format("sums[{}]", down.points * amx_tile), nullptr));
    b.push_back(
        tree::evaluate(call("t_product", {name("sums"), integer(down.points), integer(columns_of_piece(across)),
                                          std::move(rows), integer(packs_left() ? whole_depth() : left.across),
                                          std::move(panel), integer(depth()), std::move(ahead), integer(lines)})));
    store_in_loops(b, tile);
  }

  std::string gradient_name() const {
    if (!by_tiles()) return "";
    return fmt::format("t_gradient<{}, {}>", extent_[static_cast<std::size_t>(kernel_.product.columns)], depth());
  }

  Block gradient_by_tiles() {
    const int rows = kernel_.product.rows, columns = kernel_.product.columns;
    const Factor left = factor(false), right = factor(true);
    std::vector<int> loops;
    for (int a : outer_axes())
      if (a != rows && a != columns) loops.push_back(a);
    int images = -1;
    for (int a : step(0).over)
      if (extent_[static_cast<std::size_t>(a)] < 0) images = a;
    const auto of_image = [&](const Factor& f) {
      return integer(step_along(f.access, plan_.layouts[static_cast<std::size_t>(f.access.tensor)], images));
    };
    const Access& to = step(1).stores.front().to;
    return nest(loops, [&](Block& b) {
      for (int a : {rows, columns, images}) set(a, nullptr);
      if (depth_axis() >= 0) set(depth_axis(), nullptr);
      b.push_back(tree::evaluate(call(
          gradient_name(),
          {name("begin"), name("end"), name("batch"), address(left.access, false), of_image(left), integer(left.across),
           integer(left.along), address(right.access, false), of_image(right), integer(right.along), address(to, true),
           integer(step_along(to, plan_.layouts[static_cast<std::size_t>(to.tensor)], rows))})));
    });
  }

  template <class F>
  void for_points_keeping_tail(const std::vector<std::pair<int, Piece>>& tile, bool across, F f) {
    Expr kept = tail_;
    for_points(tile, [&] {
      if (across) tail_ = kept;
      f();
    });
  }

  void stores(Block& b) {
    for (const Step& s : kernel_.steps) {
      if (s.reduces) continue;
      for (const Step::Store& store : s.stores) put(b, store);
    }
  }

  // ---- partial sums --------------------------------------------------------------------------------------------

  /// The axis along which partial sums are contiguous: the vector axis where it is an outer one, else the last outer.
  int partial_vector() const {
    std::vector<int> outer = outer_axes();
    if (outer.empty()) return -1;
    return schedule_.vector >= 0 && !inner(schedule_.vector) ? schedule_.vector : outer.back();
  }
  Expr partial_index(int reduction, Expr chunk) {
    std::int64_t stride = 1;
    Expr at = integer(0);
    std::vector<int> order = outer_axes();
    int last = partial_vector();
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return x != last && y == last; });
    for (std::size_t i = order.size(); i-- > 0;) {
      at = along(order[i], stride) + at;
      stride *= extent_[static_cast<std::size_t>(order[i])];
    }
    std::int64_t reductions =
        std::count_if(kernel_.steps.begin(), kernel_.steps.end(), [](const Step& s) { return s.reduces; });
    return std::move(chunk) * (stride * reductions) + at + integer(stride * reduction);
  }
  static Expr identity(const Step& s) {
    return s.reduction == Reduction::sum ? call("v_zero", {}) : call("v_set", {tree::real(-INFINITY)});
  }
  static Expr accumulate(const Step& s, Expr sum, Expr value) {
    return call(s.reduction == Reduction::sum ? "v_add" : "v_max", {std::move(sum), std::move(value)});
  }
  /// Adds the step's value at the present place; a product becomes a fused multiply-add.
  Expr accumulate(const Step& s, Block& b, Expr sum, bool across) {
    const Expression& e = expression(s.value);
    bool product = s.reduction == Reduction::sum && e.kind == Expression::Kind::op && e.op == Op::multiply;
    bool zero_in_tail =
        product && expression(e.a).kind == Expression::Kind::load && expression(e.b).kind == Expression::Kind::load;
    if (product && (!across || !tail_ || zero_in_tail)) {
      Expr a = evaluate(b, e.a), c = evaluate(b, e.b);
      return call("v_fma", {std::move(a), std::move(c), std::move(sum)});
    }
    return accumulate(s, std::move(sum), masked(s, evaluate(b, s.value), across));
  }
  /// In a vector with fewer lanes, the others get what changes nothing.
  Expr masked(const Step& s, Expr value, bool across) {
    if (!across || !tail_) return value;
    return call("v_keep_n", {std::move(value), tail_, tree::real(s.reduction == Reduction::sum ? 0 : -INFINITY)});
  }

  Expr begin_, end_;  ///< of an axis whose extent is known only when the program runs
  bool to_partials_ = false;
  bool adds_ = false;  ///< sums are added to what is stored
  bool in_team_;
  int split_ = -1;  ///< axis that a team shares out
};

}  // namespace

std::int64_t points_of_image(const Kernel& kernel) {
  std::int64_t points = 1;
  for (const Axis& a : kernel.axes)
    if (a.dim.known()) points *= a.dim.value();
  return points;
}

const std::set<std::string>& known_names() {
  static const std::set<std::string> names{"lanes",
                                           "team.begin",
                                           "team.end",
                                           "std::min<std::int64_t>",
                                           "v_set",
                                           "v_zero",
                                           "v_iota",
                                           "v_load",
                                           "v_load_n",
                                           "v_load_strided",
                                           "v_store",
                                           "v_store_n",
                                           "v_store_strided",
                                           "v_add",
                                           "v_sub",
                                           "v_mul",
                                           "v_div",
                                           "v_max",
                                           "v_neg",
                                           "v_fma",
                                           "nullptr",
                                           "t_configure",
                                           "t_release",
                                           "t_pack_left",
                                           "t_pack_right",
                                           "t_product",
                                           "v_set_bf16",
                                           "v_load_bf16",
                                           "v_load_n_bf16",
                                           "v_load_strided_bf16",
                                           "v_store_bf16",
                                           "v_store_n_bf16",
                                           "v_store_strided_bf16",
                                           "v_sqrt",
                                           "v_rsqrt",
                                           "v_equal",
                                           "v_step",
                                           "v_select_less",
                                           "v_keep",
                                           "v_keep_n",
                                           "v_fetch",
                                           "v_sum",
                                           "v_max_lane",
                                           "v_exp",
                                           "v_log",
                                           "v_tanh",
                                           "v_erf",
                                           "v_gelu",
                                           "v_gelu_gradient",
                                           "static_cast<int>",
                                           "static_cast<real>"};
  return names;
}

std::vector<Emitted> emit(const Plan& plan, int kernel, const Target& target, bool in_team) {
  return Emitter(plan, kernel, target, in_team).run();
}

}  // namespace tessera::codegen::cpu
