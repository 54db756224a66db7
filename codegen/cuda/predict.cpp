#include "codegen/cuda/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "codegen/cuda/kernel.hpp"
#include "codegen/error.hpp"

namespace tessera::codegen::cuda {

namespace {

/// What a GPU can do at best.
struct Device {
  std::string architecture, name;
  double multiprocessors, hertz;
  double bytes;            ///< a second, of its memory
  double on_tensor_cores;  ///< operations a second, of bf16 by mma.sync
  double in_fp32;          ///< without them
};
// H200: 4.3 TB/s measured; mma.sync reaches some five eighths of what wgmma does.
const Device devices[] = {{"sm_80", "A100", 108, 1.41e9, 1.9e12, 312e12, 19.5e12},
                          {"sm_90a", "H200", 132, 1.75e9, 4.3e12, 620e12, 60e12}};
constexpr double cached_bytes = 32;    // that a multiprocessor gets of the second-level cache in a cycle
constexpr double launch = 2e-6;        // seconds from one kernel of a graph to the next
constexpr double most_threads = 2048;  // on a multiprocessor

struct Work {
  double operations = 0, bytes = 0;
};

/// The number that an expression over the batch has.
std::int64_t value_of(const tree::Expr& e, std::int64_t batch) {
  if (e->kind == tree::Node::Kind::integer) return e->integer;
  if (e->kind == tree::Node::Kind::name && e->text == "batch") return batch;
  if (e->operands.size() != 2) throw Error("no number is known for " + tree::print(e));
  const std::int64_t a = value_of(e->operands[0], batch), b = value_of(e->operands[1], batch);
  if (e->text == "blocks_for") return (a + b - 1) / b;
  if (e->text == "+") return a + b;
  if (e->text == "*") return a * b;
  throw Error("no number is known for " + tree::print(e));
}

class Prediction {
 public:
  Prediction(const Model& model, const Device& device, std::int64_t batch)
      : model_(model), device_(device), batch_(batch) {}

  std::string run() {
    std::string out =
        fmt::format("{} on {} ({}), {} images: predicted\n", model_.name, device_.architecture, device_.name, batch_);
    for (const Plan& plan : model_.plans) {
      if (plan.program.name != "forward" && plan.program.name != "loss_and_gradients") continue;
      out += fmt::format("\n{:<44} {:>8} {:>9} {:>7} {:>9} {:>9} {:>10}\n", plan.program.name, "launches", "blocks",
                         "waves", "GFLOP", "MB", "us");
      all_ = {};
      time_ = 0;
      out += region(plan, 0, 1);
      out += fmt::format("{:<44} {:>8} {:>9} {:>7} {:>9.1f} {:>9.1f} {:>10.1f}\n", "in all", "", "", "",
                         all_.operations / 1e9, all_.bytes / 1e6, time_ * 1e6);
    }
    return out;
  }

 private:
  double extent_of(const Kernel& k, int axis) const {
    return static_cast<double>(extent(k.axes[static_cast<std::size_t>(axis)].dim).at(batch_));
  }

  std::string region(const Plan& plan, int r, int times) {
    std::string out;
    for (const Item& item : plan.program.order[static_cast<std::size_t>(r)])
      out += item.region < 0 ? kernel(plan, item.kernel, times)
                             : region(plan, item.region,
                                      times * plan.program.graph.regions[static_cast<std::size_t>(item.region)].count);
    return out;
  }

  /// Elements of a tensor that an access reaches.
  double elements(const Kernel& k, const Access& access) const {
    std::set<int> axes;
    for (const Affine& index : access.index)
      for (const Affine::Part& part : index.parts) axes.insert(part.axis);
    double all = 1;
    for (int a : axes) all *= extent_of(k, a);
    return all;
  }

