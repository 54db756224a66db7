#include "codegen/driver.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <range/v3/view/transform.hpp>
#include <sstream>
#include <system_error>

#include "codegen/cpu/file.hpp"
#include "codegen/cuda/file.hpp"
#include "codegen/cuda/plan.hpp"
#include "codegen/cuda/predict.hpp"
#include "codegen/cuda/program.hpp"
#include "codegen/embedded.hpp"
#include "codegen/emit/api.hpp"
#include "codegen/emit/contract.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/emit/header.hpp"
#include "codegen/emit/library.hpp"
#include "codegen/emit/page.hpp"
#include "codegen/emit/program.hpp"
#include "codegen/emit/summary.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/lower.hpp"
#include "codegen/kernels/print.hpp"
#include "codegen/kernels/verify.hpp"
#include "codegen/names.hpp"
#include "codegen/passes/flops.hpp"
#include "codegen/passes/headless.hpp"
#include "codegen/passes/optimizer.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/stepped.hpp"
#include "codegen/passes/verify.hpp"
#include "codegen/plan/tuned.hpp"

namespace tessera::codegen {

namespace fs = std::filesystem;

namespace {

/// Temporary file of a name of its own, then rename: a reader never sees half a file, nor does one of several writers
/// write into another's. Files that would not change keep their time stamp.
void write_file(const fs::path& path, const std::string& text) {
  if (std::ifstream old(path, std::ios::binary); old) {
    std::stringstream content;
    content << old.rdbuf();
    if (content.str() == text) return;
  }
  fs::path temporary = path;
  std::random_device random;
  temporary += fmt::format(".{:08x}{:08x}.tmp", random(), random());
  std::FILE* const out = std::fopen(temporary.c_str(), "wbx");  // x: O_EXCL, which follows no link
  if (!out) throw Error(fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  std::error_code failed;
  if (std::fclose(out) != 0 || !written) failed.assign(errno, std::generic_category());
  if (!failed) fs::rename(temporary, path, failed);
  if (!failed) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  throw Error(fmt::format("cannot write {}: {}", path.string(), failed.message()));
}

void make_folder(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) throw Error(fmt::format("cannot make the folder {}: {}", path.string(), failed.message()));
}

/// A table of tiles: a regular file of at most a mebibyte. Others, as pipes and devices, are not opened.
std::string read_table(const std::string& path) {
  constexpr std::streamsize most = 1 << 20;
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status)) throw Error(fmt::format("cannot read the table of tiles {}: there is no such file", path));
  if (!fs::is_regular_file(status)) throw Error(fmt::format("the table of tiles {} is not a regular file", path));
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(most) + 1, ' ');
  in.read(text.data(), most + 1);
  if (in.bad() || !in.is_open()) throw Error(fmt::format("cannot read the table of tiles {}", path));
  if (in.gcount() > most) throw Error(fmt::format("the table of tiles {} has more than {} bytes", path, most));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Hands a stage's text to whoever wants it; it is not printed for nobody.
template <class Stage>
void dump(const GeneratorOptions& options, const std::string& name, const Stage& stage) {
  if (options.dump) options.dump(name, print(stage));
}

/// Numbered files of `folder`, in the order in which the stages come.
Dump dump_into(const fs::path& folder) {
  make_folder(folder);
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
  PassOptions passes{.disabled = options.disabled_passes, .values = options.pass_options};
  if (options.dump_passes)
    passes.after = [&options, stage](std::string_view pass, const std::string& text) {
      options.dump_passes(fmt::format("{}_behind_{}", stage, pass), text);
    };
  return passes;
}

/// Every list of passes, in the order in which they run.
std::vector<PassList> all_passes(const PassOptions& options = {}) {
  return {{"what was traced", declaration_passes()},
          {"the declaration", narrowing_passes()},
          {"the graph of a program", program_passes(ProgramKind::forward)},
          {"that graph, on the way to primitives", primitive_passes()},
          {"primitives, for CPUs", cpu_graph_passes()},
          {"the kernels of a program, for CPUs", cpu_passes()},
          {"the kernels of a program, for CUDA", cuda::cuda_passes(options)}};
}

