// An HTTP client on a bare socket, which can be as slow, as silent and as wrong as a test wants.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "runtime/file.hpp"

namespace tessera::runtime::serve {

struct Reply {
  int status = 0;
  std::string head, body;
  bool closes() const { return head.find("Connection: close") != std::string::npos; }
};

inline std::string post(const std::string& path, const std::string& body, const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more +
         "\r\n" + body;
}

inline std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n"; }

class Client {
 public:
  explicit Client(int port, std::uint32_t host = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(host);
    connected_ = ::connect(socket_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const int yes = 1;
    ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  bool connected() const { return connected_; }

  /// False where the connection is gone before all is sent.
  bool send(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket_.number(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<std::size_t>(sent);
    }
    return true;
  }

  /// The next answer. Nothing where the connection ends, or where none comes in time; partial() tells a part of one.
  std::optional<Reply> receive(int seconds = 60) {
    partial_ = false;
    std::size_t head = 0;
    while ((head = received_.find("\r\n\r\n")) == std::string::npos)
      if (!more(seconds)) return cut();
    Reply reply;
    reply.head = received_.substr(0, head + 2);
    reply.status = std::atoi(reply.head.c_str() + std::min<std::size_t>(9, reply.head.size()));
    const std::size_t length = reply.head.find("Content-Length: ");
    const std::size_t body =
        length == std::string::npos ? 0 : std::strtoull(reply.head.c_str() + length + 16, nullptr, 10);
    while (received_.size() < head + 4 + body)
      if (!more(seconds)) return cut();
    reply.body = received_.substr(head + 4, body);
    received_.erase(0, head + 4 + body);
    return reply;
  }
  bool partial() const { return partial_; }

  std::optional<Reply> ask(const std::string& request, int seconds = 60) {
    send(request);  // where that fails, there may still be an answer
    return receive(seconds);
  }

  /// Whether the server ends the connection, and sends nothing before, in so many seconds.
  bool ends(int seconds) { return received_.empty() && !more(seconds) && ended_; }

 private:
  bool more(int seconds) {
    pollfd one{socket_.number(), POLLIN, 0};
    if (::poll(&one, 1, 1000 * seconds) <= 0) return false;
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(socket_.number(), bytes.data(), bytes.size(), 0);
    ended_ = got <= 0;
    if (got <= 0) return false;
    received_.append(bytes.data(), static_cast<std::size_t>(got));
    return true;
  }
  std::optional<Reply> cut() {
    partial_ = !received_.empty();
    return std::nullopt;
  }

  Descriptor socket_;
  bool connected_ = false, partial_ = false, ended_ = false;
  std::string received_;
};

}  // namespace tessera::runtime::serve
