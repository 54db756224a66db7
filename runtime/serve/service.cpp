#include "runtime/serve/service.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <thread>
#include <utility>

#include "runtime/arena.hpp"
#include "runtime/image.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/serve/infer.hpp"
#include "runtime/serve/page.hpp"
#include "runtime/serve/refusal.hpp"

namespace tessera::runtime::serve {
namespace {

constexpr std::int64_t usual_top = 5;

std::int64_t image_floats(const Model& model) {
  return size_product({model.image_shape[0], model.image_shape[1], model.image_shape[2]});
}

/// Holds one of the places, from when there is one.
class Place {
 public:
  Place(Places& places, Clock::time_point deadline) : places_(places) {
    if (!places_.take(deadline)) refuse(503, "the server was too busy to read the request in time");
  }
  ~Place() { places_.give_back(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Places& places_;
};

std::int64_t top_of(const Question& question, std::int64_t classes) {
  const auto asked = question.parameters.find("top");
  if (asked == question.parameters.end()) return std::min(usual_top, classes);
  const std::string& value = asked->second;
  std::int64_t top = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), top);
  if (error != std::errc{} || end != value.data() + value.size() || top < 1 || top > classes)
    refuse(400, "top is a number from 1 to ", classes, ", the classes that there are");
  return top;
}

}  // namespace

bool Places::take(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (!freed_.wait_until(lock, deadline, [this] { return free_ > 0; })) return false;
  --free_;
  return true;
}

void Places::give_back() {
  const std::lock_guard lock(mutex_);
  ++free_;
  freed_.notify_one();
}

Service::Service(const Model& model, const Preprocessing& input, std::vector<std::string> classes,
                 const ServiceLimits& limits, Batcher::Forward forward)
    : model_(model),
      input_(input),
      classes_(std::move(classes)),
      limits_(limits),
      page_(page_of_model(model, classes_)),
      decoders_(std::max(1u, std::thread::hardware_concurrency())),
      batcher_({image_floats(model), model.classes, limits.batch, limits.queue, model.alignment}, std::move(forward)) {
  batcher_.apply(std::vector<float>(static_cast<std::size_t>(image_floats(model))),
                 Clock::now() + std::chrono::hours(1));
}

std::vector<Route> Service::routes() {
  const auto fixed = [](std::string body, const char* type = "application/json") {
    return [answer = Answer{type, std::move(body)}](const Question&) { return answer; };
  };
  const std::string model = "/v2/models/" + model_.name;
  return {
      {"GET", "/", fixed(page_, "text/html; charset=utf-8")},
      {"POST", "/classify", [this](const Question& question) { return classify(question); }},
      {"GET", "/v2", fixed("{\"name\":\"tessera\",\"version\":\"" TESSERA_VERSION "\",\"extensions\":[]}\n")},
      {"GET", "/v2/health/live", fixed("{\"live\":true}\n")},
      {"GET", "/v2/health/ready", fixed("{\"ready\":true}\n")},
      {"GET", model, fixed(model_metadata(model_))},
      {"GET", model + "/ready", fixed("{\"name\":\"" + model_.name + "\",\"ready\":true}\n")},
      {"POST", model + "/infer", [this](const Question& question) { return infer(question); }},
  };
}

Answer Service::classify(const Question& question) {
  const std::int64_t top = top_of(question, model_.classes);
  std::vector<float> image(static_cast<std::size_t>(image_floats(model_)));
  try {
    const Place place(decoders_, question.deadline);
    const std::span<const std::uint8_t> content(reinterpret_cast<const std::uint8_t*>(question.body.data()),
                                                question.body.size());
    const Image picture = prepared(decode_image(content, model_.image_shape[0], "the body", limits_.pixels), input_,
                                   model_.image_shape[1], model_.image_shape[2]);
    normalize(picture, input_, image.data());
  } catch (const Refusal&) {
    throw;
  } catch (const TooManyPixels& error) {
    throw Refusal(413, error.what());
  } catch (const Error& error) {
    throw Refusal(400, error.what());
  }
  const std::vector<float> outputs = batcher_.apply(std::move(image), question.deadline);
  return {"application/json", classify_response(model_, outputs, top, classes_)};
}

Answer Service::infer(const Question& question) {
  InferRequest request;
  {
    const Place place(decoders_, question.deadline);
    request = read_infer_request(model_, question.body, limits_.queue);
  }
  const std::vector<float> outputs = batcher_.apply(std::move(request.images), question.deadline);
  return {"application/json", infer_response(model_, request, outputs)};
}

}  // namespace tessera::runtime::serve
