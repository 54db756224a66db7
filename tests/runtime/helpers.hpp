// What the runtime's tests share: folders that vanish, and other programs that are run, fed and killed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"

namespace tessera::runtime {

/// A folder of its own for each test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw Error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// The files below the folder that are not written to their end.
inline std::vector<std::string> partial_files(const std::filesystem::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".partial") found.push_back(entry.path().string());
  return found;
}

inline Bytes bytes_of(const std::string& content) { return Bytes(content.begin(), content.end()); }
inline Bytes bytes_of(const Tensor& tensor) {
  Bytes bytes(tensor.bytes.size());
  tensor.bytes.read(0, bytes);
  return bytes;
}

/// The sentence of the Error that `action` throws; empty when it throws none.
inline std::string sentence(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct Result {
  int code = -1;  ///< exit code, or 128 + signal
  std::string out, err;
  std::int64_t peak_bytes = 0;  ///< of memory
};

/// A running program whose output goes to files.
class Process {
 public:
  struct Limits {
    std::int64_t file_bytes = -1;  ///< no file may grow longer
    std::string stdout_to;         ///< instead of the test's own file
  };

  Process(const std::string& program, std::vector<std::string> arguments, Limits limits)
      : limited_(limits.file_bytes >= 0) {
    arguments.insert(arguments.begin(), program);
    const std::string out = limits.stdout_to.empty() ? (folder_ / "out").string() : limits.stdout_to;
    const std::string err = (folder_ / "err").string();
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), 1);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
    if (limited_) {
      const rlimit limit{static_cast<rlim_t>(limits.file_bytes), static_cast<rlim_t>(limits.file_bytes)};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Nothing where it has ended: no number is then its own, and -1 would be every process.
  void send(int signal) {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  bool running() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended();
    return pid_ > 0;
  }
  Result wait() {
    rusage usage{};
    if (pid_ > 0) {
      ::wait4(pid_, &status_, 0, &usage);
      ended();
    }
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), slurp(folder_ / "out"), said(),
            std::int64_t{usage.ru_maxrss} * 1024};
  }

 private:
  /// Removes the shared memory of Clang's OpenMP, which is named by the process and which one that was killed, or whose
  /// files may not grow, leaves behind: a later process of the same number would read beyond its end (SIGBUS).
  void ended() {
    const std::string name = text("__KMP_REGISTERED_LIB_", pid_, "_", ::getuid());
    for (const char* folder : {"/dev/shm/", "/tmp/"}) ::unlink((folder + name).c_str());
    pid_ = -1;
  }

  /// Where files may not grow, without warnings of Clang's OpenMP, whose shared memory is a file too: it gives them
  /// before it reads KMP_WARNINGS.
  std::string said() const {
    if (!limited_) return slurp(folder_ / "err");
    std::istringstream lines(slurp(folder_ / "err"));
    std::string all, line;
    while (std::getline(lines, line))
      if (!line.starts_with("OMP: ")) all += lines.eof() ? line : line + "\n";
    return all;
  }

  TemporaryFolder folder_;
  bool limited_;
  pid_t pid_ = -1;
  int status_ = 0;
};

/// Runs the sample program to its end.
inline Result sample(std::vector<std::string> arguments, Process::Limits limits = {}) {
  return Process(paths::sample_program, std::move(arguments), std::move(limits)).wait();
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace tessera::runtime
