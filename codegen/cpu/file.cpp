#include "codegen/cpu/file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <range/v3/algorithm/find_if_not.hpp>
#include <set>
#include <utility>

#include "codegen/cpu/kernel.hpp"
#include "codegen/cpu/packing.hpp"
#include "codegen/embedded.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/emit/entry_writer.hpp"
#include "codegen/error.hpp"
#include "codegen/plan/gemm.hpp"

namespace tessera::codegen::cpu {

using tree::Block;
using tree::call;
using tree::Expr;
using tree::integer;
using tree::name;

namespace {

/// The support text of that name.
std::string_view simd(std::string_view text) { return embedded(fmt::format("cpu/simd/{}.h", text)); }

/// What entry points call and read of the texts before them.
const std::set<std::string> entry_names{"std::min<std::int64_t>",
                                        "share",
                                        "threads",
                                        "each_image",
                                        "group_of",
                                        "chunks_of",
                                        "group.first",
                                        "group.images",
                                        "group.chunk",
                                        "group.end",
                                        "team.first",
                                        "team.alone",
                                        "bf16_at",
                                        "int8_at",
                                        "int4_at"};

/// Gradients that no stage behind one of the top level writes any more; in a loop over layers: no pass behind that of
/// their layer.
struct FinishedRange {
  int stage = 0;                  ///< of the top level
  bool each_pass = false;         ///< the stage is a loop: layer after layer, of which this is the range of layer 0
  std::int64_t from = 0, to = 0;  ///< reals
  std::int64_t stride = 0;        ///< from a layer to the one before it
};

/// The stage behind which a layer's gradient of a parameter is final.
struct Written {
  int stage;
  bool each_pass;
};

/// Disjoint, and together the whole arena; by stage. Where a batch goes by microbatch after microbatch, they hold in
/// the last one.
std::vector<FinishedRange> finished_ranges(const Plan& plan, const Arena& arena) {
  const KernelProgram& p = plan.program;
  std::map<std::pair<const ArenaEntry*, int>, Written> last;  // by entry and layer
  const auto look = [&](const Stage& of, int stage, int region) {
    for (const Item& item : of.items)
      for_each_access(p.kernels[item.kernel], [&](const Access& a, bool writes) {
        const Tensor& t = p.tensors[a.tensor];
        if (!writes || t.storage != Storage::gradient || t.parameter == graph::none) return;
        const auto [entry, layer] = arena.place(p.graph[t.parameter].name);
        if (layer >= 0 || entry->count == 1) {
          last[{entry, std::max(layer, 0)}] = {stage, false};
          return;
        }
        for (int pass = 0; pass < p.graph.regions[region].count; ++pass) last[{entry, pass}] = {stage, true};
      });
  };
  for (std::size_t s = 0; s < plan.stages[0].size(); ++s) {
    const int region = plan.stages[0][s].items.front().region;
    if (region < 0) {
      look(plan.stages[0][s], static_cast<int>(s), 0);
      continue;
    }
    for (const Stage& inside : plan.stages[region]) look(inside, static_cast<int>(s), region);
  }

  std::vector<FinishedRange> found;
  std::int64_t reals = 0;
  for (const auto& [which, written] : last) {
    const auto& [entry, layer] = which;
    const std::int64_t from = entry->at(layer), size = (entry->reals + 15) / 16 * 16;
    reals += size;
    if (written.each_pass && layer > 0) continue;  // layer 0 stands for all
    found.push_back({written.stage, written.each_pass, from, from + size, written.each_pass ? entry->stride : 0});
  }
  if (reals != arena.reals) throw Error(fmt::format("{}: gradients that no kernel writes", p.name));
  std::sort(found.begin(), found.end(), [](const FinishedRange& a, const FinishedRange& b) {
    return std::pair(a.stage, a.from) < std::pair(b.stage, b.from);
  });
  std::vector<FinishedRange> joined;
  for (const FinishedRange& range : found) {
    const bool adjacent = !joined.empty() && joined.back().stage == range.stage &&
                          joined.back().each_pass == range.each_pass && joined.back().to == range.from;
    if (adjacent)
      joined.back().to = range.to;
    else
      joined.push_back(range);
  }
  return joined;
}

/// Packs what an update does not pack on its way.
const char* const pack_rest = "pack_rest";

class File : EntryWriter {
 public:
  File(const std::string& model, const std::vector<Plan>& plans, const Arena& arena, const PackedArena& packed,
       const Target& target, std::string real, bool distributed)
      : EntryWriter(arena, FunctionTable::Share::all, {real, "alignas(64) const real", "{}_at"}),
        model_(model),
        plans_(plans),
        arena_(arena),
        packed_(packed),
        target_(target),
        real_(std::move(real)),
        distributed_(distributed),
        packer_(arena, packed, target) {}

