#include "runtime/serve/server.hpp"

#include <fcntl.h>
#include <httplib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/serve/infer.hpp"
#include "runtime/serve/refusal.hpp"

namespace tessera::runtime::serve {
namespace {

using std::chrono::milliseconds;

constexpr int backlog = 128;                     // connections that the kernel keeps until they are accepted
constexpr std::int64_t most_head = 64 * 1024;    // bytes of a request line and its headers
constexpr std::size_t most_lingering = 256;      // refused connections that are still read from
constexpr milliseconds lingering_time{1'000};    // for a client to read why it is sent away
constexpr milliseconds pause_without_files{50};  // until accept() is tried again where there are no file descriptors
constexpr const char* json_type = "application/json";

/// For poll(): rounded up, so that the time has passed when it returns 0.
int milliseconds_until(Clock::time_point when) {
  const auto left = std::chrono::ceil<milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

/// Waits for the events. False where they have not come by then.
bool ready(int descriptor, short events, Clock::time_point until) {
  for (;;) {
    pollfd one{descriptor, events, 0};
    const int count = ::poll(&one, 1, milliseconds_until(until));
    if (count < 0 && errno == EINTR) continue;
    return count > 0;
  }
}

/// Reads what is there and forgets it. False where no more can come.
bool discard(int socket) {
  std::array<char, 4096> bytes;
  for (int turn = 0; turn < 16; ++turn) {
    const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    if (count <= 0) return false;
  }
  return true;
}

/// Whether the server is stopping, and until when requests on open connections may begin.
class Draining {
 public:
  Draining() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_.number() < 0) fail("cannot make an eventfd: ", reason(errno));
  }
  void begin(milliseconds last_call) {
    until_ = (Clock::now() + last_call).time_since_epoch().count();
    begun_ = true;
    const std::uint64_t one = 1;
    // It is never read: whoever polls it, now or later, is woken.
    if (::write(event_.number(), &one, sizeof one) != sizeof one) return;
  }
  bool begun() const { return begun_; }
  Clock::time_point until() const { return Clock::time_point(Clock::duration(until_.load())); }
  int descriptor() const { return event_.number(); }

 private:
  Descriptor event_;
  std::atomic<Clock::rep> until_{0};
  std::atomic<bool> begun_{false};
};

/// A client's connection as cpp-httplib reads and writes it, with deadlines for a request as a whole: a client that
/// sends a byte now and then is cut off as one that sends none.
class Connection final : public httplib::Stream {
 public:
  Connection(Descriptor socket, const HttpLimits& limits, const Draining& draining)
      : socket_(std::move(socket)), limits_(limits), draining_(draining) {}

  /// Waits for the first byte of a request. False where none comes in time, or ever.
  bool await_request() {
    if (begin_ < end_) return true;
    const Clock::time_point idle_until = Clock::now() + limits_.idle;
    for (;;) {
      const bool draining = draining_.begun();
      const Clock::time_point until = draining ? std::min(draining_.until(), idle_until) : idle_until;
      std::array<pollfd, 2> both{{{socket_.number(), POLLIN, 0}, {draining_.descriptor(), POLLIN, 0}}};
      const int count = ::poll(both.data(), draining ? 1 : 2, milliseconds_until(until));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      if (both[0].revents == 0) continue;  // woken by the stop
      const ssize_t got = receive();
      if (got >= 0 || (errno != EAGAIN && errno != EINTR)) return got > 0;
    }
  }
  void begin_request() {
    deadline_ = Clock::now() + limits_.request;
    left_ = most_head + limits_.body;
    asked_ = late_ = too_long_ = false;
    written_ = 0;
    write_until_.reset();
  }
  Clock::time_point deadline() const { return deadline_; }

