// write_net DIR [PART...]: emits everything that tests/net/emitted.sha256 has a hash of, as DIR/MODEL/VARIANT/FILE.
//
//   MODEL    every one of tests/declared; "cuda": the models of tests/cuda whose tiles are chosen for them; "cases":
//   those
//            of tests/kernels, one after the other in a file for each kind of file; "rows", "vq_rows":
//            operator tests
//   VARIANT  the precision of matrix products; with "_inference" of the declaration without its loss
//   FILE     each emitted file, for all instruction sets and CUDA; graphs.txt, kernels.txt, plans.txt and
//   cuda_plans.txt
//            hold the text of the stages, as --dump writes them
//
// With PARTs only these of MODEL are written. All processors work. write_net --types lists the classes of
// tests/declared, --sources prints the files of all declarations, whose lines are above kernels.
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

#include "codegen/cpu/file.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/emit/header.hpp"
#include "codegen/passes/declaration_lines.hpp"
#include "codegen/passes/subgraph.hpp"
#include "odd_tiles.hpp"
#include "tests/cuda/cuda_models.hpp"
#include "tests/declared/models.hpp"
#include "tests/kernels/generated_cases.hpp"
#include "tests/onnx/row_models.hpp"
#include "tests/vq/rows.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;
using codegen::GeneratorOptions;
using codegen::Precision;
using Files = std::map<std::string, std::string>;

void write(const fs::path& folder, const Files& files) {
  fs::create_directories(folder);
  for (const auto& [name, text] : files) {
    std::ofstream out(folder / name, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + (folder / name).string());
  }
}