/// A graph of primitive ops through every stage behind it, each verified before the next reads it.
Plan plan_program(const graph::Graph& primitive, ProgramKind kind, const GeneratorOptions& options,
                  const std::vector<Target>& targets) {
  const std::string name(name_of(kind));
  const graph::Graph graph = passed(primitive, cpu_graph_passes(), passes_of(options, name));
  dump(options, name + "_graph", graph);
  KernelProgram kernels = lower(graph, kind);
  // Gradients need more than eight bits: they are of single precision.
  const bool in_fp32 = quantizes(options.precision) && differentiates(kernels);
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

/// A model with all its programs planned: what its files are written from.
struct Planned {
  ModelFiles files;
  std::vector<graph::Graph> primitives;  ///< by plan: what a GPU's plans are made from
};
Planned plan_model(const graph::Graph& traced, const GeneratorOptions& options) {
  check_names(traced);
  const PassOptions asked{.disabled = options.disabled_passes, .values = options.pass_options};
  check_options(asked, all_passes(asked));
  verify(traced);
  const graph::Graph declared = passed(traced, declaration_passes(), passes_of(options, "declaration"));
  dump(options, "declared", declared);
  const graph::Graph narrowed = passed(declared, narrowing_passes(), passes_of(options, "declaration"));
  dump(options, "narrowed", narrowed);

  Planned planned;
  ModelFiles& m = planned.files;
  const auto program = [&](const graph::Graph& declaration, ProgramKind kind) {
    return passed(declaration, program_passes(kind), passes_of(options, std::string(name_of(kind))));
  };
  const auto plan = [&](const graph::Graph& graph, ProgramKind kind) {
    planned.primitives.push_back(passed(graph, primitive_passes(), passes_of(options, std::string(name_of(kind)))));
    m.plans.push_back(plan_program(planned.primitives.back(), kind, options, m.targets));
  };
  m.name = declared.name;
  m.real = options.real;
  m.precision = options.precision;
  m.hash = hash_declaration(declared);
  m.forward = declared;
  m.targets = targets_of(options);
  use_tiles(options.tiles_of_cpu ? *options.tiles_of_cpu : embedded("plan/tiles.txt"), m.targets);
  const bool trains = has_loss(declared);
  const graph::Graph forward = program(narrowed, ProgramKind::forward);
  for (const graph::Node& n : forward.nodes)
    if (n.op == graph::Op::input && n.name != "images" && n.name == compared_with(declared))
      throw Error(fmt::format("the outputs of {} depend on the {}, which are there for the loss only", m.name, n.name));
  plan(forward, ProgramKind::forward);
  if (trains) {
    const graph::Graph joint = program(narrowed, ProgramKind::loss_and_gradients);
    dump(options, "joint", joint);
    if (!takes_output_gradients(declared) && !declared.recipe.phase)
      plan(program(narrowed, ProgramKind::evaluate), ProgramKind::evaluate);
    plan(joint, ProgramKind::loss_and_gradients);
  }
  m.arena = make_arena(declared, m.plans.back().program);
  if (m.arena.reals == 0)
    throw Error(
        fmt::format("the model {} has no parameters: there is nothing to {}", m.name, trains ? "train" : "load"));
  if (trains) {
    if (!takes_output_gradients(declared) && !takes_tokens(declared) && !declared.recipe.phase)
      plan(program(narrowed, ProgramKind::input_gradient), ProgramKind::input_gradient);
    plan(optimizer(declared.recipe, m.arena.reals, declared.name), ProgramKind::update);
  }

  // Whoever looks inside wants to see every token.
  m.inspected = program(declared, ProgramKind::inspect);
  plan(m.inspected, ProgramKind::inspect);
  m.has_head = has_head(declared);
  if (embeds(declared)) plan(program(declared, ProgramKind::embed), ProgramKind::embed);
  if (stepped(declared)) plan(program(declared, ProgramKind::step), ProgramKind::step);
  m.packed = make_packed_arena(m.plans, m.arena, m.targets);
  const auto primitives = [&](ProgramKind kind) {
    return passed(passed(declared, program_passes(kind)), primitive_passes());
  };
  m.module_flops = flops_by_module(primitives(ProgramKind::forward));
  m.forward_flops = flops(primitives(ProgramKind::forward));
  if (trains) m.gradient_flops = flops(primitives(ProgramKind::loss_and_gradients));
  return planned;
}

}  // namespace

