// The limits of the HTTP server, and how it stops: with routes of the test's own.
#include "runtime/serve/server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "runtime/serve/refusal.hpp"
#include "tests/runtime/serve/served_sample.hpp"

namespace tessera::runtime::serve {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t most_body = 100'000;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A body is answered with itself, turned round.
std::vector<Route> echo() {
  return {{"GET", "/", [](const Question&) { return Answer{"text/html", "<p>here</p>"}; }},
          {"POST", "/echo",
           [](const Question& question) {
             return Answer{"text/plain", std::string(question.body.rbegin(), question.body.rend())};
           }},
          {"POST", "/throw", [](const Question&) -> Answer { throw std::runtime_error("what went wrong"); }},
          {"POST", "/refuse", [](const Question&) -> Answer { throw Refusal(409, "not now"); }}};
}

HttpLimits limits() {
  HttpLimits result;
  result.body = most_body;
  result.connections = 8;
  return result;
}

TEST(HttpServer, AnswersRequestsOfAConnectionOneAfterTheOther) {
  Running server(echo(), limits());
  Client client(server.port());
  for (const auto& [body, turned] : {std::pair("abc", "cba"), {"", ""}, {"0123456789", "9876543210"}}) {
    const auto reply = client.ask(post("/echo", body));
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, turned);
    EXPECT_FALSE(reply->closes());
  }
  // Several that were sent before the first is answered.
  client.send(post("/echo", "ab") + post("/echo", "cd") + get("/"));
  for (const char* body : {"ba", "dc", "<p>here</p>"}) {
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->body, body);
  }
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  EXPECT_EQ(client.ask(chunked)->body, "edcba");
  // The body of this answer is announced and not sent.
  EXPECT_FALSE(client.ask("HEAD / HTTP/1.1\r\n\r\n", 1));
  EXPECT_TRUE(client.partial());
  server.stop();  // an answer is counted once it is written, when its client may have it already
  const HttpServer::Counts counts = server.counts();
  EXPECT_EQ(counts.asked, 8);
  EXPECT_EQ(counts.answered, 8);
}

