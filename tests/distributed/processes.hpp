// Which processes there are, as Linux tells it in /proc.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

namespace tessera::test {

/// The environments, variables with a zero byte behind each, of the processes of a program that have an argument.
inline std::map<pid_t, std::string> processes(const std::string& program, const std::string& argument) {
  // Inserting a buffer into a stream catches the error of a process that ends while its file is read.
  const auto content = [](const std::filesystem::path& path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return std::move(all).str();
  };
  std::map<pid_t, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string line = content(entry.path() / "cmdline");
    if (line.starts_with(program + '\0') && line.find(argument + '\0') != std::string::npos)
      found[std::stoi(name)] = content(entry.path() / "environ");
  }
  return found;
}

}  // namespace tessera::test
