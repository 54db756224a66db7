// The sample model, served in this process or by its program, and what it answers to a direct call.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/image.hpp"
#include "runtime/inference.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/serve/server.hpp"
#include "runtime/serve/service.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"
#include "tests/runtime/serve/client.hpp"

namespace tessera::runtime::serve {

using Json = nlohmann::json;

constexpr std::size_t image_size = 28 * 28;

/// The sample model with parameters, for calls without any server.
class Direct {
 public:
  explicit Direct(const float* parameters)
      : inference_(model_, parameters, 1, nullptr),
        input_(Arena::of_floats(image_size, 64)),
        output_(Arena::of_floats(10, 64)) {}

  std::vector<float> outputs(std::span<const float> image) const {
    std::copy(image.begin(), image.end(), input_.floats());
    inference_.forward(input_.floats(), 1, output_.floats());
    return {output_.floats(), output_.floats() + 10};
  }
  /// Of the bytes of a picture file.
  std::vector<float> picture_outputs(const std::string& file) const {
    const Image picture = prepared(decode_image(bytes_of(file), 1, "x"), {}, 28, 28);
    std::vector<float> image(image_size);
    normalize(picture.pixels, 1, {}, image.data());
    return outputs(image);
  }

 private:
  const Model model_ = sample_model();
  Inference inference_;
  Arena input_, output_;
};

/// Image number `which`: different from all others.
inline std::vector<float> numbered_image(std::uint32_t which) {
  std::mt19937 random(which);
  std::vector<float> image(image_size);
  for (float& value : image) value = static_cast<float>(random() % 1024) / 1024;
  return image;
}

/// The same as bytes, as a grey BMP or PNG file.
inline std::string numbered_picture(std::uint32_t which) {
  std::mt19937 random(which);
  Bytes pixels(image_size);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random());
  const Bytes png = encode_png(pixels, 1, 28, 28);
  return {png.begin(), png.end()};
}

inline std::string infer_json(std::uint32_t which) {
  return Json{
      {"id", std::to_string(which)},
      {"inputs",
       {{{"name", "images"}, {"shape", {1, 1, 28, 28}}, {"datatype", "FP32"}, {"data", numbered_image(which)}}}}}
      .dump();
}

inline bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<std::uint32_t>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); });
}

/// Whether this is the answer to image `which` and to no other: its id, and the bits of a direct call.
inline bool is_answer(const Reply& reply, std::uint32_t which, const std::vector<float>& expected) {
  if (reply.status != 200) return false;
  const Json said = Json::parse(reply.body, nullptr, false);
  return !said.is_discarded() && said.value("id", "") == std::to_string(which) &&
         equal_bits(said["outputs"][0]["data"].get<std::vector<float>>(), expected);
}

inline std::string error_of(const std::optional<Reply>& reply) {
  if (!reply) return "no answer";
  const Json said = Json::parse(reply->body, nullptr, false);
  return said.is_discarded() ? "no JSON: " + reply->body : said.value("error", "no error");
}

/// An HttpServer that runs in a thread until it is stopped.
class Running {
 public:
  Running(std::vector<Route> routes, const HttpLimits& limits)
      : stop_(::eventfd(0, EFD_CLOEXEC)),
        server_("127.0.0.1", 0, limits, std::move(routes)),
        thread_([this] { server_.run(stop_.number()); }) {}
  ~Running() { stop(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  void ask_to_stop() {
    const std::uint64_t one = 1;
    if (::write(stop_.number(), &one, sizeof one) != sizeof one) throw Error("the eventfd cannot be written");
  }
  void stop() {
    if (!thread_.joinable()) return;
    ask_to_stop();
    thread_.join();
  }
  void join() { thread_.join(); }
  int port() const { return server_.port(); }
  HttpServer::Counts counts() const { return server_.counts(); }

 private:
  Descriptor stop_;
  HttpServer server_;
  std::thread thread_;
};

}  // namespace tessera::runtime::serve
