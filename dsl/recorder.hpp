// Where operations are recorded while a model is traced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/graph/builder.hpp"
#include "dsl/member_names.hpp"

namespace tessera {

namespace detail {

inline thread_local graph::Builder* current_recorder = nullptr;

/// A module whose parameters entered the graph, and where it lies.
struct BoundModule {
  const char* name;
  std::string path;
  const void *begin, *end;
  /// The last member that TESSERA_MEMBERS lists of those before an address; null where there is none.
  const char* (*listed_before)(const void* module, const void* member);
  const char* file;  ///< where its TESSERA_MEMBERS stands, and what that lists
  int line;
  const char* listed;
};
inline thread_local std::vector<BoundModule> bound_modules;

/// All that were bound, for those who look for a declaration's lines. The DSL's own are those below this file's folder.
inline std::vector<graph::Module> modules_of_declaration() {
  const std::string_view here = __FILE__, folder = here.substr(0, here.rfind('/') + 1);
  std::vector<graph::Module> modules;
  for (const BoundModule& m : bound_modules)
    modules.push_back({m.path, m.name, m.file, m.line, std::string_view(m.file).substr(0, folder.size()) == folder});
  return modules;
}

/// Not by std::less: <functional> has a std::bind, which a call of bind with a string would find.
inline bool lies_before(const void* a, const void* b) {
  return reinterpret_cast<std::uintptr_t>(a) < reinterpret_cast<std::uintptr_t>(b);
}

/// Throws std::logic_error where `member`, which was not bound, lies within a module that was: its TESSERA_MEMBERS
/// lacks it. C++ has no names of members, so that the source is read; without it the member before is named.
inline void demand_listed(const void* member) {
  for (std::size_t i = bound_modules.size(); i-- > 0;) {
    const BoundModule& module = bound_modules[i];
    if (lies_before(member, module.begin) || !lies_before(member, module.end)) continue;
    const char* before = module.listed_before(module.begin, member);
    const std::string names = unlisted_names(module.file, module.line, module.name, module.listed, before);
    throw std::logic_error(std::string(module.name) + (module.path.empty() ? "" : ", " + module.path + ",") + " uses " +
                           (names.empty() ? "a member that its TESSERA_MEMBERS does not list: the one declared " +
                                                (before ? "behind " + std::string(before) : "first")
                                          : names + ", which its TESSERA_MEMBERS does not list"));
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
