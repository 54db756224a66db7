// Where operations are recorded while a model is traced.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "dsl/graph/builder.hpp"

namespace tessera {

namespace detail {
inline thread_local graph::Builder* current_recorder = nullptr;
}

/// The builder of the trace that is under way. Throws std::logic_error outside of one.
inline graph::Builder& recorder() {
  if (!detail::current_recorder) throw std::logic_error("a tensor operation was called outside of trace<Model>()");
  return *detail::current_recorder;
}

/// Makes `builder` the one that operations record into, for as long as it lives.
class RecorderScope {
 public:
  explicit RecorderScope(graph::Builder& builder) : before_(std::exchange(detail::current_recorder, &builder)) {}
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