  std::string run() {
    std::string entries;
    for (const Plan& plan : plans_) entries += "\n" + entry(plan);
    if (packed_.reals) entries += packs();
    if (updates_while_packing(arena_, packed_))
      for (const Plan& plan : plans_)
        if (traits_of(plan.program.kind).updates) entries += "\n" + update_and_pack(plan);
    std::string out =
        fmt::format("// Generated by Tessera from the declaration of {}. The kernels for {}.\n", model_, target_.name);
    out += fmt::format("#include \"{}_kernels.h\"\n\n", model_);
    const bool portable = target_.family == Family::portable;
    if (!portable) out += fmt::format("#if defined(__{}__)\n\n", name_of(target_.family));
    if (real_ == "double") out += "#define TESSERA_REAL_DOUBLE 1\n";
    for (const std::string_view text : target_.begin) out += simd(text);
    out += "\nnamespace {\n\n";
    out += simd(target_.vectors);
    out += "\n";
    const bool rows = functions_.calls("along_row");
    const bool gemms = functions_.calls("rank_one_update") || functions_.calls("axpy");
    if (rows || gemms || functions_.calls("unroll")) out += fmt::format("{}\n", simd("unroll"));
    if (rows) out += fmt::format("{}\n", simd("along_row"));
    if (gemms) out += fmt::format("{}\n", simd("rank_one"));
    out += simd("math");
    if (functions_.calls("v_sin") || functions_.calls("v_cos")) out += fmt::format("\n{}", simd("trig"));
    const std::vector<std::string_view> further = parts();
    const bool microbatches = ranges::any_of(plans_, [](const Plan& plan) { return plan.program.groups; });
    if (microbatches || ranges::contains(further, "tiles_products")) out += fmt::format("\n{}", simd("group"));
    const bool windows = functions_.calls("g_windows"), gradients = functions_.calls("g_gradient");
    const bool lines = functions_.calls("v_store_transposed");
    if (ranges::contains(further, "pack") || functions_.calls("v_copy_transposed") || lines || windows)
      out += fmt::format("\n{}", simd("transpose"));
    if (lines) out += simd("lines");
    if (functions_.calls("v_fill")) out += fmt::format("\n{}", simd("fill"));
    if (gradients || windows || ranges::contains(further, "tiles_products") || functions_.calls("v_fetch"))
      out += fmt::format("\n{}", simd("fetch"));
    for (const std::string_view part : further) out += fmt::format("\n{}", simd(part));
    if (shares_) out += fmt::format("\n{}", simd("team"));
    if (gradients) out += fmt::format("\n{}", simd("gradient"));
    if (windows) out += fmt::format("\n{}", simd("windows"));
    out += "\n// ---- tables ----\n";
    out += tables_;
    out += "\n// ---- kernels: each call handles one index of the axis that is partitioned among threads ----\n";
    if (functions_.has_noinline())
      out += "// Those with tiles of sums stay functions: a caller's values would take registers that the sums need.\n";
    out += functions_.print();
    out += offsets();
    out += "\n}  // namespace\n\n// ---- entry points: the kernels in order, over planned scratch memory ----\n";
    out += entries;
    out += "\n";
    out += simd(target_.end);
    if (!portable) out += fmt::format("\n#endif  // defined(__{}__)\n", name_of(target_.family));
    return out;
  }

  const std::map<std::string, std::string>& standing() const { return functions_.standing(); }

 private:
  bool has_gemms_of(DType dtype) const {
    const auto has = [&](const Plan& plan) {
      return ranges::any_of(plan.program.kernels, [&](const Kernel& k) {
        return factors_on(k, target_) == dtype ||
               ranges::any_of(k.fused.parts, [&](const Kernel& part) { return factors_on(part, target_) == dtype; });
      });
    };
    return ranges::any_of(plans_, [&](const Plan& plan) { return has(plan) || ranges::any_of(plan.folded, has); });
  }

