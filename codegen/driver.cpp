#include "codegen/driver.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <range/v3/view/transform.hpp>
#include <sstream>

#include "codegen/cpu/file.hpp"
#include "codegen/cuda/file.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/cuda/predict.hpp"
#include "codegen/cuda/program.hpp"
#include "codegen/embedded.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/columns.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/flops.hpp"
#include "codegen/passes/inspect.hpp"
#include "codegen/passes/narrow.hpp"
#include "codegen/passes/optimizer.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/recompute.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/passes/verify.hpp"
#include "codegen/plan/tuned.hpp"

namespace tessera::codegen {

namespace fs = std::filesystem;

namespace {

/// Temporary file, then rename: a reader never sees half a file. Files that would not change keep their time stamp.
void write_file(const fs::path& path, const std::string& text) {
  if (std::ifstream old(path, std::ios::binary); old) {
    std::stringstream content;
    content << old.rdbuf();
    if (content.str() == text) return;
  }
  fs::path temporary = path;
  temporary += ".tmp";
  {
    std::ofstream out(temporary, std::ios::binary);
    out << text;
    out.flush();
    if (!out) {
      std::error_code ignored;
      fs::remove(temporary, ignored);
      throw Error(fmt::format("cannot write {}", path.string()));
    }
  }
  std::error_code failed;
  fs::rename(temporary, path, failed);
  if (failed) throw Error(fmt::format("cannot write {}: {}", path.string(), failed.message()));
}

/// Hands a stage's text to whoever wants it; it is not printed for nobody.
template <class Stage>
void dump(const GeneratorOptions& options, const std::string& name, const Stage& stage) {
  if (options.dump) options.dump(name, print(stage));
}

/// Numbered files of `folder`, in the order in which the stages come.
Dump dump_into(const fs::path& folder) {
  fs::create_directories(folder);
  return [folder, count = std::make_shared<int>(0)](const std::string& stage, const std::string& text) {
    write_file(folder / fmt::format("{:02}_{}.txt", ++*count, stage), text);  // copies count on together
  };
}

/// Of the graph as text, and of the numbers of its tables.
std::uint64_t hash_declaration(const graph::Graph& graph) {
  std::string text = print(graph);
  for (const graph::Node& n : graph.nodes)
    for (double number : n.data) text += fmt::format(" {}", number);
  return hash_text(text);
}

/// `stage`: of which the name of a dump behind a pass is made.
PassOptions passes_of(const GeneratorOptions& options, const std::string& stage) {
  PassOptions passes{.disabled = options.disabled_passes};
  if (options.dump_passes)
    passes.after = [&options, stage](const Pass& pass, const KernelProgram& kernels) {
      options.dump_passes(fmt::format("{}_behind_{}", stage, pass.name), print(kernels));
    };
  return passes;
}

/// A graph of primitive ops through every stage behind it, each verified before the next reads it.
Plan plan_program(const graph::Graph& primitive, ProgramKind kind, const GeneratorOptions& options,
                  const std::vector<Target>& targets) {
  const std::string name(name_of(kind));
  const graph::Graph graph = bring_columns_innermost(primitive);
  verify(graph);
  dump(options, name + "_graph", graph);
  KernelProgram kernels = lower(graph, kind);
  // Gradients need more than eight bits: they are of single precision.
  const bool in_fp32 = options.precision == Precision::int8 && differentiates(kernels);
  kernels.precision = in_fp32 ? Precision::fp32 : options.precision;
  verify(kernels);
  dump(options, name + "_kernels", kernels);
  Plan plan = make_plan(std::move(kernels), targets, passes_of(options, name));
  dump(options, name + "_plan", plan);
  return plan;
}

std::vector<Target> targets_of(const GeneratorOptions& options) {
  return options.isas.empty() ? targets_of(options.precision) : targets_named(options.isas, options.precision);
}

/// Whether the declaration says what training makes small. Without it there is a forward pass alone.
bool has_loss(const graph::Graph& declared) {
  return ranges::contains(declared.outputs, graph::Output::Kind::loss, &graph::Output::kind);
}

/// What is differentiated: the recipe's training loss, where it has one of its own, in the place of the loss.
graph::Graph training(const graph::Graph& declared) {
  if (!softens(declared.recipe)) return declared;
  graph::Graph graph = subgraph(declared, {"outputs", "training_loss"});
  for (graph::Output& o : graph.outputs)
    if (o.kind == graph::Output::Kind::loss) o.name = "loss";
  return graph;
}

/// A model with all its programs planned: what its files are written from.
struct Planned {
  ModelFiles files;
  std::vector<graph::Graph> primitives;  ///< by plan: what a GPU's plans are made from
};
Planned plan_model(const graph::Graph& traced, const GeneratorOptions& options) {
  check_disabled(options.disabled_passes, {cpu_passes(), cuda::cuda_passes(options.tiles)});
  verify(traced);
  const graph::Graph declared = canonical_order(traced);
  verify(declared);
  dump(options, "declared", declared);
  const graph::Graph narrowed = narrow(declared);
  verify(narrowed);
  dump(options, "narrowed", narrowed);

  Planned planned;
  ModelFiles& m = planned.files;
  const auto plan = [&](const graph::Graph& graph, ProgramKind kind) {
    planned.primitives.push_back(simplify(decompose(graph)));
    verify(planned.primitives.back());
    m.plans.push_back(plan_program(recompute(planned.primitives.back()), kind, options, m.targets));
  };
  m.name = declared.name;
  m.real = options.real;
  m.hash = hash_declaration(declared);
  m.forward = declared;
  m.targets = targets_of(options);
  use_tiles(options.tiles_of_cpu ? *options.tiles_of_cpu : embedded("plan/tiles.txt"), m.targets);
  const bool trains = has_loss(declared);
  const graph::Graph evaluated =
      subgraph(without_dropout(narrowed),
               trains ? std::vector<std::string>{"outputs", "loss"} : std::vector<std::string>{"outputs"});
  const graph::Graph forward = subgraph(evaluated, {"outputs"});
  for (const graph::Node& n : forward.nodes)
    if (n.op == graph::Op::input && n.name == "labels")
      throw Error(fmt::format("the outputs of {} depend on the labels, which are there for the loss only", m.name));
  plan(forward, ProgramKind::forward);
  if (trains) {
    const graph::Graph joint = differentiate(training(narrowed), false);
    verify(joint);
    dump(options, "joint", joint);
    plan(evaluated, ProgramKind::evaluate);
    plan(joint, ProgramKind::loss_and_gradients);
  }
  m.arena = make_arena(declared, m.plans.back().program);
  if (m.arena.reals == 0)
    throw Error(
        fmt::format("the model {} has no parameters: there is nothing to {}", m.name, trains ? "train" : "load"));
  if (trains) {
    const graph::Graph inputs = subgraph(differentiate(evaluated, true), {"outputs", "loss", "images"});
    plan(inputs, ProgramKind::input_gradient);
    plan(optimizer(declared.recipe, m.arena.reals, declared.name), ProgramKind::update);
  }

  // Whoever looks inside wants to see every token.
  const graph::Graph whole = subgraph(without_dropout(declared), {"outputs"});
  m.inspected = inspected(whole);
  plan(m.inspected, ProgramKind::inspect);
  m.packed = make_packed_arena(m.plans, m.arena, m.targets);
  m.forward_flops = flops(simplify(decompose(whole)));
  if (trains) m.gradient_flops = flops(simplify(decompose(differentiate(training(declared), false))));
  return planned;
}

}  // namespace

std::string summarize(const graph::Graph& traced) {
  const bool is_model = ranges::contains(traced.nodes, "images", &graph::Node::name);
  return is_model ? summary(plan_model(traced, {}).files) : shape_table(canonical_order(traced));
}

namespace {

cuda::Model model_for_gpu(const Planned& planned, const GeneratorOptions& options) {
  const ModelFiles& m = planned.files;
  cuda::Model model{m.name, {}, m.arena, m.forward.recipe, options.tiles};
  for (std::size_t i = 0; i < m.plans.size(); ++i) {
    KernelProgram kernels = lower(planned.primitives[i], m.plans[i].program.kind);
    kernels.precision = options.precision;
    const std::string stage = m.plans[i].program.name + "_cuda";
    model.plans.push_back(cuda::plan_for_gpu(std::move(kernels), options.tiles, passes_of(options, stage)));
    dump(options, stage + "_plan", model.plans.back());
  }
  return model;
}

}  // namespace

std::string predict(const graph::Graph& traced, const GeneratorOptions& options, const std::string& architecture,
                    std::int64_t batch) {
  const Planned planned = plan_model(traced, options);
  return cuda::predict(model_for_gpu(planned, options), architecture,
                       batch ? batch : planned.files.forward.recipe.batch);
}

std::map<std::string, std::string> generate(const graph::Graph& traced, const GeneratorOptions& options) {
  const Planned planned = plan_model(traced, options);
  const ModelFiles& m = planned.files;
  if (options.train && !trains(m.plans) && (m.image_shape().size() != 3 || m.output_shape().size() != 1))
    throw Error(
        fmt::format("{} makes [{}] of [{}]: a program (--train, TRAIN) is for models that make a row of numbers of a "
                    "picture, [channels, height, width]",
                    m.name, fmt::join(m.output_shape(), ", "), fmt::join(m.image_shape(), ", ")));
  std::map<std::string, std::string> files;
  files[m.name + ".h"] = emit_header(m);
  files[m.name + "_kernels.h"] = emit_kernels_header(m);
  files[m.name + ".cpp"] = emit_api(m);
  for (const Target& target : m.targets)
    files[fmt::format("{}_{}.cpp", m.name, target.name)] =
        cpu::emit_file(m.name, m.plans, m.arena, m.packed, target, m.real);
  if (options.cuda) {
    const cuda::Model on_gpu = model_for_gpu(planned, options);
    files[m.name + "_cuda.h"] = cuda::emit_header(on_gpu);
    files[m.name + "_cuda.cu"] = cuda::emit_file(on_gpu);
    if (options.train) {
      files[m.name + "_cuda_program.cu"] = cuda::emit_program(on_gpu);
      files[m.name + "_cuda_predict.cpp"] = cuda::emit_prediction(on_gpu);
    }
  }
  if (options.train) files[m.name + "_program.cpp"] = emit_program(m, options.cuda);
  return files;
}

namespace {

void list_passes() {
  for (const auto& [target, passes] : {std::pair("CPU", cpu_passes()), std::pair("CUDA", cuda::cuda_passes({}))}) {
    fmt::print("Passes over the kernels of a program for {}, in order:\n", target);
    for (const Pass& pass : passes)
      fmt::print("  {:24}{}{}\n", pass.name, pass.does, pass.required ? " (cannot be left out)" : "");
  }
}

/// "scalar, avx2, avx512_bf16 (bf16)": the table, in lines of --help.
std::string isas_of_help() {
  std::string text;
  std::size_t column = 17;
  for (const Isa& isa : isas) {
    std::string word(isa.name);
    if (isa.precisions.size() < precisions.size())
      word += fmt::format(
          " ({})", fmt::join(isa.precisions | ranges::views::transform([](Precision p) { return name_of(p); }), ", "));
    if (!isa.by_default) word += fmt::format(" ({}, not by default)", name_of(isa.family));
    if (&isa != std::end(isas) - 1) word += ",";
    const bool fits = column + 1 + word.size() <= 120;
    if (!text.empty()) text += fits ? " " : "\n" + std::string(17, ' ');
    column = (fits ? column + 1 : 17) + word.size();
    text += word;
  }
  return text;
}

constexpr const char* usage = R"(Usage: {0} --out DIR [options]

Writes the sources of {1}: C header, kernels for each instruction set, program.

