// The command serve, and SIGTERM under load: no answer is lost, cut, given twice or to somebody else.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <thread>

#include "runtime/safetensors.hpp"
#include "tests/runtime/serve/served_sample.hpp"

namespace tessera::runtime::serve {
namespace {

using std::chrono::milliseconds;

/// What a client of the load has seen.
struct Seen {
  std::int64_t right = 0;    ///< the own answer, bit for bit
  std::int64_t wrong = 0;    ///< anything else that is an answer
  std::int64_t partial = 0;  ///< a part of an answer
  std::int64_t lost = 0;     ///< none, on a connection that the server had accepted, and had not said that it closes
  std::int64_t never = 0;    ///< none, on a connection of which nothing shows that it was ever accepted
};

/// `connections` clients ask for one image after the other, each image once among all, until the server is gone. What
/// is theirs is told by the image: no two have equal outputs.
class Load {
 public:
  Load(int port, const Direct& direct, std::uint32_t connections, std::uint32_t requests_of_a_connection) {
    for (std::uint32_t i = 0; i < images; ++i) {
      expected_.push_back(direct.outputs(numbered_image(i)));
      requests_.push_back(post("/v2/models/sample/infer", infer_json(i)));
    }
    std::set<std::vector<float>> different(expected_.begin(), expected_.end());
    EXPECT_EQ(different.size(), images);
    for (std::uint32_t c = 0; c < connections; ++c)
      threads_.emplace_back([this, port, c, requests_of_a_connection] { ask(port, c, requests_of_a_connection); });
  }
  ~Load() { join(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  Seen join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
    return seen_;
  }
  std::int64_t answered() const { return answered_; }

 private:
  static constexpr std::uint32_t images = 64;

  void ask(int port, std::uint32_t of, std::uint32_t requests_of_a_connection) {
    Seen seen;
    for (std::uint32_t turn = of;;) {
      Client client(port);
      if (!client.connected()) break;
      bool accepted = false, closes = false;
      for (std::uint32_t k = 0; k < requests_of_a_connection && !closes; ++k) {
        const std::uint32_t which = turn++ * 7 % images;
        const auto reply = client.ask(requests_[which]);
        if (!reply) {
          ++(client.partial() ? seen.partial : accepted ? seen.lost : seen.never);
          break;
        }
        ++(is_answer(*reply, which, expected_[which]) ? seen.right : seen.wrong);
        ++answered_;
        accepted = true;
        closes = reply->closes();
      }
    }
    const std::lock_guard lock(mutex_);
    seen_.right += seen.right;
    seen_.wrong += seen.wrong;
    seen_.partial += seen.partial;
    seen_.lost += seen.lost;
    seen_.never += seen.never;
  }

  std::vector<std::vector<float>> expected_;
  std::vector<std::string> requests_;
  std::atomic<std::int64_t> answered_ = 0;
  std::mutex mutex_;
  Seen seen_;
  std::vector<std::thread> threads_;
};

/// The program with the command serve, with a file of parameters.
class ServeProgram : public testing::Test {
 protected:
  ServeProgram() : parameters_(Arena::of_floats(SAMPLE_PARAMETER_FLOATS, 64)) {
    sample_init(parameters_.floats(), 5);
    Safetensors file;
    for (const tessera_parameter& parameter : sample_parameters) {
      const Shape shape(parameter.shape, parameter.shape + parameter.rank);
      file.tensors[parameter.name] = Tensor::of(
          shape,
          std::span<const float>(parameters_.floats() + parameter.offset, static_cast<std::size_t>(elements(shape))));
    }
    write_safetensors(weights(), file);
    direct_.emplace(parameters_.floats());
  }
  std::string weights() { return (folder_ / "weights.safetensors").string(); }
  std::vector<std::string> arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> all{"serve", "--checkpoint", weights(), "--port", "0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// The port that the program tells it is served at.
  int port_of(Process& process, const std::string& said) {
    const auto start = Clock::now();
    std::smatch found;
    std::string line;
    while (process.running() && Clock::now() - start < std::chrono::seconds(60)) {
      line = slurp(said);
      if (line.ends_with("\n") &&
          std::regex_search(line, found, std::regex(R"(at http://(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)/)")))
        return std::stoi(found[1]);
      std::this_thread::sleep_for(milliseconds(5));
    }
    ADD_FAILURE() << "it does not say where it is: " << line;
    return 0;
  }

  TemporaryFolder folder_;
  Arena parameters_;
  std::optional<Direct> direct_;
};

TEST_F(ServeProgram, SigtermUnderLoadLosesNoAnswer) {
  for (int round = 0; round < 6; ++round) {
    const std::string said = (folder_ / ("said" + std::to_string(round))).string();
    Process process(paths::serving_program, arguments({"--connections", "256"}), {.file_bytes = -1, .stdout_to = said});
    const int port = port_of(process, said);
    ASSERT_NE(port, 0);
    Load load(port, *direct_, 32, round % 2 == 0 ? 1'000'000 : 3);  // connections that stay, and many short ones
    while (load.answered() < 200 && process.running()) std::this_thread::sleep_for(milliseconds(1));
    process.send(round % 3 == 0 ? SIGINT : SIGTERM);
    const Seen seen = load.join();
    const Result ended = process.wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(seen.wrong, 0);
    EXPECT_EQ(seen.partial, 0);
    EXPECT_EQ(seen.lost, 0);
    EXPECT_GE(seen.right, 200);
    // What the server says that it answered is what clients have got.
    std::smatch found;
    const std::string text = slurp(said);
    ASSERT_TRUE(std::regex_search(text, found, std::regex(R"(([\d,]+) requests answered, ([\d,]+) images in)")))
        << text;
    for (const int which : {1, 2}) {
      std::string number = found[which];
      std::erase(number, ',');
      EXPECT_EQ(std::stoll(number), seen.right);
    }
    std::cout << seen.right << " answers, " << seen.never << " connections were never accepted\n";
  }
}

TEST_F(ServeProgram, EveryRequestWhoseHeadersWereReadIsAnswered) {
  const Model model = sample_model();
  const Inference inference(model, parameters_.floats(), 8, nullptr);
  for (int round = 0; round < 6; ++round) {
    Service service(
        model, {}, {}, {.batch = 8, .queue = 64, .pixels = 1000},
        [&](const float* images, std::int64_t count, float* outputs) { inference.forward(images, count, outputs); });
    HttpLimits limits;
    limits.connections = 256;
    limits.last_call = milliseconds(30'000);  // however busy this machine is
    Running server(service.routes(), limits);
    Load load(server.port(), *direct_, 32, round % 2 == 0 ? 1'000'000 : 2);
    while (load.answered() < 100) std::this_thread::sleep_for(milliseconds(1));
    server.stop();
    const Seen seen = load.join();
    EXPECT_EQ(server.counts().asked, server.counts().answered);
    EXPECT_EQ(server.counts().answered, seen.right);
    EXPECT_EQ(seen.wrong + seen.partial + seen.lost, 0);
    EXPECT_EQ(service.counts().waiting, 0);
  }
}

TEST_F(ServeProgram, ASignalBeforeAnybodyHasAskedEndsIt) {
  const std::string said = (folder_ / "said").string();
  Process process(paths::serving_program, arguments(), {.file_bytes = -1, .stdout_to = said});
  ASSERT_NE(port_of(process, said), 0);
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().code, 0);
  EXPECT_CONTAINS(slurp(said), "0 requests answered, 0 images in 0 forward passes\n");
}

TEST_F(ServeProgram, AnswersPicturesWithItsOwnNamesAndLimits) {
  spill(folder_ / "names.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  const std::string said = (folder_ / "said").string();
  Process process(paths::serving_program,
                  arguments({"--labels", (folder_ / "names.txt").string(), "--max-pixels", "784", "--max-body", "2000",
                             "--connections", "3"}),
                  {.file_bytes = -1, .stdout_to = said});
  const int port = port_of(process, said);
  ASSERT_NE(port, 0);
  const std::string picture = numbered_picture(4);
  Client first(port);
  const Json json = Json::parse(first.ask(post("/classify?top=1", picture))->body);
  const std::vector<float> outputs = direct_->picture_outputs(picture);
  const auto best = std::ranges::max_element(outputs) - outputs.begin();
  EXPECT_EQ(json["classes"][0]["class"], best);
  EXPECT_EQ(json["classes"][0]["name"], std::string(1, static_cast<char>('a' + best)));
  EXPECT_EQ(error_of(Client(port).ask(post("/classify", "P5 785 1 255\n"))),
            "the body is too large: it has 785x1 pixels, more than 784");
  EXPECT_EQ(error_of(Client(port).ask(post("/classify", std::string(2001, 'x')))),
            "a body of 2001 bytes is too long: it may have 2000");
  // One that was closed counts until the server has seen it, so that fewer than three may be enough.
  std::vector<std::unique_ptr<Client>> others;
  int status = 0;
  do {
    others.push_back(std::make_unique<Client>(port));
    status = others.back()->ask(post("/classify", picture))->status;
  } while (status == 200 && others.size() < 3);
  EXPECT_EQ(status, 503);
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().code, 0);
}

TEST_F(ServeProgram, WaitsForARequestAsLongAsItIsTold) {
  const std::string said = (folder_ / "said").string();
  Process process(paths::serving_program, arguments({"--seconds", "0.5"}), {.file_bytes = -1, .stdout_to = said});
  const int port = port_of(process, said);
  ASSERT_NE(port, 0);
  EXPECT_EQ(Client(port).ask("GET / HTTP/1.1\r\n")->status, 408);
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().code, 0);
}

TEST_F(ServeProgram, OtherAddressesThanLoopbacksAreListenedOnWhereItIsToldSo) {
  constexpr std::uint32_t other = INADDR_LOOPBACK + 1;  // 127.0.0.2, this machine as well
  for (const bool told : {false, true}) {
    const std::string said = (folder_ / (told ? "told" : "not told")).string();
    Process process(paths::serving_program,
                    arguments(told ? std::vector<std::string>{"--host", "0.0.0.0"} : std::vector<std::string>()),
                    {.file_bytes = -1, .stdout_to = said});
    const int port = port_of(process, said);
    ASSERT_NE(port, 0);
    EXPECT_TRUE(Client(port).connected());
    EXPECT_EQ(Client(port, other).connected(), told);
    process.send(SIGTERM);
    EXPECT_EQ(process.wait().code, 0);
  }
}

TEST_F(ServeProgram, WhatIsWrongOnTheCommandLineIsOneSentence) {
  const auto run = [&](std::vector<std::string> words) {
    return Process(paths::serving_program, std::move(words), {}).wait();
  };
  for (const auto& [words, code, part] : std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {arguments({"--host", "256.0.0.1"}), 1, "sample: cannot listen on 256.0.0.1: "},
           {{"serve", "--checkpoint", "/nowhere", "--port", "0"}, 1, "/nowhere"},
           {arguments({"--labels", "/nowhere"}), 1, "/nowhere"},
           {{"serve", "--port", "65536"}, 2, "'65536' is not an integer from 0 to 65,535 "},
           {arguments({"--seconds", "0"}), 2, "'0' is no number from 0.1 to 3,600 "},
           {arguments({"--batch", "x"}), 2, "'x' is not an integer from 1 to 65,536 "},
           {arguments({"--device", "cuda"}), 1, "this program was built without CUDA"}}) {
    const Result result = run(words);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_CONTAINS(result.err, part);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  const Result help = run({"serve", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* part : {"--host", "127.0.0.1", "--port", "--max-body", "--labels", "sample serve --out run"})
    EXPECT_CONTAINS(help.out, part);
  EXPECT_CONTAINS(run({"--help"}).out, "serve");
}

}  // namespace
}  // namespace tessera::runtime::serve