  /// The texts that GEMMs need beyond the vectors.
  std::vector<std::string_view> parts() const {
    std::vector<std::string_view> all;
    const bool stored = ranges::any_of(plans_, [](const Plan& plan) {
      return ranges::any_of(plan.program.tensors, [](const Tensor& t) { return t.element == DType::bf16; });
    });
    const bool int4 = has_gemms_of(DType::int4), bf16 = stored || has_gemms_of(DType::bf16) || int4;
    const auto add = [&](const Few<std::string_view>& texts) {
      for (const std::string_view text : texts)
        if (!ranges::contains(all, text)) all.push_back(text);
    };
    if (bf16) add(target_.bf16);
    if (has_gemms_of(DType::int8)) add(target_.int8);
    if (int4) add(target_.int4);
    if (ranges::any_of(packed_.entries,
                       [](const PackedEntry& e) { return e.element == DType::real && e.packing == Packing::panels; }))
      all.push_back("pack");
    if (ranges::any_of(packed_.entries, [](const PackedEntry& e) { return e.taps > 1; })) all.push_back("pack_taps");
    if (ranges::any_of(packed_.entries, [](const PackedEntry& e) { return e.element == DType::bf16; }))
      all.push_back(target_.pack_bf16);
    for (const char* const store : {"bf16", "int8"})
      if (functions_.calls(fmt::format("v_load_some_{}", store)) ||
          functions_.calls(fmt::format("v_store_some_{}", store)))
        all.push_back(store == std::string_view("bf16") ? "unroll_bf16" : "unroll_int8");
    if (functions_.calls("each_widened")) all.push_back("widened");
    return all;
  }

  // ---- kernels, each text once --------------------------------------------------------------------------------

  Put put(const Plan& plan) {
    return [this, &plan](tree::Function f) { return functions_.place(std::move(f), suffix_of(plan.program)); };
  }

  // ---- an entry point ------------------------------------------------------------------------------------------

  std::string entry(const Plan& plan) {
    tree::Function f;
    f.linkage = "";
    f.name = fmt::format("{}_{}_{}", model_, plan.program.name, target_.name);
    f.parameters = entry_parameters(plan.program, real_);
    if (reports(plan)) append_callback(f.parameters);
    // "mean_sum": of another program the kernel that combines, here what is summed.
    std::set<std::string> taken = functions_.names();
    for (const tree::Parameter& p : f.parameters) taken.insert(p.name);
    f.body = declare_scratch(plan, std::move(taken));
    if (plan.scratch.per_batch)
      f.body.insert(f.body.begin(), tree::comment(fmt::format("Scratch memory: what is of images lies every {} reals.",
                                                              plan.scratch.per_batch)));
    finished_ = reports(plan) ? finished_ranges(plan, arena_) : std::vector<FinishedRange>{};
    add_stages(f, plan);
    if (plan.program.kind == ProgramKind::forward)
      forward_ = f;
    else if (plan.program.kind == ProgramKind::evaluate)
      call_forward(f);
    return tree::print(f);
  }

  /// Begins an evaluation with a call of the forward pass, where it begins with the same calls in the same memory.
  void call_forward(tree::Function& f) const {
    const auto declares = [](const tree::Statement& s) {
      return s.kind == tree::Statement::Kind::declare || s.kind == tree::Statement::Kind::comment;
    };
    const auto has = [](const auto& all, const auto& one) {
      return ranges::any_of(all, [&](const tree::Statement& s) {
        return s.name == one.name && tree::print(s.value) == tree::print(one.value);
      });
    };
    const auto passed = [&](const tree::Parameter& p) {
      return ranges::contains(f.parameters, p.name, &tree::Parameter::name);
    };
    const auto split = [&](const Block& body) {
      const auto begin = ranges::find_if_not(body, declares);
      return std::pair{Block(body.begin(), begin), Block(begin, body.end())};
    };
    const auto [first, rest] = split(f.body);
    const auto [declared, forward] = split(forward_.body);
    for (const tree::Statement& s : declared)
      if (s.kind == tree::Statement::Kind::declare && !has(first, s)) return;
    if (forward.empty() || !ranges::all_of(forward_.parameters, passed)) return;
    std::optional<Block> behind = behind_prefix(forward, rest);
    // What lies in the memory of the image at hand alone is gone.
    if (!behind || uses(*behind, "own") || uses(*behind, "place")) return;
    std::vector<Expr> arguments;
    for (const tree::Parameter& p : forward_.parameters) arguments.push_back(name(p.name));
    Block body;
    for (std::size_t i = 0; i < first.size(); ++i)
      if (first[i].kind == tree::Statement::Kind::comment || uses(*behind, first[i].name)) body.push_back(first[i]);
    body.push_back(tree::evaluate(call(forward_.name, std::move(arguments))));
    body.insert(body.end(), behind->begin(), behind->end());
    f.body = std::move(body);
  }

