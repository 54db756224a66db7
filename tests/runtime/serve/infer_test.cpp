// The JSON of the Open Inference Protocol.
#include "runtime/serve/infer.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/serve/refusal.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime::serve {
namespace {

using Json = nlohmann::json;

/// A request for one image of zeros, as it is right.
Json right() {
  return {
      {"inputs",
       {{{"name", "images"}, {"shape", {1, 1, 28, 28}}, {"datatype", "FP32"}, {"data", std::vector<float>(28 * 28)}}}}};
}

std::string refusal(const std::string& json, int status = 400) {
  try {
    read_infer_request(sample_model(), json, 8);
  } catch (const Refusal& refused) {
    EXPECT_EQ(refused.status(), status) << refused.what();
    return refused.what();
  }
  return "";
}

std::string refusal(const Json& json, int status = 400) { return refusal(json.dump(), status); }

/// The right request with another value for a member of its input.
Json with(const char* member, const Json& value) {
  Json json = right();
  json["inputs"][0][member] = value;
  return json;
}

TEST(Infer, ReadsFlatAndNestedDataAlike) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> flat(2 * 28 * 28);
  for (float& value : flat) value = normal(random);
  Json nested = Json::array();
  for (std::size_t n = 0; n < 2; ++n) {
    Json rows = Json::array();
    for (std::size_t y = 0; y < 28; ++y)
      rows.push_back(std::vector<float>(flat.begin() + static_cast<std::ptrdiff_t>((28 * n + y) * 28),
                                        flat.begin() + static_cast<std::ptrdiff_t>((28 * n + y + 1) * 28)));
    nested.push_back(Json::array({rows}));
  }
  for (const Json& data : {Json(flat), nested}) {
    Json json = with("shape", {2, 1, 28, 28});
    json["inputs"][0]["data"] = data;
    json["id"] = "42";
    json["outputs"] = {{{"name", "outputs"}}};
    json["parameters"] = {{"of", "nobody"}};
    const InferRequest request = read_infer_request(sample_model(), json.dump(), 8);
    EXPECT_EQ(request.id, "42");
    EXPECT_EQ(request.count, 2);
    EXPECT_EQ(request.images, flat);
  }
}

TEST(Infer, WhatIsWrongIsOneSentence) {
  EXPECT_EQ(refusal(std::string("{\"inputs\":")), "the body is no JSON: it cannot be read from byte 11 on");
  EXPECT_EQ(refusal(std::string("")), "the body is no JSON: it cannot be read from byte 1 on");
  EXPECT_EQ(refusal(std::string("[1e999]")), "the body has a number that is too large");
  EXPECT_EQ(refusal(std::string("[]")), "the request is no JSON object");
  EXPECT_EQ(refusal(std::string("{}")), "the request has no \"inputs\"");
  const std::string no_list = "\"inputs\" of the request is no list of one tensor, \"images\"";
  for (const Json& inputs : {Json(1), Json::array(), Json::array({1, 2}), Json::object()})
    EXPECT_EQ(refusal(Json{{"inputs", inputs}}), no_list);
  EXPECT_EQ(refusal(Json{{"inputs", {1}}}), "the input is no JSON object");
  Json unnamed = right();
  unnamed["inputs"][0].erase("name");
  EXPECT_EQ(refusal(unnamed), "the input has no \"name\"");
  EXPECT_EQ(refusal(with("name", 3)), "\"name\" of the input is no string");
  EXPECT_EQ(refusal(with("name", "pixel\n")), "there is no input \"pixel\\n\": the model reads \"images\"");
  EXPECT_EQ(refusal(with("datatype", "FP64")), "the model reads FP32, not \"FP64\"");
  EXPECT_EQ(refusal(with("datatype", "BYTES")), "the model reads FP32, not \"BYTES\"");
  Json wanted = right();
  wanted["outputs"] = {{{"name", "logits"}}};
  EXPECT_EQ(refusal(wanted), "there is no output \"logits\": the model has \"outputs\"");
  wanted["outputs"] = 3;
  EXPECT_EQ(refusal(wanted), "\"outputs\" of the request is no list");
  Json named = right();
  named["id"] = 7;
  EXPECT_EQ(refusal(named), "\"id\" of the request is no string");
}

TEST(Infer, ShapesThatDoNotFitAreOneSentence) {
  for (const Json& shape :
       {Json(784), Json{1, 784}, Json{1, 1, 28, 27}, Json{1, 3, 28, 28}, Json{0, 1, 28, 28}, Json{-1, 1, 28, 28},
        Json{1.5, 1, 28, 28}, Json{"1", 1, 28, 28}, Json{1, 1, 28, 28, 1}, Json{18446744073709551615u, 1, 28, 28}})
    EXPECT_EQ(refusal(with("shape", shape)), "the shape of the input is " + shape.dump() +
                                                 ", the model reads [-1, 1, 28, 28] with any number above 0 in the "
                                                 "place of -1");
  // Nothing as large as a shape says is made room for.
  EXPECT_EQ(refusal(with("shape", {9223372036854775807, 1, 28, 28}), 413),
            "a request of 9223372036854775807 images is larger than the queue, which holds 8");
  EXPECT_EQ(refusal(with("shape", {9, 1, 28, 28}), 413),
            "a request of 9 images is larger than the queue, which holds 8");
  EXPECT_EQ(refusal(with("shape", {2, 1, 28, 28})), "\"data\" has 784 numbers, its shape [2, 1, 28, 28] has 1568");
}