const std::pair<const char*, Precision> precisions[] = {
    {"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"int8", Precision::int8}, {"int4", Precision::int4}};

GeneratorOptions options_of(Precision precision) {
  GeneratorOptions options;
  options.precision = precision;
  for (const codegen::Isa& isa : codegen::isas)
    if (isa.precisions.contains(precision)) options.isas.emplace_back(isa.name);
  options.cuda = !codegen::quantizes(precision);
  return options;
}

/// What generate() returns, and the text of the stages.
Files emitted(const graph::Graph& traced, GeneratorOptions options) {
  Files stages;
  options.dump = [&](const std::string& stage, const std::string& text) {
    std::string level = "graphs.txt";
    for (const char* ending : {"_kernels", "_plan", "_cuda_plan"})
      if (stage.ends_with(ending)) level = std::string(ending + 1) + (stage.ends_with("plan") ? "s.txt" : ".txt");
    stages[level] += "== " + stage + "\n" + text;
  };
  Files files = codegen::generate(traced, options);
  files.merge(stages);
  return files;
}

bool has_loss(const graph::Graph& traced) {
  return std::any_of(traced.outputs.begin(), traced.outputs.end(),
                     [](const graph::Output& o) { return o.kind == graph::Output::Kind::loss; });
}

/// A program makes a row of numbers of a picture, and trains on labels.
bool has_program(const graph::Graph& traced) {
  if (!codegen::takes_labels(traced)) return false;
  const auto rank = [&](graph::NodeId id) { return traced.nodes[static_cast<std::size_t>(id)].shape.size(); };
  for (const graph::Node& n : traced.nodes)
    if (n.op == graph::Op::input && n.name == "images" && n.shape.size() != 4) return false;
  return std::all_of(traced.outputs.begin(), traced.outputs.end(),
                     [&](const graph::Output& o) { return o.name != "outputs" || rank(o.node) == 2; });
}

/// "tessera::models::CifarVit<{}>" -> "CifarVit"
std::string short_name(std::string_view type) {
  type = type.substr(0, type.find('<'));
  return std::string(type.substr(type.rfind(':') + 1));
}

struct Job {
  fs::path folder;  ///< MODEL/VARIANT
  std::function<Files()> emit;
};

void add_declared(std::vector<Job>& jobs, const codegen::DeclaredModel& model) {
  for (const auto& [name, precision] : precisions)
    for (const bool inference : {false, true}) {
      const auto emit = [model, precision = precision, inference] {
        graph::Graph traced = model.trace("model");
        GeneratorOptions options = options_of(precision);
        const bool trains = has_loss(traced);
        if (precision == Precision::int4 && trains && !inference) return Files{};  // training is that of int8
        if (inference) {
          if (!trains) return Files{};  // it is so by itself
          traced = codegen::subgraph(traced, {"outputs"});
        }
        options.train = has_program(traced);
        options.cuda = options.cuda && !codegen::takes_output_gradients(traced);
        return emitted(traced, options);
      };
      jobs.push_back({fs::path(short_name(model.type)) / (std::string(name) + (inference ? "_inference" : "")), emit});
    }
}

/// The cases' files of a kind, one after the other.
Files emitted_cases(const GeneratorOptions& options) {
  Files all;
  for (const GeneratedCase& c : generated_cases()) {
    Sketch sketch;
    c.record(sketch);
    sketch.graph.name = c.name;
    for (const auto& [file, text] : emitted(sketch.graph, options)) {
      const std::string kind = file.starts_with(c.name) ? "case" + file.substr(c.name.size()) : file;
      all[kind] += "==== " + c.name + "\n" + text;
    }
  }
  return all;
}

void add_cases(std::vector<Job>& jobs) {
  for (const auto& [name, precision] : precisions) {
    GeneratorOptions options = options_of(precision);
    options.tiles = {{"wgmma:", "64x128"}};  // which such sizes do not suggest
    jobs.push_back({fs::path("cases") / name, [options] { return emitted_cases(options); }});
  }
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.real = "double";
  jobs.push_back({"cases/double", [options] { return emitted_cases(options); }});
}

Files emitted_rows(const std::string& name, const std::vector<RecordedRow>& rows) {
  const codegen::ModelFiles m =
      row_models(name, rows, codegen::targets_named(options_of(Precision::fp32).isas, Precision::fp32));
  Files files{{name + "_kernels.h", codegen::emit_kernels_header(m)}};
  for (const codegen::Plan& plan : m.plans) files["plans.txt"] += "== " + plan.program.name + "\n" + print(plan);
  for (const codegen::Target& target : m.targets)
    files[name + "_" + std::string(target.name) + ".cpp"] =
        codegen::cpu::emit_file(m.name, m.plans, m.arena, m.packed, target, m.real);
  return files;
}

void add_cuda(std::vector<Job>& jobs, const CudaModel& model) {
  if (model.tiles.empty() && model.passes.disabled.empty() && model.passes.values.empty()) return;  // as declared
  GeneratorOptions options = options_of(model.traced.name.ends_with("_bf16") ? Precision::bf16 : Precision::fp32);
  options.tiles = model.tiles;
  options.disabled_passes = model.passes.disabled;
  options.pass_options = model.passes.values;
  jobs.push_back({fs::path("cuda") / model.traced.name, [=] { return emitted(model.traced, options); }});
}

Files emitted_in_odd_tiles(const codegen::DeclaredModel& deep) {
  GeneratorOptions options = options_of(Precision::fp32);
  options.tiles_of_cpu = odd_tiles;
  return emitted(deep.trace("model"), options);
}

std::vector<Job> all_jobs() {
  std::vector<Job> jobs;
  add_cases(jobs);  // what takes longest, first
  jobs.push_back({"rows/fp32", [] { return emitted_rows("rows", recorded_rows()); }});
  jobs.push_back({"vq_rows/fp32", [] { return emitted_rows("vq_rows", recorded_vq_rows()); }});
  for (const CudaModel& model : toy_cuda_models()) add_cuda(jobs, model);
  add_cuda(jobs, vit_tiny_again());
  for (const codegen::DeclaredModel& model : declared_models()) {
    add_declared(jobs, model);
    if (short_name(model.type) == "Deep")
      jobs.push_back({"Deep/fp32_odd_tiles", [model] { return emitted_in_odd_tiles(model); }});
  }
  return jobs;
}

int run(const fs::path& folder, const std::set<std::string>& parts) {
  std::vector<Job> jobs = all_jobs();
  std::set<fs::path> folders;
  for (const Job& job : jobs)
    if (!folders.insert(job.folder).second) throw std::runtime_error(job.folder.string() + " is there twice");
  if (!parts.empty())
    std::erase_if(jobs, [&](const Job& job) { return !parts.contains(job.folder.begin()->string()); });
  std::atomic<std::size_t> next = 0, failures = 0;
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < jobs.size();) try {
        if (const Files files = jobs[i].emit(); !files.empty()) write(folder / jobs[i].folder, files);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        std::cerr << jobs[i].folder.string() << ": " << error.what() << std::endl;
        ++failures;
      }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) workers.emplace_back(work);
    work();
  }
  return failures ? 1 : 0;
}

void print_sources() {
  std::set<std::string> files;
  const auto add = [&](const graph::Graph& traced) {
    for (const graph::Module& m : traced.modules)
      if (!m.library) files.insert(m.file);
  };
  for (const codegen::DeclaredModel& model : declared_models()) add(model.trace("model"));
  for (const CudaModel& model : toy_cuda_models()) add(model.traced);
  for (const std::string& file : files) std::cout << codegen::text_of_source(file);
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  const std::string_view first = argc < 2 ? "" : argv[1];
  if (first.empty() ||
      (first.starts_with("-") && first != "--types" && first != "--sources")) {  // no folder is called --help
    std::cerr << "usage: " << argv[0] << " DIR [PART...]" << std::endl;
    return 2;
  }
#if defined(M_TRIM_THRESHOLD)
  // What one model has freed, the next one asks for again.
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
#endif
  try {
    if (first == "--types") {
      for (const tessera::codegen::DeclaredModel& model : tessera::test::declared_models())
        std::cout << model.type << "\n";
      return 0;
    }
    if (first == "--sources") {
      tessera::test::print_sources();
      return 0;
    }
    return tessera::test::run(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
    return 1;
  }
}
