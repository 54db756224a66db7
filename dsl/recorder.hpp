// Where operations are recorded while a model is traced.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dsl/graph/builder.hpp"

namespace tessera {

namespace detail {

inline thread_local graph::Builder* current_recorder = nullptr;

/// A module whose parameters entered the graph: where it lies, and where the members lie that TESSERA_MEMBERS lists.
struct BoundModule {
  const char* name;
  std::string path;
  const void *begin, *end;
  std::vector<std::pair<const void*, const char*>> members;
};
inline thread_local std::vector<BoundModule> bound_modules;

/// Throws std::logic_error where `member`, which was not bound, lies within a module that was: its TESSERA_MEMBERS
/// lacks it. C++ has no names of members, so that it is told by the one before it.
inline void demand_listed(const void* member) {
  const std::less<const void*> before;
  for (auto module = bound_modules.rbegin(); module != bound_modules.rend(); ++module) {
    if (before(member, module->begin) || !before(member, module->end)) continue;
    const char* neighbour = nullptr;
    const void* nearest = module->begin;
    for (const auto& [address, name] : module->members)
      if (before(address, member) && !before(address, nearest)) {
        nearest = address;
        neighbour = name;
      }
    throw std::logic_error(std::string(module->name) + (module->path.empty() ? "" : ", " + module->path + ",") +
                           " uses a member that its TESSERA_MEMBERS does not list: the one declared " +
                           (neighbour ? "behind " + std::string(neighbour) : "first"));
  }
}

}  // namespace detail

/// The builder of the trace that is under way. Throws std::logic_error outside of one.
inline graph::Builder& recorder() {
  if (!detail::current_recorder) throw std::logic_error("a tensor operation was called outside of trace<Model>()");
  return *detail::current_recorder;
}

/// Makes `builder` the one that operations record into, for as long as it lives.
class RecorderScope {
 public:
  explicit RecorderScope(graph::Builder& builder) : before_(std::exchange(detail::current_recorder, &builder)) {
    detail::bound_modules.clear();
  }
  ~RecorderScope() { detail::current_recorder = before_; }
  RecorderScope(const RecorderScope&) = delete;
  RecorderScope& operator=(const RecorderScope&) = delete;

 private:
  graph::Builder* before_;
};

/// Makes `path` the module that operations are recorded under, for as long as it lives.
class PathScope {
 public:
  explicit PathScope(const std::string& path) : before_(std::exchange(recorder().path, path)) {}
  ~PathScope() { recorder().path = before_; }
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  std::string before_;
};

}  // namespace tessera
