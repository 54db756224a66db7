#include "runtime/program.hpp"

#include <unistd.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/cli/attention.hpp"
#include "runtime/cli/bench.hpp"
#include "runtime/cli/depth.hpp"
#include "runtime/cli/eval.hpp"
#include "runtime/cli/exchange.hpp"
#include "runtime/cli/features.hpp"
#include "runtime/cli/help.hpp"
#include "runtime/cli/pack.hpp"
#include "runtime/cli/predict.hpp"
#include "runtime/cli/summary.hpp"
#include "runtime/cli/train.hpp"
#include "runtime/cli/unknown_word.hpp"
#include "runtime/communicator.hpp"
#include "runtime/ending.hpp"
#include "runtime/environment.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/gpu.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/ranges.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

/// Ranks that differ in what decides the bits cannot share a run.
void demand_equal_ranks(const Communicator& ranks, const Model& model, int argc, char** argv) {
  if (ranks.alone()) return;
  std::string program, arguments;
  ranks.agree([&] {
    const Bytes content = read_file("/proc/self/exe", std::uint64_t{1} << 34);
    char library[64] = "";  // with the functions that learning rates and starting values are made by
#ifdef _CS_GNU_LIBC_VERSION
    ::confstr(_CS_GNU_LIBC_VERSION, library, sizeof library);
#endif
    program = text("checksum ", crc32_z(0, content.data(), content.size()), ", ", library);
    for (int i = 1; i < argc; ++i) arguments += text(i > 1 ? " " : "", printable(argv[i]));
  });
  ranks.demand_same(program, "runs another program");
  ranks.demand_same(arguments, "was started with other arguments");
  ranks.agree_on_isa(model);
}

/// A command of a library that the program links for it.
Subcommand add_more(CLI::App& app, CommandContext& context, const Command& more) {
  CLI::App* const command = app.add_subcommand(more.name, more.description);
  const auto labels = std::make_shared<std::filesystem::path>();
  add_checkpoint_options(command, context.parameters);
  more.add_options(*command);
  add_labels_option(command, *labels);
  add_device_option(command, context.device);
  command->footer(text(threads_too, examples(context.model, more.examples)));
  const auto run = [&context, &more, labels](const Gpu* gpu) {
    return more.run({context.model, context.recipe, context.parameters.file(), *labels, gpu});
  };
  return {command, run};
}

int run(const Model& model, const Recipe& recipe, int (*train)(Session&), int argc, char** argv,
        const std::optional<Command>& more, Communicator& ranks) {
  demand_equal_ranks(ranks, model, argc, argv);
  check_environment();
  CLI::App app(text(model.name, train ? ": trains, evaluates" : ": evaluates", " and applies the model."), model.name);
  app.require_subcommand(0, 1);
  app.footer(footer(model));
  std::int64_t threads = 0;
  app.add_option("--threads", threads, "Threads to use (default: all cores); results do not depend on it")
      ->check(in<std::int64_t>(1, most_threads))
      ->type_name("N");
  app.fallthrough();
  add_version_flag(app, model);

  CommandContext context{model, recipe, train != nullptr};
  context.parameters.out = model.name + "_run";
  context.parameters.shipped = shipped_parameters(model);
  std::vector<Subcommand> commands{
      add_train(app, context, train, ranks, argv[0]),
      add_eval(app, context, ranks),
      add_predict(app, context),
  };
  if (model.attention.layers > 0) commands.push_back(add_attention(app, context));
  if (model.depth != Depth::none) commands.push_back(add_depth(app, context));
  commands.push_back(add_bench(app, context));
  commands.push_back(add_export(app, context));
  commands.push_back(add_import(app, context));
  if (model.embed) std::ranges::move(add_features(app, context), std::back_inserter(commands));
  commands.push_back(add_pack(app, context));
  commands.push_back(add_summary(app, context));
  if (more) commands.push_back(add_more(app, context, *more));

  const std::string what_to_do = text(train ? "train, " : "", model.has_classes()          ? "eval or predict"
                                                              : model.depth != Depth::none ? "depth"
                                                              : model.embedding.layers     ? "embed"
                                                                                           : "embed or similar");
  if (const std::optional<int> ended = parsed(app, argc, argv, what_to_do)) return finished(*ended);
  const auto named = std::ranges::find_if(commands, [](const Subcommand& command) { return command.app->parsed(); });
  std::optional<Gpu> gpu;
  ranks.set_timeout(context.rank_timeout);
  ranks.agree([&] {
    if (!ranks.alone() && !named->of_ranks)
      fail(named->app->get_name(), " is for one process, not for ", ranks.size(), " ranks");
    if (named->check) named->check();
    use_threads(threads);
    if (context.device != "cuda") {
      if (ranks.by_file())
        fail("ranks that find each other by a file (TESSERA_RENDEZVOUS) compute on GPUs: --device cuda is missing");
      return;
    }
    if (model.cuda && !ranks.alone()) {
      if (!model.gpu_ranks)
        fail(
            "this program was built without NCCL, its ranks compute on CPUs only: --device cuda is for one rank "
            "(DISTRIBUTED mpi nccl in tessera_add_model lets each rank use a GPU)");
      model.gpu_ranks->choose(static_cast<int>(launched_rank_of_machine()));
    }
    gpu.emplace(model);
  });
  return finished(named->run(gpu ? &*gpu : nullptr));
}

