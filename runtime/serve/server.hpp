// An HTTP/1.1 server for requests that are answered whole, on cpp-httplib's parser. What cpp-httplib 0.11 has no limit
// for is limited here: connections, bytes and time of a request as a whole, and what is left when the server is
// stopped.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/serve/batcher.hpp"

namespace tessera::runtime::serve {

/// What a request may take.
struct HttpLimits {
  std::int64_t connections = 64;               ///< open at the same time; others get a 503
  std::int64_t body = std::int64_t{1} << 24;   ///< bytes of a body; a longer one gets a 413
  std::chrono::milliseconds request{30'000};   ///< from a request's first byte until its answer begins, or a 408
  std::chrono::milliseconds write{5'000};      ///< until an answer is taken, or the connection is closed
  std::chrono::milliseconds idle{5'000};       ///< without a request, until a connection is closed
  std::chrono::milliseconds last_call{1'000};  ///< for a request on an open connection, once the server stops
};

/// A request with its whole body.
struct Question {
  std::multimap<std::string, std::string> parameters;  ///< of the query
  std::string body;
  Clock::time_point deadline;
};

struct Answer {
  std::string type;  ///< of the content: "application/json"
  std::string body;
};

/// What is answered at a path. `answer` is called by several threads; what it throws is an answer too: a Refusal with
/// its status, anything else with 500; {"error": SENTENCE}.
struct Route {
  std::string method;  ///< "GET" or "POST"
  std::string path;
  std::function<Answer(const Question&)> answer;
};

/// Listens from its construction on. One thread accepts; each connection has one of `connections` threads, which live
/// as long as the server.
///
/// Stopping: what the kernel has for the server in its backlog at that moment is accepted, then the listener is closed;
/// a client that comes later is refused by the kernel, before any byte of an answer. Every request of which the first
/// byte arrives on an accepted connection is answered, up to last_call after the stop, each last one with Connection:
/// close. Connections that stay silent as long are closed.
class HttpServer {
 public:
  /// Requests whose headers were read, and those with an answer that was written whole (or that nobody took).
  struct Counts {
    std::int64_t asked = 0, answered = 0;
  };

  /// Port 0: one that is free. Throws an Error where the address cannot be listened on.
  HttpServer(const std::string& host, int port, const HttpLimits& limits, std::vector<Route> routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  /// "http://127.0.0.1:8000/"
  std::string url() const;
  Counts counts() const;

  /// Serves until the file descriptor `stop` can be read from, and returns when all that was accepted is answered.
  void run(int stop);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace tessera::runtime::serve