  /// What stands behind the statements of `prefix`, with the loops and declarations around it; nothing where `whole`
  /// does not begin with them.
  static std::optional<Block> behind_prefix(const Block& prefix, const Block& whole) {
    Block behind, declared;
    std::size_t at = 0;
    for (; at < prefix.size() && at < whole.size(); ++at) {
      if (tree::print({prefix[at]}, 0) == tree::print({whole[at]}, 0)) {
        if (whole[at].kind == tree::Statement::Kind::declare) declared.push_back(whole[at]);
        continue;
      }
      tree::Statement head = prefix[at], around = whole[at];
      const std::optional<Block> inside = behind_prefix(head.body, around.body);
      head.body = around.body = {};
      if (at + 1 < prefix.size() || !inside || tree::print({head}, 0) != tree::print({around}, 0)) return {};
      around.body = *inside;
      behind.push_back(std::move(around));
      ++at;
      break;
    }
    if (at < prefix.size()) return {};
    behind.insert(behind.end(), whole.begin() + at, whole.end());
    std::erase_if(declared, [&](const tree::Statement& s) { return !uses(behind, s.name); });
    behind.insert(behind.begin(), declared.begin(), declared.end());
    return behind;
  }

  /// Behind what stands in its body already.
  void add_stages(tree::Function& f, const Plan& plan) {
    Block all = stages(plan, 0);
    if (plan.program.groups) all = group_after_group(std::move(all));
    if (uses(all, "place")) f.body.push_back(tree::declare("std::int64_t", "place", integer(-1)));
    if (uses(all, "parts")) {
      f.body.push_back(tree::declare("const std::int64_t", "parts", call("threads", {})));
      shares_ = true;
    }
    f.body.insert(f.body.end(), all.begin(), all.end());
    std::set<std::string> known = known_names();
    known.insert(entry_names.begin(), entry_names.end());
    known.insert(functions_.names().begin(), functions_.names().end());
    known.merge(constants());
    tree::check(f, known);
  }

  bool reports(const Plan& plan) const { return distributed_ && plan.program.kind == ProgramKind::loss_and_gradients; }

  /// Calls that say which gradients are final behind a stage.
  Block report(const Plan& plan, int stage, bool each_pass) const override {
    Block calls;
    for (const FinishedRange& range : finished_) {
      if (range.stage != stage || range.each_pass != each_pass) continue;
      const auto at = [&](std::int64_t reals) {
        return each_pass ? tree::binary("-", integer(reals), name("layer") * range.stride) : integer(reals);
      };
      calls.push_back(tree::evaluate(call("ready", {name("context"), at(range.from), at(range.to)})));
    }
    if (calls.empty()) return {};
    Expr wanted = name("ready");
    if (plan.program.groups)
      wanted = tree::binary("&&", wanted, tree::binary("==", name("group.end"), integer(batch_chunks)));
    return {tree::when(std::move(wanted), std::move(calls))};
  }

  /// A program whose scratch memory has room for a part of the batch.
  static Block group_after_group(Block stages) {
    stages.insert(stages.begin(), tree::declare("const Group", "group",
                                                call("group_of", {name("batch"), name("chunks"), name("turn")})));
    return {tree::comment(
                "Group after group of images: forward, backward, and their gradients added to those before them."),
            tree::declare("const std::int64_t", "chunks", call("chunks_of", {name("batch"), name("at_once")})),
            tree::loop("turn", integer(0),
                       tree::binary("<", tree::binary("*", name("turn"), name("chunks")), integer(batch_chunks)), 1,
                       std::move(stages))};
  }

