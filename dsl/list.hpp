// List: several modules of one kind, called one by one.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "dsl/module.hpp"

namespace tessera {

/// `Count` modules of one type; Count is a number or a dim of known size. Keys are path.0, path.1, ...
/// PyTorch equivalent: torch.nn.ModuleList.
template <class M, auto Count>
struct List {
  std::array<M, static_cast<std::size_t>(count_of<Count>())> modules{};

  const M& operator[](std::size_t i) const { return modules[i]; }
  static constexpr std::size_t size() { return static_cast<std::size_t>(count_of<Count>()); }

  void bind(const std::string& path) {
    for (std::size_t i = 0; i < modules.size(); ++i) tessera::bind(modules[i], detail::join(path, std::to_string(i)));
  }
};

}  // namespace tessera