TEST(HttpServer, WhatIsNoRequestOfItsRoutesIsOneSentence) {
  Running server(echo(), limits());
  for (const auto& [request, status, sentence] : std::vector<std::tuple<std::string, int, std::string>>{
           {get("/nowhere"), 404, "there is nothing at this path: GET / shows what there is"},
           {post("/nowhere", "abc"), 404, "there is nothing at this path: GET / shows what there is"},
           {get("/echo"), 405, "this path takes POST requests alone"},
           {post("/", "abc"), 405, "this path takes GET requests alone"},
           {"OPTIONS / HTTP/1.1\r\n\r\n", 405, "this path takes GET requests alone"},
           {"DELETE /echo HTTP/1.1\r\n\r\n", 405, "this path takes POST requests alone"},
           {"BREW / HTTP/1.1\r\n\r\n", 400, "this is no HTTP request that can be read"},
           {"abc\r\n\r\n", 400, "this is no HTTP request that can be read"},
           {"GET / HTTP/1.1\r\nRange: pages=3\r\n\r\n", 416, "there are no ranges of answers"},
           {"GET /" + std::string(9'000, 'x') + " HTTP/1.1\r\n\r\n", 414, "the path is too long"},
           {"GET / HTTP/1.1\r\nX: " + std::string(9'000, 'x') + "\r\n\r\n", 400,
            "this is no HTTP request that can be read"},
           {"POST /echo HTTP/1.1\r\n\r\n", 411, "the length of the body is missing"},
           {"POST /echo HTTP/1.1\r\nContent-Length: 3x\r\n\r\nabc", 400, "Content-Length is not one number of bytes"},
           {"POST /echo HTTP/1.1\r\nContent-Length: -3\r\n\r\nabc", 400, "Content-Length is not one number of bytes"},
           {"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabc", 400,
            "Content-Length is not one number of bytes"},
           {"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 400,
            "the length of the body is told in two ways, or in one that cannot be read"},
           {"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400,
            "the length of the body is told in two ways, or in one that cannot be read"},
           {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "the body ends before its end"},
           {post("/echo", "abc", "Content-Encoding: gzip\r\n"), 415,
            "a body with a Content-Encoding is not decoded: send it as it is"},
           {post("/echo", "abc", "Content-Type: multipart/form-data; boundary=x\r\n"), 415,
            "a form is not taken apart: send the picture itself as the body"},
           {post("/refuse", "abc"), 409, "not now"},
           {post("/throw", "abc"), 500, "what went wrong"}}) {
    Client client(server.port());
    const auto reply = client.ask(request);
    ASSERT_TRUE(reply) << request.substr(0, 100);
    EXPECT_EQ(reply->status, status) << request.substr(0, 100);
    EXPECT_EQ(error_of(reply), sentence);
    EXPECT_NE(reply->head.find("Content-Type: application/json"), std::string::npos) << reply->head;
  }
  // And it still serves.
  EXPECT_EQ(Client(server.port()).ask(post("/echo", "ab"))->body, "ba");
}

TEST(HttpServer, ABodyThatIsNotReadIsNotTheNextRequest) {
  Running server(echo(), limits());
  const std::string inner = post("/echo", "smuggled");
  for (const std::string& request :
       {post("/nowhere", inner), post("/echo", inner, "Content-Encoding: br\r\n"),
        "GET / HTTP/1.1\r\nContent-Length: " + std::to_string(inner.size()) + "\r\n\r\n" + inner}) {
    Client client(server.port());
    const auto reply = client.ask(request);
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->closes()) << reply->head;
    EXPECT_TRUE(client.ends(20));
  }
}

TEST(HttpServer, AnswersAreWholeAndAsTheyAre) {
  Running server(echo(), limits());
  Client client(server.port());
  const auto reply = client.ask("GET / HTTP/1.1\r\nRange: bytes=0-1,0-1,0-1\r\nAccept-Encoding: gzip, br\r\n\r\n");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "<p>here</p>");
  EXPECT_NE(reply->head.find("X-Content-Type-Options: nosniff"), std::string::npos);
}

TEST(HttpServer, ABodyThatIsTooLongIsRefusedBeforeItIsRead) {
  Running server(echo(), limits());
  // The head alone is enough, and nobody waits for the rest.
  for (const char* length : {"100001", "1000000000000", "18446744073709551615", "99999999999999999999999"}) {
    Client client(server.port());
    const auto start = Clock::now();
    const auto reply = client.ask("POST /echo HTTP/1.1\r\nContent-Length: " + std::string(length) + "\r\n\r\n", 20);
    EXPECT_EQ(error_of(reply), "a body of " + std::string(length) + " bytes is too long: it may have 100000");
    EXPECT_EQ(reply->status, 413);
    EXPECT_TRUE(client.ends(20));
    EXPECT_LT(seconds_since(start), 15);
  }
  // One that does not say how long it is: the sender is told while it still sends, and cut off soon.
  Client client(server.port());
  client.send("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string chunk = "2710\r\n" + std::string(10'000, 'x') + "\r\n";
  const auto start = Clock::now();
  std::int64_t sent = 0;
  while (client.send(chunk) && seconds_since(start) < 15) sent += 10'000;
  EXPECT_LT(seconds_since(start), 15);
  EXPECT_GT(sent, most_body - 10'000);
  // A client that stops in time hears why.
  Client other(server.port());
  other.send("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 11; ++i) other.send(chunk);
  EXPECT_EQ(error_of(other.receive()), "the body is too long: it may have 100000 bytes");
  // The largest that is taken.
  const std::string whole(most_body, 'y');
  EXPECT_EQ(Client(server.port()).ask(post("/echo", whole))->body, whole);
}

TEST(HttpServer, ExpectContinueIsAnsweredBeforeTheBodyIsSent) {
  Running server(echo(), limits());
  Client client(server.port());
  const auto go_on = client.ask("POST /echo HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(go_on);
  EXPECT_EQ(go_on->status, 100);
  EXPECT_EQ(client.ask("abc")->body, "cba");
  const auto no = client.ask("POST /echo HTTP/1.1\r\nContent-Length: 300000\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(no);
  EXPECT_EQ(no->status, 413);
}

TEST(HttpServer, HeadersThatNeverEndAreCutOff) {
  Running server(echo(), limits());
  Client client(server.port());
  client.send("GET / HTTP/1.1\r\n");
  const auto start = Clock::now();
  const std::string line = "X-Header: " + std::string(1'000, 'x') + "\r\n";
  while (client.send(line) && seconds_since(start) < 15) {
  }
  EXPECT_LT(seconds_since(start), 15);
}

TEST(HttpServer, ASlowClientIsCutOffWhileOthersAreServed) {
  HttpLimits few = limits();
  few.request = milliseconds(700);
  few.connections = 64;  // one that was closed counts until the server has seen it
  Running server(echo(), few);
  // A byte now and then, of a request line, of headers, of a body: each byte is in time, the request is not.
  std::atomic<int> cut = 0;
  std::vector<std::thread> slow;
  for (const std::string& begins : {std::string("GET /"), "GET / HTTP/1.1\r\nX: " + std::string(10, 'x'),
                                    std::string("POST /echo HTTP/1.1\r\nContent-Length: 1000\r\n\r\n"),
                                    std::string("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n")})
    slow.emplace_back([&, begins] {
      Client client(server.port());
      const auto start = Clock::now();
      client.send(begins);
      while (client.send("x") && seconds_since(start) < 30) {
        std::this_thread::sleep_for(milliseconds(20));
        if (const auto reply = client.receive(0)) {
          EXPECT_EQ(reply->status, 408) << begins;
          EXPECT_EQ(error_of(reply), "the request did not arrive in time");
          EXPECT_GE(seconds_since(start), 0.65);
          EXPECT_LT(seconds_since(start), 20);
          ++cut;
          break;
        }
      }
    });
  std::int64_t served = 0;
  for (const auto start = Clock::now(); seconds_since(start) < 1; ++served)
    EXPECT_EQ(Client(server.port()).ask(post("/echo", "ab"))->body, "ba");
  for (std::thread& thread : slow) thread.join();
  EXPECT_EQ(cut, 4);
  EXPECT_GT(served, 5);
}

TEST(HttpServer, AClientThatTakesNoAnswerIsLeft) {
  HttpLimits few = limits();
  few.body = 64 << 20;
  few.write = milliseconds(300);
  Running server(echo(), few);
  Client client(server.port());
  // More than the kernel's buffers of both sides hold.
  client.send(post("/echo", std::string(32 << 20, 'x')));
  const auto start = Clock::now();
  while (server.counts().answered < 1 && seconds_since(start) < 30) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(server.counts().answered, 1);
  server.stop();
  EXPECT_LT(seconds_since(start), 30);
}

TEST(HttpServer, ASilentConnectionIsClosedAfterAWhile) {
  HttpLimits few = limits();
  few.idle = milliseconds(300);
  Running server(echo(), few);
  Client silent(server.port()), used(server.port());
  EXPECT_EQ(used.ask(post("/echo", "ab"))->body, "ba");
  EXPECT_TRUE(silent.ends(20));
  EXPECT_TRUE(used.ends(20));
}

TEST(HttpServer, TooManyConnectionsAreRefusedInOneSentence) {
  HttpLimits few = limits();
  few.connections = 2;
  Running server(echo(), few);
  Client first(server.port()), second(server.port());
  EXPECT_EQ(first.ask(post("/echo", "ab"))->body, "ba");
  EXPECT_EQ(second.ask(post("/echo", "ab"))->body, "ba");
  for (int i = 0; i < 3; ++i) {
    const auto reply = Client(server.port()).ask(post("/echo", "ab"));
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 503);
    EXPECT_EQ(error_of(reply), "all 2 connections of the server are in use: ask again");
    EXPECT_NE(reply->head.find("Retry-After: 1"), std::string::npos);
    EXPECT_TRUE(reply->closes());
  }
  EXPECT_EQ(first.ask(post("/echo", "cd"))->body, "dc");
}

// Stopping.

TEST(HttpServer, AConnectionThatIsSilentWhenTheServerStopsIsAnsweredIfItAsksSoon) {
  HttpLimits few = limits();
  few.last_call = milliseconds(20'000);
  Running server(echo(), few);
  Client silent(server.port()), used(server.port()), begun(server.port());
  EXPECT_EQ(used.ask(post("/echo", "ab"))->body, "ba");
  begun.send("POST /echo HTTP/1.1\r\nContent-Le");
  server.ask_to_stop();
  // Refused from now on, by the kernel; that may take until the server has heard of the stop.
  const auto start = Clock::now();
  while (Client(server.port()).connected() && seconds_since(start) < 20) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(Client(server.port()).connected());
  for (Client* client : {&silent, &used}) {
    const auto reply = client->ask(post("/echo", "xyz"));
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->body, "zyx");
    EXPECT_TRUE(reply->closes());
  }
  const auto reply = begun.ask("ngth: 3\r\n\r\nxyz");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body, "zyx");
  server.join();
  EXPECT_LT(seconds_since(start), 19);  // nobody was waited for
  EXPECT_EQ(server.counts().asked, 4);
  EXPECT_EQ(server.counts().answered, 4);
}

TEST(HttpServer, AConnectionThatStaysSilentDoesNotKeepTheServer) {
  HttpLimits few = limits();
  few.idle = milliseconds(60'000);
  few.last_call = milliseconds(200);
  Running server(echo(), few);
  Client silent(server.port()), used(server.port());
  EXPECT_EQ(used.ask(post("/echo", "ab"))->body, "ba");
  const auto start = Clock::now();
  server.stop();
  EXPECT_LT(seconds_since(start), 20);
  EXPECT_TRUE(silent.ends(20));
  EXPECT_TRUE(used.ends(20));
}

TEST(HttpServer, WhatIsBeingAnsweredWhenTheServerStopsIsAnsweredToItsEnd) {
  std::latch begun(1), go_on(1);
  std::vector<Route> routes = echo();
  routes.push_back({"POST", "/slow", [&](const Question& question) {
                      begun.count_down();
                      go_on.wait();
                      return Answer{"text/plain", question.body};
                    }});
  HttpLimits few = limits();
  few.last_call = milliseconds(20'000);
  Running server(routes, few);
  Client client(server.port());
  client.send(post("/slow", std::string(50'000, 'z')) + post("/echo", "ab"));  // two, one behind the other
  begun.wait();
  server.ask_to_stop();
  std::this_thread::sleep_for(milliseconds(100));
  go_on.count_down();
  const auto reply = client.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body, std::string(50'000, 'z'));
  const auto next = client.receive();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->body, "ba");
  EXPECT_TRUE(next->closes());
  server.join();
}

TEST(HttpServer, APortThatIsTakenOrAHostThatIsNoneIsOneSentence) {
  Running server(echo(), limits());
  const int port = server.port();
  EXPECT_EQ(sentence([&] { HttpServer("127.0.0.1", port, limits(), {}); }),
            "cannot listen on 127.0.0.1, port " + std::to_string(port) + ": Address already in use");
  EXPECT_EQ(sentence([&] { HttpServer("256.0.0.1", 0, limits(), {}); }).find("cannot listen on 256.0.0.1: "), 0u);
}

}  // namespace
}  // namespace tessera::runtime::serve