std::string summarize(const graph::Graph& traced) {
  const bool is_model = ranges::contains(traced.nodes, input_of(traced), &graph::Node::name);
  if (is_model) return summary(plan_model(traced, {}).files);
  check_names(traced);
  return shape_table(passed(traced, declaration_passes()));
}

namespace {

cuda::Model model_for_gpu(const Planned& planned, const GeneratorOptions& options) {
  const ModelFiles& m = planned.files;
  cuda::Model model{m.name, {}, m.arena, m.forward.recipe, options.tiles, m.distributed};
  for (std::size_t i = 0; i < m.plans.size(); ++i) {
    if (traits_of(m.plans[i].program.kind).steps) continue;  // token by token is for a CPU
    KernelProgram kernels = lower(planned.primitives[i], m.plans[i].program.kind);
    kernels.precision = options.precision;
    const std::string stage = m.plans[i].program.name + "_cuda";
    model.plans.push_back(cuda::plan_for_gpu(std::move(kernels), passes_of(options, stage), options.tiles));
    dump(options, stage + "_plan", model.plans.back());
  }
  return model;
}

}  // namespace

namespace {

/// The C header and the kernels of a model; `standing`: cpu/file.hpp, of the last target.
void write_kernels(const ModelFiles& m, std::map<std::string, std::string>& files,
                   std::map<std::string, std::string>& standing) {
  files[m.name + ".h"] = emit_header(m);
  files[m.name + "_kernels.h"] = emit_kernels_header(m);
  files[m.name + ".cpp"] = emit_api(m);
  for (const Target& target : m.targets)
    files[fmt::format("{}_{}.cpp", m.name, target.name)] =
        cpu::emit_file(m.name, m.plans, m.arena, m.packed, target, m.real, m.distributed, &standing);
}

}  // namespace

std::string predict(const graph::Graph& traced, const GeneratorOptions& options, const std::string& architecture,
                    std::int64_t batch) {
  const Planned planned = plan_model(traced, options);
  const cuda::Model on_gpu = model_for_gpu(planned, options);
  cuda::Standing standing;
  cuda::emit_file(on_gpu, &standing);
  return cuda::predict(on_gpu, standing, architecture, batch ? batch : planned.files.forward.recipe.batch);
}