TEST(Infer, DataThatDoesNotFitIsOneSentence) {
  EXPECT_EQ(refusal(with("data", "AAAA")), "\"data\" of the input is no list");
  EXPECT_EQ(refusal(with("data", Json::array())), "\"data\" has 0 numbers, its shape [1, 1, 28, 28] has 784");
  Json data = std::vector<float>(784);
  data[5] = "x";
  EXPECT_EQ(refusal(with("data", data)), "number 5 of \"data\" is no number");
  data[5] = Json::array({1, 2});
  EXPECT_EQ(refusal(with("data", data)), "number 5 of \"data\" is no number");
  data[5] = nullptr;
  EXPECT_EQ(refusal(with("data", data)), "number 5 of \"data\" is no number");
  data[5] = 1e300;
  EXPECT_EQ(refusal(with("data", data)), "number 5 of \"data\" is too large for FP32");
  const std::string nested = "\"data\" is nested in another way than its shape says";
  const Json row = std::vector<float>(28);
  EXPECT_EQ(refusal(with("data", Json::array({std::vector<float>(784)}))), nested);
  EXPECT_EQ(refusal(with("data", Json::array({Json::array({Json::array({row})})}))), nested);
  EXPECT_EQ(refusal(with("data", Json::array({Json::array({std::vector<Json>(28, Json::array({row}))})}))), nested);
  std::string deep(100'000, '[');
  deep += std::string(100'000, ']');
  Json json = right();
  std::string text = json.dump();
  const std::size_t at = text.find("\"data\":[") + 7;
  text.replace(at, text.find(']', at) + 1 - at, deep);
  EXPECT_EQ(refusal(text), nested);
}

TEST(Infer, OutputsAreTheSameFloatsAgain) {
  std::mt19937 random(2);
  std::vector<float> outputs;
  while (outputs.size() < 2'000) {  // of any size and sign
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) outputs.push_back(value);
  }
  outputs[0] = std::numeric_limits<float>::denorm_min();
  outputs[1] = std::numeric_limits<float>::max();
  outputs[2] = -0.0f;
  InferRequest request;
  request.id = "a \"b\"\n";
  request.count = 200;
  const Json response = Json::parse(infer_response(sample_model(), request, outputs));
  EXPECT_EQ(response["model_name"], "sample");
  EXPECT_EQ(response["id"], "a \"b\"\n");
  ASSERT_EQ(response["outputs"].size(), 1u);
  const Json& output = response["outputs"][0];
  EXPECT_EQ(output["name"], "outputs");
  EXPECT_EQ(output["datatype"], "FP32");
  EXPECT_EQ(output["shape"], Json({200, 10}));
  ASSERT_EQ(output["data"].size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(output["data"][i].get<float>()), std::bit_cast<std::uint32_t>(outputs[i]));
  request.id.reset();
  EXPECT_FALSE(Json::parse(infer_response(sample_model(), request, outputs)).contains("id"));
}

TEST(Infer, WhatIsNotFiniteIsAnErrorAndNotNull) {
  std::vector<float> outputs(10, 1.0f);
  outputs[3] = std::numeric_limits<float>::quiet_NaN();
  const InferRequest request{{}, 1, {}};
  const std::string sentence_of_it = "sample has no finite answer for this image";
  EXPECT_EQ(sentence([&] { infer_response(sample_model(), request, outputs); }), sentence_of_it);
  EXPECT_EQ(sentence([&] { classify_response(sample_model(), outputs, 3, {}); }), sentence_of_it);
}

TEST(Infer, ClassesAreTheLikeliestFirstWithTheirNames) {
  const std::vector<float> outputs{0, 5, 0, 1, 0, 0, 0, 0, 0, 0};
  const std::vector<std::string> names{"a", "b <&\"", "c", "", "e", "f", "g", "h", "i", "\xff"};
  const Json said = Json::parse(classify_response(sample_model(), outputs, 2, names));
  EXPECT_EQ(said["model_name"], "sample");
  ASSERT_EQ(said["classes"].size(), 2u);
  EXPECT_EQ(said["classes"][0]["class"], 1);
  EXPECT_EQ(said["classes"][0]["name"], "b <&\"");
  EXPECT_EQ(said["classes"][1]["class"], 3);
  EXPECT_FALSE(said["classes"][1].contains("name"));
  EXPECT_TRUE(Json::accept(classify_response(sample_model(), outputs, 10, names)));  // though a name is no UTF-8
}

TEST(Infer, MetadataHaveNamesTypesAndShapes) {
  const Json said = Json::parse(model_metadata(sample_model()));
  EXPECT_EQ(said, (Json{{"name", "sample"},
                        {"platform", "tessera"},
                        {"inputs", {{{"name", "images"}, {"datatype", "FP32"}, {"shape", {-1, 1, 28, 28}}}}},
                        {"outputs", {{{"name", "outputs"}, {"datatype", "FP32"}, {"shape", {-1, 10}}}}}}));
}

}  // namespace
}  // namespace tessera::runtime::serve
