#include "runtime/serve/command.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/inference.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/ranges.hpp"
#include "runtime/serve/server.hpp"
#include "runtime/serve/service.hpp"

namespace tessera::runtime::serve {
namespace {

struct Options {
  std::string host = "127.0.0.1";
  int port = 8000;
  double seconds = 30;
  HttpLimits http;
  ServiceLimits model;
};

/// What the handler of the signals writes to.
std::atomic<int> stop_event{-1};

void ask_to_stop(int) {
  const int number = errno;
  const std::uint64_t one = 1;
  if (::write(stop_event, &one, sizeof one) < 0) errno = number;
  errno = number;
}

/// From here on SIGTERM and SIGINT can be read from a file descriptor, once: a second one does what it does in any
/// program.
class StopSignals {
 public:
  StopSignals() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_.number() < 0) fail("cannot make an eventfd: ", reason(errno));
    stop_event = event_.number();
    struct sigaction action{};
    action.sa_handler = ask_to_stop;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigaction(SIGINT, &action, nullptr);
  }
  ~StopSignals() {
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    stop_event = -1;
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  int descriptor() const { return event_.number(); }

 private:
  Descriptor event_;
};

int serve(const CommandInput& input, const Options& options) {
  const Model& model = input.model;
  const StopSignals signals;  // before there is a thread, so that nothing is lost between
  std::optional<Arena> parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  Usage usage =
      load_parameters(input.parameters, model, parameters->floats()).usage.value_or(Usage{input.recipe.input, {}});
  if (!input.labels.empty()) usage.classes = read_labels(input.labels, model.classes);
  const Inference inference(model, parameters->floats(), options.model.batch, input.gpu);
  if (!inference.reads_parameters()) parameters.reset();
#ifdef _OPENMP
  const int threads = omp_get_max_threads();
#endif
  Service service(model, usage.input, usage.classes, options.model,
                  [&](const float* images, std::int64_t count, float* outputs) {
#ifdef _OPENMP
                    omp_set_num_threads(threads);  // --threads, which OpenMP keeps for each thread that calls it
#endif
                    inference.forward(images, count, outputs);
                  });
  HttpServer server(options.host, options.port, options.http, service.routes());
  std::cout << model.name << " is served at " << server.url() << " (Ctrl-C stops it)" << std::endl;
  server.run(signals.descriptor());
  const Batcher::Counts counts = service.counts();
  std::cout << grouped(server.counts().answered) << " requests answered, " << grouped(counts.images - 1)
            << " images in " << grouped(counts.passes - 1)
            << " forward passes\n";  // but for the first one, of no request
  return 0;
}

}  // namespace

Command command(const Recipe& declared) {
  const auto options = std::make_shared<Options>();
  options->model.batch = declared.batch;
  Command result;
  result.name = "serve";
  result.description = "Answer HTTP requests: pictures in, classes out";
  result.examples = {"serve --out run", "serve --out run --host 0.0.0.0 --port 80 --seconds 5"};
  result.add_options = [options](CLI::App& app) {
    app.add_option("--host", options->host, "Address to listen on; 0.0.0.0: all of this machine's")
        ->capture_default_str()
        ->type_name("HOST");
    app.add_option("--port", options->port, "Port to listen on; 0: one that is free, which is told")
        ->capture_default_str()
        ->check(in<std::int64_t>(0, 65535))
        ->type_name("N");
    app.add_option("--batch", options->model.batch, "Images of a forward pass, at most")
        ->capture_default_str()
        ->check(in<std::int64_t>(1, 65536))
        ->type_name("N");
    app.add_option("--queue", options->model.queue, "Images that wait for one, at most; further requests get a 503")
        ->capture_default_str()
        ->check(in<std::int64_t>(1, 65536))
        ->type_name("N");
    app.add_option("--connections", options->http.connections, "Open connections, at most; further ones get a 503")
        ->capture_default_str()
        ->check(in<std::int64_t>(1, 4096))
        ->type_name("N");
    app.add_option("--seconds", options->seconds, "Time of a request, from its first byte to its answer")
        ->capture_default_str()
        ->check(in<double>(0.1, 3600))
        ->type_name("S");
    app.add_option("--max-body", options->http.body, "Bytes of a request's body, at most; a longer one gets a 413")
        ->capture_default_str()
        ->check(in<std::int64_t>(1024, std::int64_t{1} << 30))
        ->type_name("BYTES");
    app.add_option("--max-pixels", options->model.pixels, "Pixels of a picture, at most; a larger one gets a 413")
        ->capture_default_str()
        ->check(in<std::int64_t>(1, std::int64_t{1} << 26))
        ->type_name("N");
  };
  result.run = [options](const CommandInput& input) {
    options->http.request = std::chrono::milliseconds(std::llround(1000 * options->seconds));
    return serve(input, *options);
  };
  return result;
}

}  // namespace tessera::runtime::serve
