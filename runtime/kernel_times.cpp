#include "runtime/kernel_times.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/cpu_work.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/numbers.hpp"
#include "runtime/page.hpp"
#include "runtime/progress.hpp"

#if defined(__linux__)
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#endif

namespace tessera::runtime {
namespace {

constexpr const char* elsewhere = "waiting for threads, and in libraries";
constexpr std::size_t most_samples = 1 << 17;  // two minutes

#if defined(__linux__)

/// The samples of the run that goes on: what the signal's handler may touch.
struct Samples {
  std::array<std::uintptr_t, most_samples> at;
  volatile std::size_t count;
};
Samples samples;

void take_sample(int, siginfo_t*, void* context) {
  if (getpid() != gettid() || samples.count == most_samples) return;  // another thread got it
  const auto* const where = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  samples.at[samples.count] = static_cast<std::uintptr_t>(where->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  samples.at[samples.count] = static_cast<std::uintptr_t>(where->uc_mcontext.pc);
#else
  samples.at[samples.count] = 0;
  static_cast<void>(where);
#endif
  samples.count = samples.count + 1;
}

/// While it lives, the main thread is looked at a thousand times a second.
class Sampling {
 public:
  Sampling() {
    samples.count = 0;
    struct sigaction action{};
    action.sa_sigaction = take_sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    if (sigaction(SIGALRM, &action, &before_) != 0 || !every(997))
      fail("cannot look at the program a thousand times a second: ", reason(errno));
  }
  ~Sampling() {
    every(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Sampling(const Sampling&) = delete;
  Sampling& operator=(const Sampling&) = delete;

 private:
  static bool every(suseconds_t microseconds) {
    const itimerval timer{{0, microseconds}, {0, microseconds}};
    return setitimer(ITIMER_REAL, &timer, nullptr) == 0;
  }
  struct sigaction before_{};
};

/// Where the program lies in memory: what its addresses are counted from in its file, and its end.
struct Place {
  std::uintptr_t base = 0, end = 0;
};
Place place_of_program() {
  Place place;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        auto& found = *static_cast<Place*>(to);
        found.base = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_LOAD)
            found.end = std::max<std::uintptr_t>(
                found.end, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
        return 1;  // the program itself is the first
      },
      &place);
  return place;
}

/// What addr2line says of addresses in this program's file: a line with the address, then a function and a line of a
/// source for each that was inlined there, innermost first.
std::string addr2line(const std::vector<std::uintptr_t>& addresses) {
  std::string asked;
  for (const std::uintptr_t address : addresses) asked += text("0x", std::hex, address, "\n");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> questions(std::tmpfile(), std::fclose);
  if (!questions || std::fwrite(asked.data(), 1, asked.size(), questions.get()) != asked.size() ||
      std::fflush(questions.get()) != 0)
    fail("cannot write a temporary file: ", reason(errno));
  std::rewind(questions.get());
  int ends[2];
  if (pipe(ends) != 0) fail("cannot make a pipe: ", reason(errno));
  const Descriptor from(ends[0]);
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string words[] = {"addr2line", "-a", "-f", "-i", "-C", "-e", program};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(questions.get()), 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "addr2line", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed)
    fail("bench --kernels finds kernels by addr2line, which cannot be started (", reason(failed),
         "): it is in the package binutils");
  std::string said;
  char part[1 << 14];
  for (ssize_t got; (got = read(from.number(), part, sizeof part)) != 0;) {
    if (got < 0 && errno != EINTR) fail("cannot read what addr2line says: ", reason(errno));
    if (got > 0) said.append(part, static_cast<std::size_t>(got));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) fail("addr2line, by which bench --kernels finds kernels, failed");
  return said;
}

/// What stands at an address.
struct Code {
  std::vector<std::string> functions;  ///< innermost first, without their parameters
  bool lines = false;  ///< from line tables; else the symbol's name alone is known, and not what is inlined there
};

std::map<std::uintptr_t, Code> code_at(const std::vector<std::uintptr_t>& addresses) {
  std::map<std::uintptr_t, Code> all;
  std::istringstream lines(addr2line(addresses));
  Code* at = nullptr;
  for (std::string line, source; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      at = &all[std::stoull(line, nullptr, 16)];
      continue;
    }
    std::getline(lines, source);
    constexpr std::string_view unnamed = "(anonymous namespace)::";
    for (std::size_t from; (from = line.find(unnamed)) != std::string::npos;) line.erase(from, unnamed.size());
    if (!at) continue;
    at->functions.push_back(line.substr(0, line.find_first_of("(.")));
    at->lines |= !source.starts_with("??");
  }
  return all;
}

#endif

/// A row of kernels that share their functions: the names of the first and how many more.
struct Rows {
  std::vector<KernelTimes::Row> rows;
  std::map<std::string, std::size_t> of_function;