std::map<std::string, std::string> generate(const graph::Graph& traced, const GeneratorOptions& options) {
  Planned planned = plan_model(traced, options);
  planned.files.distributed = options.distributed && trains(planned.files.plans);
  const ModelFiles& m = planned.files;
  if (m.forward.recipe.phase && (options.train || options.distributed))
    throw Error(
        fmt::format("{} is a half of a training step, which has no {}", m.name,
                    options.train ? "program of its own (--train, TRAIN)" : "ranks (--distributed, DISTRIBUTED)"));
  if (options.train && takes_tokens(m.forward))
    throw Error(fmt::format("{} reads tokens: a program (--train, TRAIN) reads pictures; call {} from your own", m.name,
                            m.name + (trains(m.plans) ? "_train_step" : "_forward")));
  if (options.library && (m.image_shape().size() != 3 || (m.image_shape()[0] != 1 && m.image_shape()[0] != 3) ||
                          (m.output_shape().size() != 1 && !tells_depths(m))))
    throw Error(fmt::format(
        "{} makes [{}] of [{}]: a library (--library, SHARED) is for models that make a row of numbers of a "
        "picture, [1 or 3, height, width]",
        m.name, fmt::join(m.output_shape(), ", "), fmt::join(m.image_shape(), ", ")));
  if (options.embedding && !embeds(m.forward))
    throw Error(fmt::format("{} has no embedding: its outputs are not a linear map of a row of numbers", m.name));
  if (options.library && !options.embedding && !classifies(m) && !tells_depths(m))
    throw Error(fmt::format(
        "{} has no classes: its library (--library, SHARED) is one that embeds (--embedding, EMBED)", m.name));
  if (options.train && !trains(m.plans) &&
      (m.image_shape().size() != 3 || (m.output_shape().size() != 1 && !embeds(m.forward) && !tells_depths(m))))
    throw Error(
        fmt::format("{} makes [{}] of [{}]: a program (--train, TRAIN) is for models that make a row of numbers of a "
                    "picture, [channels, height, width]",
                    m.name, fmt::join(m.output_shape(), ", "), fmt::join(m.image_shape(), ", ")));
  if (options.serve && tells_depths(m))
    throw Error(fmt::format("{} tells depths, and a server (--serve, SERVE) answers with classes or features", m.name));
  if (options.train && (takes_targets(m.forward) || takes_output_gradients(m.forward)))
    throw Error(fmt::format("the loss of {} is {}: a program (--train, TRAIN) trains on labels; call {} from your own",
                            m.name, takes_targets(m.forward) ? "of targets" : "the caller's",
                            takes_targets(m.forward) ? m.name + "_train_step" : m.name + "_gradients"));
  if (options.cuda && takes_output_gradients(m.forward))
    throw Error(fmt::format("the loss of {} is the caller's, which --cuda does not have: declare one", m.name));
  if (const std::string idle = m.why_precision_is_idle(); options.note && !idle.empty()) options.note(idle);
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> standing;  // of the last target
  write_kernels(m, files, standing);
  if (options.library) {
    files[m.name + "_model.h"] = emit_model_header(m, options.embedding);
    files[m.name + "_model.cpp"] = emit_model(m, options.embedding);
    files[m.name + ".py"] = emit_python(m, options.embedding);
  }
  if (options.cuda) {
    const cuda::Model on_gpu = model_for_gpu(planned, options);
    files[m.name + "_cuda.h"] = cuda::emit_header(on_gpu);
    cuda::Standing standing_on_gpu;
    files[m.name + "_cuda.cu"] = cuda::emit_file(on_gpu, &standing_on_gpu);
    if (options.train) {
      files[m.name + "_cuda_program.cu"] = cuda::emit_program(on_gpu);
      files[m.name + "_cuda_predict.cpp"] = cuda::emit_prediction(on_gpu, standing_on_gpu);
    }
  }
  if (options.train) files[m.name + "_program.cpp"] = emit_program(m, options.cuda, options.serve);
  if (options.page)
    files[m.name + "_page.cpp"] =
        emit_page(m, m.targets.back(), files.at(fmt::format("{}_{}.cpp", m.name, m.targets.back().name)), standing);
  return files;
}