  /// Each operation once for each point, each element moved once. `stores`: what the kernel stores, not partial sums.
  Work work_of(const Kernel& k, bool stores) const {
    Work w;
    double points = 1;
    for (std::size_t a = 0; a < k.axes.size(); ++a)
      if (!k.axes[a].inner) points *= extent_of(k, static_cast<int>(a));
    std::set<std::pair<int, int>> counted;  // tensor and shift
    auto move = [&](const Access& access) {
      if (counted.insert({access.tensor, access.shift}).second) w.bytes += 4 * elements(k, access);
    };
    for (const Step& s : k.steps) {
      double each = points;
      for (int a : s.over) each *= extent_of(k, a);
      std::set<int> below;
      auto reach = [&](auto&& self, int e) -> void {
        if (e < 0 || !below.insert(e).second) return;
        const Expression& x = k.expressions[static_cast<std::size_t>(e)];
        if (x.kind == Expression::Kind::load) move(x.access);
        for (int operand : {x.a, x.b, x.c})
          if (x.kind == Expression::Kind::op) self(self, operand);
        w.operations += x.kind == Expression::Kind::op ? each : 0;
      };
      if (s.reduces) {
        reach(reach, s.value);
        w.operations += each;
      }
      if (!stores) break;
      for (const Step::Store& store : s.stores) {
        reach(reach, store.value);
        move(store.to);
      }
    }
    return w;
  }

  std::string kernel(const Plan& plan, int number, int times) {
    const Kernel& k = plan.program.kernels[static_cast<std::size_t>(number)];
    const std::vector<Emitted> emitted = emit(plan, number, [](int) { return "table"; }, model_.tiles);
    double points = 1;
    for (std::size_t a = 0; a < k.axes.size(); ++a)
      if (!k.axes[a].inner) points *= extent_of(k, static_cast<int>(a));
    std::string out;
    for (std::size_t i = 0; i < emitted.size(); ++i) {
      const Emitted& e = emitted[i];
      const bool chunks = emitted.size() > 1;
      Work w = work_of(k, !chunks);
      const double partial = 4 * points * static_cast<double>(batch_chunks);
      if (chunks && i == 0) w.bytes += partial;
      if (i == 1) w = {points * static_cast<double>(batch_chunks), partial + 4 * points};
      out += line(e, w, times);
    }
    return out;
  }

  std::string line(const Emitted& e, const Work& w, int times) {
    double blocks = 1;
    for (const tree::Expr& along : e.grid) blocks *= static_cast<double>(value_of(along, batch_));
    const double resident = e.blocks ? e.blocks : std::floor(most_threads / e.threads);
    const double waves = blocks / (device_.multiprocessors * resident);
    const bool on_tensor_cores = e.tile.function == "tensor_product";
    // The last wave takes as long as a full one.
    const double idle = std::ceil(waves) / waves;
    double seconds = w.operations / (on_tensor_cores ? device_.on_tensor_cores : device_.in_fp32) * idle;
    // A multiprocessor alone gets little more than its share of the memory's speed.
    seconds = std::max(seconds, w.bytes / (device_.bytes * std::min(1.0, blocks / device_.multiprocessors)));
    if (e.tile.rows) {
      const double factors = blocks * (e.tile.rows + e.tile.columns) * static_cast<double>(e.depth.at(batch_)) * 4;
      seconds = std::max(seconds, factors * idle / (cached_bytes * device_.hertz * device_.multiprocessors));
    }
    seconds += launch;
    all_.operations += w.operations * times;
    all_.bytes += w.bytes * times;
    time_ += seconds * times;
    return fmt::format("{:<44} {:>8} {:>9.0f} {:>7.2f} {:>9.2f} {:>9.2f} {:>10.1f}\n", e.function.name, times, blocks,
                       waves, w.operations / 1e9, w.bytes / 1e6, seconds * 1e6);
  }

  const Model& model_;
  const Device& device_;
  const std::int64_t batch_;
  Work all_;
  double time_ = 0;
};

}  // namespace

std::string predict(const Model& model, const std::string& architecture, std::int64_t batch) {
  for (const Device& device : devices)
    if (device.architecture == architecture) return Prediction(model, device, batch).run();
  throw Error(fmt::format("there are no predictions for {}, only for sm_80 and sm_90a", architecture));
}

}  // namespace tessera::codegen::cuda