  Rows(std::span<const PageKernel> kernels, const std::string& program) {
    double all = 0;
    for (const PageKernel& kernel : kernels) {
      if (program != kernel.program) continue;
      std::istringstream functions(kernel.functions);
      std::string function;
      if (!(functions >> function)) continue;  // it runs within another kernel
      const auto [at, fresh] = of_function.try_emplace(function, rows.size());
      if (fresh) {
        rows.emplace_back();
        rows.back().name = kernel.name;
      }
      rows[at->second].flops_share += static_cast<double>(kernel.flops);
      all += static_cast<double>(kernel.flops);
      while (functions >> function) of_function.try_emplace(function, at->second);
    }
    for (KernelTimes::Row& row : rows) row.flops_share = all > 0 ? row.flops_share / all : 0;
  }
};

#if defined(__linux__)

template <class Work>
KernelTimes::Program measured(const Model& model, const std::string& name, Work&& work, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  KernelTimes::Program program;
  program.name = name;
  work();  // caches and pages are as they will be
  const auto start = Clock::now();
  {
    const Sampling sampling;
    for (; since(start) < seconds; ++program.runs) work();
  }
  program.milliseconds = 1000 * since(start) / static_cast<double>(program.runs);
  program.samples = static_cast<std::int64_t>(samples.count);
  if (program.samples == 0) fail("no sample was taken in ", seconds, " s: measure longer (--seconds)");

  const Place place = place_of_program();
  std::map<std::uintptr_t, std::int64_t> counts;  // by address in the program's file; 0: outside of it
  for (std::size_t i = 0; i < samples.count; ++i) {
    const std::uintptr_t at = samples.at[i];
    ++counts[at >= place.base && at < place.end ? at - place.base : 0];
  }
  std::vector<std::uintptr_t> addresses;
  for (const auto& [address, count] : counts)
    if (address) addresses.push_back(address);
  const auto codes = code_at(addresses);

  Rows rows(kernels_of(model), name);
  std::map<std::string, std::int64_t> others;
  std::int64_t of_kernels = 0;
  std::vector<std::int64_t> of_row(rows.rows.size());
  for (const auto& [address, count] : counts) {
    if (!address) {
      others[elsewhere] += count;
      continue;
    }
    const auto& [stack, lines] = codes.at(address);
    const auto kernel = std::find_if(stack.begin(), stack.end(),
                                     [&](const std::string& function) { return rows.of_function.contains(function); });
    if (lines && kernel != stack.end()) {
      of_row[rows.of_function.at(*kernel)] += count;
      of_kernels += count;
    } else {
      others[stack.empty() || stack.back() == "??" ? "without a name" : stack.back()] += count;
    }
  }
  if (of_kernels == 0)
    fail(model.name, " was built without line tables, by which bench --kernels finds kernels: configure it with ",
         "-DTESSERA_LINE_TABLES=ON");
  for (const auto& [other, count] : others) {
    KernelTimes::Row row;
    row.name = other;
    rows.rows.push_back(row);
    of_row.push_back(count);
  }
  for (std::size_t i = 0; i < of_row.size(); ++i) {
    KernelTimes::Row& row = rows.rows[i];
    row.share = static_cast<double>(of_row[i]) / static_cast<double>(program.samples);
    row.milliseconds = row.share * program.milliseconds;
  }
  std::stable_sort(rows.rows.begin(), rows.rows.end(),
                   [](const KernelTimes::Row& a, const KernelTimes::Row& b) { return a.share > b.share; });
  program.rows = std::move(rows.rows);
  return program;
}

#endif

}  // namespace

std::string KernelTimes::Row::shown_share() const { return fixed(100 * share, 1) + " %"; }

