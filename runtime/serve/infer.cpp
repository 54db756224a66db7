#include "runtime/serve/infer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/arena.hpp"
#include "runtime/inference.hpp"
#include "runtime/serve/refusal.hpp"

namespace tessera::runtime::serve {
namespace {

/// What comes in. Not ordered_json, whose objects copy their members, values nested to any depth by recursion among
/// them, whenever they grow.
using Json = nlohmann::json;
/// What goes out.
using Ordered = nlohmann::ordered_json;

constexpr const char *input_name = "images", *output_name = "outputs";

/// Strings that are no UTF-8 get its replacement characters.
template <class AnyJson>
std::string written(const AnyJson& json) {
  return json.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string all = "[";
  for (const std::int64_t size : shape) all += text(all.size() > 1 ? ", " : "", size);
  return all + "]";
}

std::array<std::int64_t, 4> shape_of_images(const Model& model, std::int64_t count) {
  return {count, model.image_shape[0], model.image_shape[1], model.image_shape[2]};
}

/// The member of an object, which it must have.
const Json& member(const Json& object, const char* name, const char* of) {
  if (!object.is_object()) refuse(400, of, " is no JSON object");
  const auto found = object.find(name);
  if (found == object.end()) refuse(400, of, " has no \"", name, "\"");
  return *found;
}

std::string string_member(const Json& object, const char* name, const char* of) {
  const Json& value = member(object, name, of);
  if (!value.is_string()) refuse(400, "\"", name, "\" of ", of, " is no string");
  return value.get<std::string>();
}

void append_number(const Json& value, std::vector<float>& to) {
  if (!value.is_number()) refuse(400, "number ", to.size(), " of \"data\" is no number");
  const auto number = static_cast<float>(value.get<double>());
  if (!std::isfinite(number)) refuse(400, "number ", to.size(), " of \"data\" is too large for FP32");
  to.push_back(number);
}

/// The numbers of arrays nested as the shape says, row-major.
void append_nested(const Json& value, std::span<const std::int64_t> shape, std::vector<float>& to) {
  if (shape.empty()) return append_number(value, to);
  if (!value.is_array() || static_cast<std::int64_t>(value.size()) != shape[0])
    refuse(400, "\"data\" is nested in another way than its shape says");
  for (const Json& part : value) append_nested(part, shape.subspan(1), to);
}

void append_float(std::string& to, float value) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  to.append(digits.data(), error == std::errc{} ? end : digits.data());
}

void check_finite(const Model& model, std::span<const float> values) {
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    refuse(500, model.name, " has no finite answer for this image");
}

/// What the request asks for beside its input: nothing that there is not.
void check_outputs(const Json& request) {
  const auto outputs = request.find("outputs");
  if (outputs == request.end()) return;
  if (!outputs->is_array()) refuse(400, "\"outputs\" of the request is no list");
  for (const Json& output : *outputs)
    if (const std::string name = string_member(output, "name", "an output"); name != output_name)
      refuse(400, "there is no output ", Json(name).dump(-1, ' ', true), ": the model has \"", output_name, "\"");
}

}  // namespace

