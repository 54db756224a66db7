// A program whose main is called as a function, in a folder in memory that goes with the process.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <streambuf>
#include <string>
#include <vector>

namespace tessera::test {

class CallFolder {
 public:
  CallFolder() {
    std::string name =
        (std::filesystem::exists("/dev/shm") ? "/dev/shm/" : "/tmp/") + std::string("tessera-fuzz-XXXXXX");
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
    std::cout.rdbuf(&nowhere_);  // what commands say
    std::cerr.rdbuf(&nowhere_);
    setenv("OMP_WAIT_POLICY", "passive", 1);  // or the program would start itself anew
  }
  ~CallFolder() {
    std::cout.rdbuf(nullptr);
    std::cerr.rdbuf(nullptr);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CallFolder(const CallFolder&) = delete;
  CallFolder& operator=(const CallFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const char* name) const { return (path_ / name).string(); }
  void write(const char* name, const void* data, std::size_t size) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  }

 private:
  /// Takes all that is written: a stream without a buffer would be one that fails.
  struct Nowhere : std::streambuf {
    int overflow(int c) override { return c == EOF ? 0 : c; }
    std::streamsize xsputn(const char*, std::streamsize size) override { return size; }
  };

  std::filesystem::path path_;
  Nowhere nowhere_;
};

/// Its exit code, which has to be 0 or 1: the command line is sound.
template <class Main>
int call(const Main& main, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int code = main(static_cast<int>(arguments.size()), argv.data());
  if (code != 0 && code != 1) std::abort();
  return code;
}

}  // namespace tessera::test