  /// The functions that compute folded values: one for each program that reads some, of whatever layer, which no
  /// program before it does. They read packed parameters as well.
  std::string folds() {
    std::string out;
    std::set<std::pair<const PackedEntry*, int>> computed;  // with the layer
    for (const Plan& plan : plans_)
      for (const Plan& folded : plan.folded) {
        const std::size_t before = computed.size();
        for (const Tensor& t : folded.program.tensors)
          for (int layer = 0; t.packing == Packing::folded && layer < t.slots; ++layer)
            computed.insert({packed_.find(packed_copy(folded.program, t, arena_)), layer});
        if (computed.size() == before) continue;
        tree::Function f;
        f.linkage = "static";
        f.name = folds_.emplace_back(fmt::format("fold_constants_of_{}", plan.program.name));
        f.parameters = pack_parameters(real_);
        std::set<std::string> taken = functions_.names();
        taken.insert({"parameters", "packed", "scratch"});
        const Block places = declare_scratch(folded, std::move(taken));
        if (!places.empty())
          f.body.push_back(tree::declare(real_ + "* const", "scratch", name("packed") + integer(packed_.scratch)));
        f.body.insert(f.body.end(), places.begin(), places.end());
        finished_.clear();
        add_stages(f, folded);
        for (tree::Parameter& p : f.parameters)  // of places alone, or of folded values, no parameter is read
          if (!tree::uses(f.body, p.name)) p.type.insert(0, "[[maybe_unused]] ");
        out += "\n" + tree::print(f);
      }
    return out;
  }

  /// Calls them.
  Block call_folds() const {
    Block b;
    for (const std::string& fold : folds_)
      b.push_back(tree::evaluate(call(fold, {name("parameters"), name("packed")})));
    return b;
  }

  /// The functions that pack every parameter that GEMMs read into panels, and copy the others that are read where
  /// nothing is trained: what inference reads and, where the model is trained, all.
  std::string packs() {
    const auto function = [&](const std::string& what, const std::string& before, Block body) {
      tree::Function f;
      f.linkage = "";
      f.name = fmt::format("{}_{}_{}", model_, what, target_.name);
      f.parameters = pack_parameters(real_);
      if (!before.empty()) f.body.push_back(tree::evaluate(call(before, {name("parameters"), name("packed")})));
      f.body.insert(f.body.end(), body.begin(), body.end());
      std::set<std::string> known = Packer::functions();
      known.insert(before);
      known.insert(folds_.begin(), folds_.end());
      tree::check(f, known);
      return f;
    };
    std::string out = folds();
    std::string rest;
    if (Block others = packer_.rest(); !others.empty()) {
      tree::Function f = function("", "", std::move(others));
      f.linkage = "static";
      f.name = rest = pack_rest;
      out += "\n" + tree::print(f);
    }
    Block for_inference = packer_.panels(false);
    for (tree::Statement& fold : call_folds()) for_inference.push_back(std::move(fold));
    const tree::Function forward = function("pack_forward", rest, std::move(for_inference));
    out += "\n" + tree::print(forward);
    if (trains(plans_)) out += "\n" + tree::print(function("pack", forward.name, packer_.panels(true)));
    return out;
  }

  /// The update of all weights in panels, which are packed on the way, and then the other copies.
  std::string update_and_pack(const Plan& plan) {
    tree::Function f;
    f.linkage = "";
    f.name = fmt::format("{}_update_and_pack_{}", model_, target_.name);
    f.parameters = update_and_pack_parameters(plan.program, real_);
    bool spares = false;  // some weight from decay
    const auto update = [&](const Expr& first, const Expr& last, bool decays) {
      const Emitted e = emit(plan, 0, target_, false, put(plan)).front();
      std::vector<Expr> arguments{first, last};
      for (const Argument& a : e.arguments) {
        arguments.push_back(pointer(plan, 0, a));
        if (decays || arguments.back()->text != "decay") continue;
        arguments.back() = name("&none");
        spares = true;
      }
      return tree::evaluate(call(functions_.place(e.function, suffix_of(plan.program)), std::move(arguments)));
    };
    const Block body = packer_.updated(update);
    if (spares) f.body.push_back(tree::declare("const " + real_, "none", integer(0)));
    f.body.insert(f.body.end(), body.begin(), body.end());
    if (!packer_.rest().empty())
      f.body.push_back(tree::evaluate(call(pack_rest, {name("parameters"), name("packed")})));
    for (tree::Statement& fold : call_folds()) f.body.push_back(std::move(fold));
    std::set<std::string> known = Packer::functions();
    known.insert(folds_.begin(), folds_.end());
    known.insert(entry_names.begin(), entry_names.end());
    known.insert(functions_.names().begin(), functions_.names().end());
    known.insert({"&none", pack_rest});
    tree::check(f, known);
    return tree::print(f);
  }