  /// The headers are read: what follows is a request that counts.
  void ask() { asked_ = true; }
  bool asked() const { return asked_; }
  bool late() const { return late_; }          ///< the deadline has passed before all was read
  bool too_long() const { return too_long_; }  ///< head and body together
  bool answered() const { return written_ > 0; }
  /// Input is left that nobody reads: no further request can be found on the connection.
  void leave_unread() { unread_ = closes_ = true; }
  bool is_unread() const { return unread_; }
  void close_after_this() { closes_ = true; }
  bool closes() const { return closes_; }

  /// Whether there is more to read, or the client's end.
  bool has_input() const { return begin_ < end_ || ready(socket_.number(), POLLIN, Clock::now()); }

  /// Lets the client read the answer before the connection is closed: input that is unread at the close makes the
  /// kernel send a reset, on which the client's kernel may drop the answer.
  void linger() const {
    ::shutdown(socket_.number(), SHUT_WR);
    const Clock::time_point until = Clock::now() + lingering_time;
    while (ready(socket_.number(), POLLIN, until) && discard(socket_.number()))
      if (Clock::now() >= until) return;
  }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    write_until_.reset();
    while (begin_ == end_) {
      if (late_ || !ready(socket_.number(), POLLIN, deadline_)) {
        late_ = true;
        return -1;
      }
      const ssize_t got = receive();
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return got;
    }
    if (left_ == 0) {
      too_long_ = true;
      return -1;
    }
    const std::size_t count = std::min({size, end_ - begin_, static_cast<std::size_t>(left_)});
    std::memcpy(to, buffer_.data() + begin_, count);
    begin_ += count;
    left_ -= static_cast<std::int64_t>(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    if (!write_until_) write_until_ = Clock::now() + limits_.write;
    for (;;) {
      const ssize_t sent = ::send(socket_.number(), from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        written_ += sent;
        return sent;
      }
      if (errno == EINTR) continue;
      if ((errno != EAGAIN && errno != EWOULDBLOCK) || !ready(socket_.number(), POLLOUT, *write_until_)) {
        closes_ = true;
        return -1;
      }
    }
  }
  using httplib::Stream::write;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  /// cpp-httplib asks for it alone to refuse those beyond select()'s 1024, which nobody calls here.
  socket_t socket() const override { return 0; }