InferRequest read_infer_request(const Model& model, std::string_view json, std::int64_t most_images) {
  Json request;
  try {
    request = Json::parse(json.begin(), json.end());
  } catch (const Json::parse_error& wrong) {
    refuse(400, "the body is no JSON: it cannot be read from byte ", wrong.byte, " on");
  } catch (const Json::out_of_range&) {
    refuse(400, "the body has a number that is too large");
  }
  InferRequest result;
  const Json& inputs = member(request, "inputs", "the request");
  if (request.contains("id")) result.id = string_member(request, "id", "the request");
  check_outputs(request);
  if (!inputs.is_array() || inputs.size() != 1)
    refuse(400, "\"inputs\" of the request is no list of one tensor, \"", input_name, "\"");
  const Json& input = inputs[0];
  const std::string name = string_member(input, "name", "the input");
  if (name != input_name)
    refuse(400, "there is no input ", Json(name).dump(-1, ' ', true), ": the model reads \"", input_name, "\"");
  const std::string datatype = string_member(input, "datatype", "the input");
  if (datatype != "FP32") refuse(400, "the model reads FP32, not ", Json(datatype).dump(-1, ' ', true));

  const Json& dims = member(input, "shape", "the input");
  std::vector<std::int64_t> shape;
  for (const Json& dim : dims) {
    // Beyond 63 bits it is no number of images either.
    const bool fits = dim.is_number_unsigned() && dim.get<std::uint64_t>() < std::uint64_t{1} << 63;
    shape.push_back(fits ? dim.get<std::int64_t>() : -1);
  }
  const std::array<std::int64_t, 4> read = shape_of_images(model, -1);
  if (!dims.is_array() || shape.size() != 4 || shape[0] < 1 ||
      !std::equal(shape.begin() + 1, shape.end(), read.begin() + 1))
    refuse(400, "the shape of the input is ", written(dims).substr(0, 100), ", the model reads ", shape_text(read),
           " with any number above 0 in the place of -1");
  if (shape[0] > most_images)
    refuse(413, "a request of ", shape[0], " images is larger than the queue, which holds ", most_images);
  result.count = shape[0];

  const Json& data = member(input, "data", "the input");
  const auto floats = static_cast<std::size_t>(size_product({shape[0], shape[1], shape[2], shape[3]}));
  if (!data.is_array()) refuse(400, "\"data\" of the input is no list");
  const bool nested = !data.empty() && data[0].is_array();
  if (!nested && data.size() != floats)
    refuse(400, "\"data\" has ", data.size(), " numbers, its shape ", shape_text(shape), " has ", floats);
  result.images.reserve(std::min(floats, json.size()));  // a shape alone takes no memory
  append_nested(data, nested ? std::span<const std::int64_t>(shape) : std::array{static_cast<std::int64_t>(floats)},
                result.images);
  return result;
}

std::string infer_response(const Model& model, const InferRequest& request, std::span<const float> outputs) {
  check_finite(model, outputs);
  const std::array<std::int64_t, 2> shape{request.count, model.classes};
  Ordered response{{"model_name", model.name}};
  if (request.id) response["id"] = *request.id;
  std::string all = written(response);
  all.pop_back();
  all += text(",\"outputs\":[{\"name\":\"", output_name, "\",\"shape\":", shape_text(shape),
              ",\"datatype\":\"FP32\",\"data\":[");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i > 0) all += ',';
    append_float(all, outputs[i]);
  }
  return all + "]}]}\n";
}

std::string model_metadata(const Model& model) {
  const auto tensor = [](const char* name, const Ordered& shape) {
    return Ordered{{"name", name}, {"datatype", "FP32"}, {"shape", shape}};
  };
  return written(Ordered{{"name", model.name},
                         {"platform", "tessera"},
                         {"inputs", Ordered::array({tensor(input_name, shape_of_images(model, -1))})},
                         {"outputs", Ordered::array({tensor(output_name, Ordered::array({-1, model.classes}))})}}) +
         "\n";
}

std::string classify_response(const Model& model, std::span<const float> outputs, std::int64_t top,
                              const std::vector<std::string>& names) {
  const std::vector<float> sure = probabilities(model, outputs);
  check_finite(model, sure);
  std::string all = "{\"model_name\":" + written(Json(model.name)) + ",\"classes\":[";
  for (const std::int32_t label : likeliest(sure, top)) {
    const auto at = static_cast<std::size_t>(label);
    if (all.back() != '[') all += ',';
    all += text("{\"class\":", label);
    if (at < names.size() && !names[at].empty()) all += ",\"name\":" + written(Json(names[at]));
    all += ",\"probability\":";
    append_float(all, sure[at]);
    all += '}';
  }
  return all + "]}\n";
}

std::string error_json(const std::string& sentence) { return written(Json{{"error", sentence}}) + "\n"; }

}  // namespace tessera::runtime::serve