  Place place_of(const Plan&, const Buffer& buffer) const override {
    return {integer(buffer.offset), {buffer.slot, 0}};
  }

  Expr packed(const Plan& plan, const Tensor& t) override {
    const PackedEntry copy = packed_copy(plan.program, t, arena_), &entry = *packed_.find(copy);
    Expr base = name("packed") + offset_of("packed_at", entry.key, entry.offset);
    if (copy.first > entry.first) base = base + integer((copy.first - entry.first) * entry.reals);
    if (copy.count() > 1) base = base + name("layer") * entry.reals;
    return cast(t.element, std::move(base));
  }

  /// One stage: kernels that share a loop over images or chunks, then what adds up their partial sums.
  void run(const Plan& plan, const Stage& stage, Block& b) override {
    Block shared, after;
    std::string index;
    Expr from = integer(0), count;
    std::int64_t step = 1;
    const bool groups = plan.program.groups;
    const Expr images = name(groups ? "group.images" : "batch");
    const bool in_team = goes_in_teams(plan, stage);
    Block alone;  // what the team's first thread does while the others wait
    const auto first_alone = [&] {
      if (alone.empty()) return;
      shared.push_back(tree::each("team.alone", "", nullptr, {}, std::exchange(alone, {})));
    };
    for (const Item& item : stage.items) {
      const Kernel& k = plan.program.kernels[item.kernel];
      for (const Emitted& e : emit(plan, item.kernel, target_, in_team, put(plan))) {
        const char* const first_image = in_team ? "team.first" : "place";
        std::vector<Expr> arguments;
        std::string own;
        Expr own_count;
        if (e.tasks == Emitted::Tasks::images) {
          own = "image";
          own_count = images;
          if (e.shared) arguments.push_back(name("team"));
        } else if (e.tasks == Emitted::Tasks::points) {
          own = tree::variable(k.axes[e.parallel].name);
          own_count = in_batch(extent(k.axes[e.parallel].dim));
          arguments.push_back(name(own));
        } else if (e.tasks == Emitted::Tasks::blocks) {
          own = "begin";
          own_count = traits_of(plan.program.kind).updates ? name("last") : in_batch(extent(k.axes[e.parallel].dim));
          arguments = {name("begin"), tree::least(own_count, name("begin") + integer(e.block))};
          step = e.block;
        } else if (e.tasks == Emitted::Tasks::parts) {
          own = "part";
          own_count = name("parts");
          const std::int64_t points = k.axes[e.parallel].dim.value();
          for (const Expr& part : {name("part"), name("part") + integer(1)}) {
            Expr at = call("share", {integer(points), integer(e.block), part, name("parts")});
            if (points % e.block) at = tree::least(integer(points), std::move(at));
            arguments.push_back(std::move(at));
          }
        } else if (e.tasks == Emitted::Tasks::chunks) {
          own = "chunk";
          from = groups ? name("group.chunk") : integer(0);
          own_count = groups ? name("group.end") : integer(batch_chunks);
          arguments.push_back(name("chunk"));
        }
        for (const tree::Parameter& p : e.function.parameters) {
          if (p.name == "image" && groups)
            arguments.push_back(name("group.first") + name("image"));
          else if (p.name == "batch" || p.name == "group" || p.name == "image" || p.name == "layer")
            arguments.push_back(name(p.name));
        }
        for (const Argument& a : e.arguments) {
          Expr p = pointer(plan, item.kernel, a);
          if (groups && a.tensor.valid() && plan.buffer_of[a.tensor] < 0)
            p = p + name("group.first") * image_stride(plan, a);
          if (e.tasks == Emitted::Tasks::images) {
            const std::int64_t stride = image_stride(plan, a);
            const bool temporary = is_temporary(plan, a);
            if (stride > 0 && stride == plan.scratch.per_batch)
              p = p + name(temporary ? "own" : "here");
            else
              p = p + name(temporary ? first_image : "image") * stride;
          }
          arguments.push_back(std::move(p));
        }
        tree::Statement statement =
            tree::evaluate(call(functions_.place(e.function, suffix_of(plan.program)), std::move(arguments)));
        const bool summing = stage.tasks == Tasks::chunks && e.tasks != Emitted::Tasks::chunks;
        if (!summing) {
          index = own;
          count = own_count;
          if (in_team && !e.shared) {
            alone.push_back(std::move(statement));
            continue;
          }
          first_alone();
          shared.push_back(std::move(statement));
        } else if (own.empty()) {
          after.push_back(std::move(statement));
        } else {
          parallel(after, own, integer(0), own_count, 1, {std::move(statement)});
        }
      }
    }
    first_alone();
    // Where the image's values lie, and what only one image at a time needs.
    for (const auto& [offset, which] : {std::pair{"own", in_team ? "team.first" : "place"}, {"here", "image"}})
      if (uses(shared, offset))
        shared.insert(shared.begin(),
                      tree::declare("const std::int64_t", offset, name(which) * plan.scratch.per_batch));
    if (in_team) {
      shares_ = true;
      b.push_back(tree::each("each_image", "", images, {{"const Team&", "team"}, {"const std::int64_t", "image"}},
                             std::move(shared)));
      return;
    }
    std::string clause;
    if (uses(shared, "place")) {
      shared.insert(shared.begin(),
                    tree::when(tree::binary("<", name("place"), integer(0)), {tree::assign("place", name("image"))}));
      clause = " firstprivate(place)";
    }
    const bool of_range = traits_of(plan.program.kind).updates;
    if (index.empty())
      b.insert(b.end(), shared.begin(), shared.end());
    else
      parallel(b, index, of_range ? name("first") : from, count, step, std::move(shared),
               of_range ? " if (last - first > 65536)" : clause);
    b.insert(b.end(), after.begin(), after.end());
  }