KernelTimes measure_kernels(const Model& model, std::int64_t batch, double seconds) {
#if defined(__linux__)
  kernels_of(model);
  KernelTimes times{model.isa(), batch, {}};
  times.programs.push_back(measured(model, "forward", ForwardWork(model, batch), seconds));
  if (model.has_loss())
    times.programs.push_back(measured(model, "loss_and_gradients", TrainingWork(model, batch), seconds));
  return times;
#else
  static_cast<void>(batch), static_cast<void>(seconds);
  fail("bench --kernels of ", model.name, " needs Linux");
#endif
}

std::string kernel_table(const KernelTimes& times) {
  std::string table;
  for (const KernelTimes::Program& program : times.programs) {
    const bool training = program.name != "forward";
    std::size_t width = 30;
    std::int64_t idle = 0;
    for (const KernelTimes::Row& row : program.rows) width = std::max(width, row.name.size());
    const int names = -static_cast<int>(width);
    table += text(table.empty() ? "" : "\n", training ? "training step" : "forward", ", batch ", times.batch,
                  ", kernels ", times.isa, ": ", fixed(program.milliseconds, 3), " ms, the mean of ",
                  grouped(program.runs), program.runs == 1 ? " run; " : " runs; ", grouped(program.samples),
                  " samples\n\n", padded("kernel", names), "         ms   of the time  of the FLOPs\n");
    for (const KernelTimes::Row& row : program.rows) {
      if (row.share == 0 && row.flops_share < 0.001) {
        ++idle;
        continue;
      }
      table += padded(row.name, names) + padded(fixed(row.milliseconds, 3), 11) + padded(row.shown_share(), 14) +
               padded(row.flops_share > 0 ? fixed(100 * row.flops_share, 1) + " %" : "", 14) + '\n';
    }
    if (idle) table += text(idle, idle == 1 ? " kernel" : " kernels", " without a sample\n");
  }
  return table;
}

std::string kernel_json(const KernelTimes& times, const Model& model) {
  nlohmann::ordered_json all{
      {"model", model.name}, {"declaration", model.declaration_hash}, {"isa", times.isa}, {"batch", times.batch}};
  all["programs"] = nlohmann::ordered_json::array();
  for (const KernelTimes::Program& program : times.programs) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const KernelTimes::Row& row : program.rows)
      rows.push_back({{"name", row.name},
                      {"milliseconds", row.milliseconds},
                      {"share", row.share},
                      {"flops_share", row.flops_share}});
    all["programs"].push_back({{"name", program.name},
                               {"milliseconds", program.milliseconds},
                               {"runs", program.runs},
                               {"samples", program.samples},
                               {"kernels", rows}});
  }
  return all.dump(1) + "\n";
}

KernelTimes read_kernel_times(const std::filesystem::path& file, const Model& model) {
  const Bytes bytes = read_file(file, 1 << 22);
  const auto refuse = [&](const char* why) {
    fail(file.string(), " ", why, ": bench --kernels --to FILE writes such a file");
  };
  const auto whole = [&](const nlohmann::json& number) {
    if (!number.is_number_integer()) refuse("holds no times of kernels");
    return number.get<std::int64_t>();
  };
  KernelTimes times;
  try {
    const auto all = nlohmann::json::parse(bytes.begin(), bytes.end());
    if (all.at("declaration") != model.declaration_hash) refuse("holds times of another declaration");
    times.isa = all.at("isa").get<std::string>();
    times.batch = whole(all.at("batch"));
    if (times.isa.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
      refuse("names no instruction set");
    for (const auto& program : all.at("programs")) {
      times.programs.push_back({program.at("name").get<std::string>(),
                                program.at("milliseconds").get<double>(),
                                whole(program.at("runs")),
                                whole(program.at("samples")),
                                {}});
      if (times.programs.back().name != "forward" && times.programs.back().name != "loss_and_gradients")
        refuse("names a program that is none");
      for (const auto& row : program.at("kernels"))
        times.programs.back().rows.push_back({row.at("name").get<std::string>(), row.at("milliseconds").get<double>(),
                                              row.at("share").get<double>(), row.at("flops_share").get<double>()});
    }
  } catch (const nlohmann::json::exception&) {
    refuse("holds no times of kernels");
  }
  return times;
}

}  // namespace tessera::runtime