 private:
  ssize_t receive() {
    begin_ = end_ = 0;
    const ssize_t got = ::recv(socket_.number(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got > 0) end_ = static_cast<std::size_t>(got);
    return got;
  }

  Descriptor socket_;
  const HttpLimits& limits_;
  const Draining& draining_;
  std::array<char, 16 * 1024> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< of what is received and not read
  Clock::time_point deadline_;
  std::optional<Clock::time_point> write_until_;
  std::int64_t left_ = 0, written_ = 0;  ///< bytes: that the request may still have; of its answer
  bool asked_ = false, late_ = false, too_long_ = false, unread_ = false, closes_ = false;
};

/// The connection of this thread, for what cpp-httplib calls without it.
thread_local Connection* current = nullptr;

std::string raw_answer(int status, const char* reason, const std::string& body) {
  return text("HTTP/1.1 ", status, " ", reason, "\r\nContent-Type: ", json_type, "\r\nContent-Length: ", body.size(),
              "\r\nConnection: close\r\n", status == 503 ? "Retry-After: 1\r\n" : "", "\r\n", body);
}

Descriptor listener(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    fail("cannot listen on ", host, ": ", ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol));
    const int yes = 1;  // a port whose last connections are still remembered can be used again
    if (socket.number() >= 0 && ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(socket.number(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket.number(), backlog) == 0)
      return socket;
    error = errno;
  }
  fail("cannot listen on ", host, ", port ", port, ": ", reason(error));
}

/// "127.0.0.1" or "[::1]", and the port.
std::pair<std::string, int> address_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const general = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(socket.number(), general, &length) != 0 ||
      ::getnameinfo(general, length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    fail("cannot tell the address that is listened on: ", reason(errno));
  const std::string name = host.data();
  return {name.find(':') == std::string::npos ? name : "[" + name + "]", std::stoi(port.data())};
}

}  // namespace

class HttpServer::Implementation : private httplib::Server {
 public:
  Implementation(const std::string& host, int port, const HttpLimits& limits, std::vector<Route> routes)
      : limits_(limits), routes_(std::move(routes)), listener_(listener(host, port)), address_(address_of(*listener_)) {
    set_payload_max_length(static_cast<std::size_t>(limits_.body));
    set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return refused(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    // Before "100 Continue" is said: what is refused anyway is not asked for.
    set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& response) {
      return refused(request, response) ? response.status : 100;
    });
    // A path that gets here is known, and short: this pattern can be matched without a deep recursion.
    Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      reply(request, response, {request.params, {}, current->deadline()});
    });
    Post(".*",
         [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
           Question question{request.params, {}, current->deadline()};
           if (read_body(reader, response, question.body)) reply(request, response, question);
         });
    set_error_handler(HandlerWithResponse([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) say(response, status_of(response.status), sentence_of(response.status));
      return HandlerResponse::Handled;  // so that the length of the content is written
    }));
    set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
      current->leave_unread();
      say(response, 500, "the server cannot answer: there is not enough memory");
    });
    set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      response.headers.erase("Keep-Alive");
      if (response.status == 503) response.set_header("Retry-After", "1");
      // What was not read as a request leaves the rest of the connection without a beginning.
      if (!current->asked()) current->leave_unread();
      // A client that has sent its next request already gets that answered too.
      if (draining_.begun() && (!current->has_input() || Clock::now() >= draining_.until()))
        current->close_after_this();
      if (current->closes()) {
        response.headers.erase("Connection");
        response.set_header("Connection", "close");
      }
    });
    workers_.reserve(static_cast<std::size_t>(limits_.connections));
    for (std::int64_t i = 0; i < limits_.connections; ++i)
      workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }

  /// Where run() was left by an exception: clients that go on asking shall not keep the threads.
  ~Implementation() override { draining_.begin(milliseconds(0)); }

  std::pair<std::string, int> address() const { return address_; }
  Counts counts() const { return {asked_, answered_}; }

  void run(int stop) {
    std::vector<pollfd> waits;
    for (;;) {
      const bool paused = Clock::now() < accept_from_;
      waits = {{stop, POLLIN, 0}, {paused ? -1 : listener_->number(), POLLIN, 0}};
      for (const Lingering& one : lingering_) waits.push_back({one.socket.number(), POLLIN, 0});
      int timeout = lingering_.empty() ? -1 : milliseconds_until(lingering_.front().until);
      if (paused) timeout = static_cast<int>(pause_without_files.count());
      const int count = ::poll(waits.data(), waits.size(), timeout);
      if (count < 0 && errno != EINTR) fail("cannot wait for connections: ", reason(errno));
      if (waits[0].revents != 0) break;
      tend();
      if (waits[1].revents != 0) accept_waiting();
    }
    accept_waiting();
    listener_.reset();
    draining_.begin(limits_.last_call);
    for (std::jthread& worker : workers_) worker.request_stop();
    workers_.clear();  // joined, each when what it was handed is answered
    for (; !lingering_.empty(); tend()) ready(lingering_.front().socket.number(), POLLIN, lingering_.front().until);
  }

 private:
  /// A refused connection, until its client has read why.
  struct Lingering {
    Descriptor socket;
    Clock::time_point until;
  };

  /// Accepts what the kernel has, which may be as many as its backlog, and hands it to a thread or refuses it.
  void accept_waiting() {
    for (int i = 0; i < backlog; ++i) {
      Descriptor socket(::accept4(listener_->number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.number() < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
          accept_from_ = Clock::now() + pause_without_files;
        if (errno == EINTR || errno == ECONNABORTED) continue;
        return;
      }
      // The head and the body of an answer are two packets: the second shall not wait for the first one's receipt.
      const int yes = 1;
      ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      if (!hand_over(socket)) turn_away(std::move(socket));
    }
  }

  /// False where each thread has a connection.
  bool hand_over(Descriptor& socket) {
    const std::lock_guard lock(mutex_);
    if (open_ == limits_.connections) return false;
    handed_.push_back(std::move(socket));
    ++open_;
    waits_.notify_one();
    return true;
  }

  void turn_away(Descriptor socket) {
    const std::string answer =
        raw_answer(503, "Service Unavailable",
                   error_json(text("all ", limits_.connections, " connections of the server are in use: ask again")));
    if (::send(socket.number(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    ::shutdown(socket.number(), SHUT_WR);
    if (lingering_.size() == most_lingering) lingering_.pop_front();
    lingering_.push_back({std::move(socket), Clock::now() + lingering_time});
  }

  void tend() {
    const Clock::time_point now = Clock::now();
    lingering_.remove_if([&](const Lingering& one) { return one.until <= now || !discard(one.socket.number()); });
  }

  /// A thread of a connection: takes what is handed over until the server stops, and then until nothing is left.
  void work(const std::stop_token& stop) {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (!waits_.wait(lock, stop, [this] { return !handed_.empty(); })) return;
      Descriptor socket = std::move(handed_.front());
      handed_.pop_front();
      lock.unlock();
      serve(std::move(socket));
      lock.lock();
      --open_;
    }
  }

  void serve(Descriptor socket) {
    Connection connection(std::move(socket), limits_, draining_);
    current = &connection;
    try {
      while (connection.await_request() && answer_one(connection)) {
      }
      if (connection.is_unread() || connection.has_input()) connection.linger();
    } catch (const std::exception&) {  // there is no memory even for an answer
    }
    current = nullptr;
  }

  /// False where the connection is to be closed.
  bool answer_one(Connection& connection) {
    bool closes = false;
    connection.begin_request();
    const bool written = process_request(connection, false, closes, [&](httplib::Request& request) {
      connection.ask();
      ++asked_;
      request.ranges.clear();                    // answers are made as a whole: parts of them would only multiply work
      request.headers.erase("Accept-Encoding");  // and they are short
    });
    if (!connection.answered() && (connection.late() || connection.too_long())) {  // within the request line
      const int status = connection.late() ? 408 : 413;
      connection.leave_unread();
      connection.write(raw_answer(status, httplib_reason(status), error_json(sentence_of(status))));
    }
    if (connection.asked() && connection.answered()) ++answered_;
    return written && !closes && !connection.closes();
  }

  static const char* httplib_reason(int status) { return status == 408 ? "Request Timeout" : "Payload Too Large"; }

  /// What cpp-httplib calls a bad request may be one that did not arrive.
  static int status_of(int status) {
    if (current->late()) return 408;
    if (current->too_long()) return 413;
    return status;
  }

  static std::string sentence_of(int status) {
    switch (status_of(status)) {
      case 408:
        return "the request did not arrive in time";
      case 413:
        return "the request is too long";
      case 414:
        return "the path is too long";
      case 416:
        return "there are no ranges of answers";
      default:
        return "this is no HTTP request that can be read";
    }
  }

  static void say(httplib::Response& response, int status, const std::string& sentence) {
    response.status = status;
    response.set_content(error_json(sentence), json_type);
  }

  const Route* route(const httplib::Request& request) const {
    const std::string& method = request.method == "HEAD" ? "GET" : request.method;
    const auto found = std::ranges::find_if(
        routes_, [&](const Route& one) { return one.path == request.path && one.method == method; });
    return found == routes_.end() ? nullptr : &*found;
  }

  /// Whether the head alone is enough to say no, which is then said.
  bool refused(const httplib::Request& request, httplib::Response& response) {
    const auto lengths = request.get_header_value_count("Content-Length");
    const bool chunked = request.has_header("Transfer-Encoding");
    std::uint64_t length = 0;
    const std::string declared = request.get_header_value("Content-Length");
    const char* const end = declared.data() + declared.size();
    const auto [read, error] = std::from_chars(declared.data(), end, length);
    const bool posts = request.method == "POST";
    // A body that is not read is taken for the next request, unless there is none: that of a GET too.
    const auto no = [&](int status, const std::string& sentence) {
      if (lengths > 0 || chunked) current->leave_unread();
      say(response, status, sentence);
      return true;
    };
    if (!posts && (length > 0 || chunked)) current->leave_unread();

    if (!route(request)) {
      const auto same = std::ranges::find(routes_, request.path, &Route::path);
      if (same == routes_.end()) return no(404, "there is nothing at this path: GET / shows what there is");
      response.set_header("Allow", same->method == "GET" ? "GET, HEAD" : same->method);
      return no(405, text("this path takes ", same->method, " requests alone"));
    }
    if (chunked && (lengths > 0 || request.get_header_value_count("Transfer-Encoding") > 1 ||
                    request.get_header_value("Transfer-Encoding") != "chunked"))
      return no(400, "the length of the body is told in two ways, or in one that cannot be read");
    if (lengths > 1 || (lengths == 1 && (error == std::errc::invalid_argument || read != end)))
      return no(400, "Content-Length is not one number of bytes");
    if (lengths == 1 && (error != std::errc{} || length > static_cast<std::uint64_t>(limits_.body)))
      return no(413, text("a body of ", declared, " bytes is too long: it may have ", limits_.body));
    if (!posts) return false;
    if (lengths == 0 && !chunked) return no(411, "the length of the body is missing");
    if (request.has_header("Content-Encoding"))
      return no(415, "a body with a Content-Encoding is not decoded: send it as it is");
    if (request.is_multipart_form_data())
      return no(415, "a form is not taken apart: send the picture itself as the body");
    return false;
  }

  /// False where there is no whole body, which is then said.
  bool read_body(const httplib::ContentReader& reader, httplib::Response& response, std::string& body) const {
    const auto most = static_cast<std::size_t>(limits_.body);
    bool longer = false;
    const bool whole = reader([&](const char* part, std::size_t size) {
      longer = body.size() + size > most;
      if (!longer) body.append(part, size);
      return !longer;
    });
    if (whole) return true;
    current->leave_unread();
    if (longer)
      say(response, 413, text("the body is too long: it may have ", limits_.body, " bytes"));
    else if (current->late() || current->too_long())
      say(response, status_of(400), sentence_of(400));
    else
      say(response, 400, "the body ends before its end");
    return false;
  }

  void reply(const httplib::Request& request, httplib::Response& response, const Question& question) const {
    try {
      const Answer answer = route(request)->answer(question);
      response.status = 200;
      response.set_content(answer.body, answer.type);
    } catch (const Refusal& refusal) {
      say(response, refusal.status(), refusal.what());
    } catch (const std::bad_alloc&) {
      say(response, 500, "there is not enough memory for an answer");
    } catch (const std::exception& error) {
      say(response, 500, error.what());
    }
  }

  const HttpLimits limits_;
  const std::vector<Route> routes_;
  std::optional<Descriptor> listener_;
  const std::pair<std::string, int> address_;
  Draining draining_;
  std::atomic<std::int64_t> asked_{0}, answered_{0};
  // Of the thread in run().
  std::list<Lingering> lingering_;
  Clock::time_point accept_from_{};

  std::mutex mutex_;
  std::condition_variable_any waits_;
  std::deque<Descriptor> handed_;
  std::int64_t open_ = 0;              ///< connections that have a thread, or are handed to one
  std::vector<std::jthread> workers_;  ///< last: they end, and are joined, before what they use
};

HttpServer::HttpServer(const std::string& host, int port, const HttpLimits& limits, std::vector<Route> routes)
    : implementation_(std::make_unique<Implementation>(host, port, limits, std::move(routes))) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return implementation_->address().second; }
std::string HttpServer::url() const {
  const auto [host, port] = implementation_->address();
  return text("http://", host, ":", port, "/");
}
HttpServer::Counts HttpServer::counts() const { return implementation_->counts(); }
void HttpServer::run(int stop) { implementation_->run(stop); }

}  // namespace tessera::runtime::serve