  /// Whether several threads work on one image together, where there are fewer images than threads.
  static bool goes_in_teams(const Plan& plan, const Stage& stage) {
    constexpr std::int64_t least = 1 << 20;  // points: below, nobody waits for one image
    std::int64_t points = 0;
    for (const Item& item : stage.items) points += points_of_image(plan.program.kernels[item.kernel]);
    return stage.tasks == Tasks::images && points >= least;
  }

  /// Whether it lies in the arena of the first image that the thread works on.
  static bool is_temporary(const Plan& plan, const Argument& a) {
    const int at = plan.buffer_of[a.tensor];
    return at >= 0 && plan.buffers[at].temporary;
  }

  /// From an image's values of a tensor to the next one's; 0 for what all images share.
  static std::int64_t image_stride(const Plan& plan, const Argument& a) {
    const Tensor& t = plan.program.tensors[a.tensor];
    for (std::size_t d = 0; d < t.shape.size(); ++d)
      if (!t.shape[d].known()) return plan.layouts[a.tensor].stride[d];
    return 0;
  }

  static void parallel(Block& b, const std::string& index, const Expr& first, const Expr& end, std::int64_t step,
                       Block body, const std::string& clause = "") {
    b.push_back(tree::pragma("omp parallel for schedule(static)" + clause));
    b.push_back(tree::loop(index, first, tree::binary("<", name(index), end), step, std::move(body)));
  }

  const std::string& model_;
  const std::vector<Plan>& plans_;
  const Arena& arena_;
  const PackedArena& packed_;
  const Target& target_;
  std::string real_;
  bool distributed_;
  Packer packer_;
  std::vector<FinishedRange> finished_;  ///< of the entry point at hand
  std::vector<std::string> folds_;       ///< functions that compute folded values, in the order in which they run
  bool shares_ = false;                  ///< images or rows among the threads
  tree::Function forward_;               ///< the entry point of that name
};

}  // namespace

std::string emit_file(const std::string& model, const std::vector<Plan>& plans, const Arena& arena,
                      const PackedArena& packed, const Target& target, const std::string& real, bool distributed,
                      std::map<std::string, std::string>* standing) {
  File file(model, plans, arena, packed, target, real, distributed);
  std::string text = file.run();
  if (standing) *standing = file.standing();
  return text;
}

}  // namespace tessera::codegen::cpu