namespace {

void list_passes() {
  for (const PassList& list : all_passes()) {
    fmt::print("Passes over {}, in order:\n", list.over);
    for (const PassList::Row& pass : list.rows)
      fmt::print("  {:24}{}{}{}\n", pass.name, pass.does, pass.required ? " (cannot be left out)" : "",
                 pass.takes.empty() ? "" : fmt::format(" (--pass-option {}={})", pass.name, pass.takes));
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
  --serve        with --train: the program has the command serve, an HTTP server
  --distributed  with --train: the program runs as several ranks as well, which partition a step
  --library      write NAME_model.h and .cpp, the model with its weights as a C library, and NAME.py as well
  --embedding    with --library: the library embeds as well
  --page FILE    write the source of the program's page (summary --html) as well, into a place of its own
  --tiles FILE   tiles of matrix products, measured by bench/tune.py, in the place of the table that is built in
  --cuda         write the kernels for CUDA as well, and with --train what the program needs to use them
  --cuda-tile [KERNEL=][wgmma:]ROWSxCOLUMNS
                 the tile of a CUDA kernel's matrix product, or of all of them; else the sizes decide. wgmma: that of
                 its kernel for sm_90a; wgmma:none is none, so that sm_90a takes the other one.
  --predict GPU  instead of writing anything, print what each CUDA kernel should take on an A100 (sm_80), H200 (sm_90a)
                 or H100
  --batch N      with so many images (default: the recipe's batch)
  --real TYPE    float (default), or double: for checking gradients, with --isa scalar
  --precision P  what factors of matrix products are rounded to: fp32 (default), bf16, or, of those with a parameter
                 and where nothing is trained, int8, or int4 (the parameters, in groups of 32; what they meet, int8)
  --dump DIR     write the text of every stage to DIR: graphs and kernels, also behind each pass, and plans
  --disable-pass NAME
                 leave out a pass over graphs or kernels, for CPU and CUDA alike; may stand several times
  --pass-option NAME=VALUE
                 what a pass that takes a value is told; may stand several times
  --list-passes  the names of these passes, what they do and which values they take
  --help         this text
)";

}  // namespace

int generator_main(const graph::Graph& declared, int argc, char** argv) {
  try {
    GeneratorOptions options;
    options.note = [&](const std::string& sentence) {
      fmt::print(stderr, "{}: note: {}\n", shown(declared.name), sentence);
    };
    std::string out, architecture, page;
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
      } else if (option == "--pass-option") {
        const std::string told = value();
        const std::size_t equals = told.find('=');
        if (equals == std::string::npos) throw Error(fmt::format("--pass-option is NAME=VALUE, not {}", told));
        options.pass_options[told.substr(0, equals)] = told.substr(equals + 1);
      } else if (option == "--list-passes") {
        list_passes();
        return 0;
      } else if (option == "--train") {
        options.train = true;
      } else if (option == "--serve") {
        options.serve = true;
      } else if (option == "--distributed") {
        options.distributed = true;
      } else if (option == "--library") {
        options.library = true;
      } else if (option == "--embedding") {
        options.embedding = true;
      } else if (option == "--page") {
        page = value();
        options.page = true;
      } else if (option == "--tiles") {
        options.tiles_of_cpu = read_table(value());
      } else if (option == "--cuda") {
        options.cuda = true;
      } else if (option == "--cuda-tile") {
        std::string tile = value(), kernel;
        if (const std::size_t named = tile.find('='); named != std::string::npos) {
          kernel = tile.substr(0, named);
          tile.erase(0, named + 1);
        }
        const std::string kind = tile.starts_with("wgmma:") ? "wgmma:" : "";
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
        if (at == precisions.end())
          throw Error(fmt::format("--precision is fp32, bf16, int8 or int4, not {}", precision));
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
    if (options.cuda && quantizes(options.precision)) throw Error("--cuda works with --precision fp32 or bf16 only");
    if (!architecture.empty()) {
      fmt::print("{}", predict(declared, options, architecture, batch));
      return 0;
    }
    if (options.serve && !options.train) throw Error("--serve is for --train");
    if (options.distributed && !options.train) throw Error("--distributed is for --train");
    if (options.embedding && !options.library) throw Error("--embedding is for --library");
    if (options.library && options.real == "double") throw Error("--library works with --real float only");
    if (out.empty()) throw Error("--out DIR is missing: see --help");
    if (options.real == "double" && ranges::any_of(targets, [](const Target& t) { return t.lanes > 1; }))
      throw Error("--real double works with --isa scalar only");
    if (options.real == "double" && options.precision != Precision::fp32)
      throw Error("--precision bf16, int8 and int4 work with --real float only");
    if (options.real == "double" && options.cuda) throw Error("--cuda works with --real float only");
    std::map<std::string, std::string> files = generate(declared, options);
    make_folder(out);
    if (auto source = files.extract(declared.name + "_page.cpp")) {
      make_folder(fs::absolute(page).parent_path());
      write_file(page, source.mapped());
    }
    for (const auto& [name, text] : files) write_file(fs::path(out) / name, text);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", shown(declared.name), shown(e.what()));
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
    fmt::print(stderr, "{}: there is no model {}: {} without arguments lists those there are\n", shown(argv[2]),
               shown(argv[1]), argv[0]);
    return 1;
  }
  graph::Graph declared;
  try {
    declared = at->trace(argv[2]);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", shown(argv[2]), shown(e.what()));
    return 1;
  }
  argv[2] = argv[0];
  return generator_main(declared, argc - 2, argv + 2);
}

}  // namespace tessera::codegen