/// Threads that wait shall sleep. GCC's OpenMP lets them spin unless told otherwise before the program starts, and then
/// a machine with anything else to do makes training many times slower (measured: 7 times with four busy processes on
/// two cores). So the program starts itself once more with the word said; where that fails, it goes on as it is.
void let_waiting_threads_sleep(char** argv) {
#ifdef _OPENMP
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  if (::setenv("OMP_WAIT_POLICY", "passive", 1) == 0) ::execv("/proc/self/exe", argv);
#else
  (void)argv;
#endif
}

/// An error's sentence, or its list of lines that begin with blanks, without what a terminal would obey.
std::string for_people(const std::string& message) {
  std::string shown = without_controls(message);
  for (std::size_t at = message.find("\n  "); at != std::string::npos; at = message.find("\n  ", at + 1))
    shown[at] = '\n';
  return shown;
}

/// --rank-timeout, which counts before the ranks compare their command lines.
double rank_timeout(int argc, char** argv) {
  const std::string option = "--rank-timeout";
  double seconds = 600;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = word.starts_with(option + "=")   ? word.substr(option.size() + 1)
                              : word == option && i + 1 < argc ? std::string(argv[i + 1])
                                                               : std::string();
    double given = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), given).ec == std::errc{} && given > 0)
      seconds = given;
  }
  return seconds;
}

}  // namespace

int program(const Model& model, const Recipe& recipe, int (*train)(Session&), int argc, char** argv,
            const std::optional<Command>& more) {
  end_in_sentences();
  Communicator ranks;
  const auto say = [&](const std::string& sentence) {
    const std::string said = text(model.name, ": ", for_people(sentence), "\n");
    std::fputs(said.c_str(), stderr);
  };
  try {
    try {
      let_waiting_threads_sleep(argv);
      ranks.open(model, rank_timeout(argc, argv));
      const int code = run(model, recipe, train, argc, argv, more, ranks);
      ranks.close();
      return code;
    } catch (const AgreedError& error) {
      if (ranks.leads()) say(error.what());
      ranks.close();
      return 1;
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    } catch (const std::exception&) {
      if (ranks.by_file()) ranks.end_unless_said(sentence_of_error());
      // Before the ranks know each other all of them find the same.
      if (!ranks.alone() || launched_rank() <= 0 || launched_rank() >= launched_ranks()) say(sentence_of_error());
      if (ranks.alone()) return 1;
      std::_Exit(1);  // the others are not waited for: their launcher ends them
    }
  } catch (const std::exception&) {  // out of memory while saying something else
  }
  std::fprintf(stderr, "%s: there is not enough memory\n", model.name.c_str());  // which allocates nothing
  if (!ranks.alone()) std::_Exit(1);
  return 1;
}

}  // namespace tessera::runtime