  --out DIR      folder to write to, made when it is missing
  --isa LIST     instruction sets, comma separated, in any order; {2} must be there (default: all that fit --precision)
                 {3}
  --train        write the program as well, with the training loop where the declaration has a loss
  --tiles FILE   tiles of matrix products, measured by bench/tune.py, in the place of the table that is built in
  --cuda         write the kernels for CUDA as well, and with --train what the program needs to use them
  --cuda-tile [KERNEL=][wgmma:]ROWSxCOLUMNS
                 the tile of a CUDA kernel's matrix product, or of all of them; else the sizes decide. wgmma: that of
                 its kernel for sm_90a; wgmma:none is none, so that sm_90a takes the other one.
                 attention_gradient:none: attention's backward pass is several kernels; attention_gradient:again: it
                 computes the probabilities again, which takes longer, and forward stores none
                 sums_of_rows:none: no product by warpgroups sums the gradient of a bias by the way
                 sums_in_norms:none: nor does the backward pass of a norm those of its weight, its bias and the biases
                 beside it; sums_in_norms:BLOCKS: it has so many blocks, whatever suits it
                 norm_inputs:none: the forward pass of a norm stores what backward reads of its result, which is else
                 computed again from the norm's input
                 norm_gradients:none: in bf16 the gradients that linear layers hand to norms stay in single precision
  --predict ARCH instead of writing anything, print what each CUDA kernel should take on sm_80 or sm_90a
  --batch N      with so many images (default: the recipe's batch)
  --real TYPE    float (default), or double: for checking gradients, with --isa scalar
  --precision P  what factors of matrix products are rounded to: fp32 (default), bf16, or, of those with a parameter
                 and where nothing is trained, int8
  --dump DIR     write the text of every stage to DIR: graphs, kernels, also behind each pass over them, plans
  --disable-pass NAME
                 leave out a pass over the kernels, for CPU and CUDA alike; may stand several times
  --list-passes  the names of these passes, and what they do
  --help         this text
)";

}  // namespace

int generator_main(const graph::Graph& declared, int argc, char** argv) {
  try {
    GeneratorOptions options;
    std::string out, architecture;
    std::int64_t batch = 0;
    for (int i = 1; i < argc; ++i) {
      const std::string option = argv[i];
      auto value = [&]() -> std::string {
        if (i + 1 >= argc) throw Error(fmt::format("{} needs a value", option));
        return argv[++i];
      };
      if (option == "--help") {
        fmt::print(usage, argv[0], declared.name, isas[0].name, isas_of_help());
        return 0;
      } else if (option == "--out") {
        out = value();
      } else if (option == "--dump") {
        options.dump = options.dump_passes = dump_into(value());
      } else if (option == "--disable-pass") {
        options.disabled_passes.insert(value());
      } else if (option == "--list-passes") {
        list_passes();
        return 0;
      } else if (option == "--train") {
        options.train = true;
      } else if (option == "--tiles") {
        const std::string file = value();
        std::ifstream in(file);
        std::stringstream table;
        table << in.rdbuf();
        if (!in) throw Error(fmt::format("cannot read the table of tiles {}", file));
        options.tiles_of_cpu = table.str();
      } else if (option == "--cuda") {
        options.cuda = true;
      } else if (option == "--cuda-tile") {
        std::string tile = value(), kernel;
        if (const std::size_t named = tile.find('='); named != std::string::npos) {
          kernel = tile.substr(0, named);
          tile.erase(0, named + 1);
        }
        std::string kind;
        for (const std::string named : {"wgmma:", cuda::without_attention_gradient, cuda::without_sums_of_rows,
                                        cuda::sums_in_norms, cuda::norm_inputs, cuda::norm_gradients})
          if (tile.starts_with(named)) kind = named;
        options.tiles[kind + kernel] = tile.substr(kind.size());
      } else if (option == "--predict") {
        architecture = value();
      } else if (option == "--batch") {
        const std::string images = value();
        std::from_chars(images.data(), images.data() + images.size(), batch);
        if (std::to_string(batch) != images || batch < 1)
          throw Error(fmt::format("--batch is a number of images, not {}", images));
      } else if (option == "--real") {
        options.real = value();
        if (options.real != "float" && options.real != "double")
          throw Error(fmt::format("--real is float or double, not {}", options.real));
      } else if (option == "--precision") {
        const std::string precision = value();
        const auto at = ranges::find_if(precisions, [&](Precision p) { return name_of(p) == precision; });
        if (at == precisions.end()) throw Error(fmt::format("--precision is fp32, bf16 or int8, not {}", precision));
        options.precision = *at;
      } else if (option == "--isa") {
        options.isas.clear();
        std::stringstream list(value() + ",");
        for (std::string isa; std::getline(list, isa, ',');) options.isas.push_back(isa);
      } else {
        throw Error(fmt::format("there is no option {}: see --help", option));
      }
    }
    const std::vector<Target> targets = targets_of(options);
    if (options.cuda && options.precision == Precision::int8)
      throw Error("--cuda works with --precision fp32 or bf16 only");
    if (!architecture.empty()) {
      fmt::print("{}", predict(declared, options, architecture, batch));
      return 0;
    }
    if (out.empty()) throw Error("--out DIR is missing: see --help");
    if (options.real == "double" && ranges::any_of(targets, [](const Target& t) { return t.lanes > 1; }))
      throw Error("--real double works with --isa scalar only");
    if (options.real == "double" && options.precision != Precision::fp32)
      throw Error("--precision bf16 and int8 work with --real float only");
    if (options.real == "double" && options.cuda) throw Error("--cuda works with --real float only");
    std::map<std::string, std::string> files = generate(declared, options);
    fs::create_directories(out);
    for (const auto& [name, text] : files) write_file(fs::path(out) / name, text);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", declared.name, e.what());
    return 1;
  }
}

int generator_main(std::span<const DeclaredModel> models, int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "Usage: {} MODEL NAME [options]\nMODEL is one of\n", argv[0]);
    for (const DeclaredModel& model : models) fmt::print(stderr, "  {}\n", model.type);
    return 1;
  }
  const auto at = ranges::find(models, std::string_view(argv[1]), &DeclaredModel::type);
  if (at == models.end()) {
    fmt::print(stderr, "{}: there is no model {}: {} without arguments lists those there are\n", argv[2], argv[1],
               argv[0]);
    return 1;
  }
  const graph::Graph declared = at->trace(argv[2]);
  argv[2] = argv[0];
  return generator_main(declared, argc - 2, argv + 2);
}

}  // namespace tessera::codegen
