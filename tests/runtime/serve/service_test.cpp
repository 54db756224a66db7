// A model behind the HTTP server: answers are those of a direct call, what is none is one sentence.
#include "runtime/serve/service.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <latch>
#include <thread>

#include "runtime/safetensors.hpp"
#include "tests/runtime/serve/served_sample.hpp"

namespace tessera::runtime::serve {
namespace {

class Served : public testing::Test {
 protected:
  Served()
      : parameters_(Arena::of_floats(SAMPLE_PARAMETER_FLOATS, 64)),
        initialised_(sample_init(parameters_.floats(), 3)),
        direct_(parameters_.floats()),
        inference_(model_, parameters_.floats(), 8, nullptr),
        service_(model_, {}, {"zero", "one", "<two>", "3", "4", "5", "6", "7", "8", "nine"},
                 {.batch = 8, .queue = 64, .pixels = 50'000},
                 [this](const float* images, std::int64_t count, float* outputs) {
                   inference_.forward(images, count, outputs);
                 }),
        server_(service_.routes(), {.connections = 40, .body = 1 << 20}) {}

  std::optional<Reply> ask(const std::string& request) { return Client(server_.port()).ask(request); }
  std::optional<Reply> classify(const std::string& body, const std::string& query = "") {
    return ask(post("/classify" + query, body));
  }
  std::optional<Reply> infer(const std::string& body) { return ask(post("/v2/models/sample/infer", body)); }

  /// Whether the classes are those of the outputs, the likeliest first, with the same bits of their probabilities.
  void expect_classes(const std::optional<Reply>& reply, const std::vector<float>& outputs, std::size_t top) {
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->status, 200) << reply->body;
    const std::vector<float> sure = probabilities(model_, outputs);
    const std::vector<std::int32_t> order = likeliest(sure, static_cast<std::int64_t>(top));
    const Json said = Json::parse(reply->body);
    ASSERT_EQ(said["classes"].size(), top);
    std::vector<float> told, wanted;
    for (std::size_t i = 0; i < top; ++i) {
      EXPECT_EQ(said["classes"][i]["class"], order[i]);
      told.push_back(said["classes"][i]["probability"].get<float>());
      wanted.push_back(sure[static_cast<std::size_t>(order[i])]);
    }
    EXPECT_TRUE(equal_bits(told, wanted)) << reply->body;
  }

  const Model model_ = sample_model();
  Arena parameters_;
  int initialised_;
  Direct direct_;
  Inference inference_;
  Service service_;
  Running server_;
};

TEST_F(Served, TensorsAreAnsweredWithTheBitsOfADirectCall) {
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto reply = infer(infer_json(i));
    ASSERT_TRUE(reply);
    EXPECT_TRUE(is_answer(*reply, i, direct_.outputs(numbered_image(i)))) << reply->body;
  }
  // Several in one request, more than a batch.
  Json json = Json::parse(infer_json(0));
  std::vector<float> images, outputs;
  for (std::uint32_t i = 0; i < 13; ++i) {
    const std::vector<float> image = numbered_image(i), row = direct_.outputs(image);
    images.insert(images.end(), image.begin(), image.end());
    outputs.insert(outputs.end(), row.begin(), row.end());
  }
  json["inputs"][0]["shape"][0] = 13;
  json["inputs"][0]["data"] = images;
  const auto reply = infer(json.dump());
  ASSERT_TRUE(reply);
  EXPECT_EQ(Json::parse(reply->body)["outputs"][0]["shape"], Json({13, 10}));
  EXPECT_TRUE(equal_bits(Json::parse(reply->body)["outputs"][0]["data"].get<std::vector<float>>(), outputs));
}

TEST_F(Served, PicturesAreAnsweredWithTheBitsOfADirectCall) {
  const std::string golden = std::string(paths::golden) + "/pictures/";
  std::string bmp = "BM";
  const auto number = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bmp += static_cast<char>(value >> (8 * i));
  };
  for (const std::uint32_t value : {62u, 0u, 54u, 40u, 2u, 1u}) number(value, 4);  // two pixels of 24 bits
  number(1, 2);
  number(24, 2);
  for (int i = 0; i < 6; ++i) number(0, 4);
  bmp += std::string("\x10\x20\x30\xf0\xe0\xd0\0\0", 8);
  for (const std::string& file : {numbered_picture(1), numbered_picture(2), slurp(golden + "ramp.jpg"),
                                  slurp(golden + "ramp_progressive.jpg"), bmp, std::string("P5 2 1 255\n\x10\xf0")}) {
    expect_classes(classify(file), direct_.picture_outputs(file), 5);
    expect_classes(classify(file, "?top=1"), direct_.picture_outputs(file), 1);
    expect_classes(classify(file, "?top=10"), direct_.picture_outputs(file), 10);
  }
  const Json said = Json::parse(classify(numbered_picture(1), "?top=10")->body);
  for (const Json& one : said["classes"])
    EXPECT_EQ(one["name"], (std::vector<std::string>{"zero", "one", "<two>", "3", "4", "5", "6", "7", "8",
                                                     "nine"})[one["class"].get<std::size_t>()]);
}

TEST_F(Served, WhatIsNoPictureIsOneSentence) {
  const std::string picture = numbered_picture(1), none = " is not a PNG, JPEG, BMP or PGM picture that can be read";
  const std::string jpeg = slurp(std::string(paths::golden) + "/pictures/ramp.jpg");
  for (const auto& [body, status, begin] : std::vector<std::tuple<std::string, int, std::string>>{
           {"", 400, "the body" + none},
           {"hello", 400, "the body" + none},
           {infer_json(1), 400, "the body" + none},
           {picture.substr(0, picture.size() / 2), 400, "the body" + none + ": it is truncated"},
           {jpeg.substr(0, jpeg.size() / 2), 400, "the body is truncated: a JPEG picture without an end"},
           {picture + std::string(2 << 20, 'x'), 413, "a body of "},
           {"P5 300 200 255\n", 413, "the body is too large: it has 300x200 pixels, more than 50000"},
           {"P5 8193 1 255\n", 400, "the body" + none}}) {
    const auto reply = classify(body);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, status) << reply->body;
    EXPECT_EQ(error_of(reply).substr(0, begin.size()), begin);
  }
  // A header alone takes no memory of the pixels that it declares.
  for (const auto& [width, height] : {std::pair{8000u, 8000u}, {300u, 200u}}) {
    std::string png = numbered_picture(1);
    for (std::size_t i = 0; i < 4; ++i) {
      png[16 + i] = static_cast<char>(width >> (24 - 8 * i));
      png[20 + i] = static_cast<char>(height >> (24 - 8 * i));
    }
    const std::string head = png.substr(12, 17);
    std::uint32_t crc = 0xffffffff;
    for (const char c : head) {
      crc ^= static_cast<std::uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    }
    crc = ~crc;
    for (std::size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
    const auto reply = classify(png);
    EXPECT_EQ(error_of(reply), text("the body is too large: it has ", width, "x", height, " pixels, more than 50000"));
    EXPECT_EQ(reply->status, 413);
  }
  for (const char* top : {"0", "11", "-1", "x", "1x", ""})
    EXPECT_EQ(error_of(classify(picture, std::string("?top=") + top)),
              "top is a number from 1 to 10, the classes that there are");
  expect_classes(classify(picture), direct_.picture_outputs(picture), 5);
}

TEST_F(Served, WrongTensorsAreOneSentence) {
  for (const auto& [change, status, begin] : std::vector<std::tuple<Json, int, std::string>>{
           {{{"name", "pixels"}}, 400, "there is no input \"pixels\""},
           {{{"datatype", "UINT8"}}, 400, "the model reads FP32, not \"UINT8\""},
           {{{"shape", {1, 3, 28, 28}}}, 400, "the shape of the input is [1,3,28,28]"},
           {{{"data", {1, 2, 3}}}, 400, "\"data\" has 3 numbers"},
           {{{"shape", {65, 1, 28, 28}}}, 413, "a request of 65 images is larger than the queue, which holds 64"}}) {
    Json json = Json::parse(infer_json(1));
    json["inputs"][0].update(change);
    const auto reply = infer(json.dump());
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, status);
    EXPECT_EQ(error_of(reply).substr(0, begin.size()), begin);
  }
  EXPECT_EQ(error_of(infer(numbered_picture(1))), "the body is no JSON: it cannot be read from byte 1 on");
  EXPECT_EQ(ask(post("/v2/models/other/infer", infer_json(1)))->status, 404);
}

TEST_F(Served, TellsOfItselfAsTheProtocolHasIt) {
  const auto json = [&](const std::string& path) { return Json::parse(ask(get(path))->body); };
  EXPECT_EQ(json("/v2/health/live"), (Json{{"live", true}}));
  EXPECT_EQ(json("/v2/health/ready"), (Json{{"ready", true}}));
  EXPECT_EQ(json("/v2")["name"], "tessera");
  EXPECT_EQ(json("/v2/models/sample/ready"), (Json{{"name", "sample"}, {"ready", true}}));
  EXPECT_EQ(json("/v2/models/sample")["inputs"][0]["shape"], Json({-1, 1, 28, 28}));
  const auto page = ask(get("/"));
  ASSERT_TRUE(page);
  EXPECT_NE(page->head.find("Content-Type: text/html; charset=utf-8"), std::string::npos);
  for (const char* part : {"<h1>sample</h1>", "7,850", "images [-1, 1, 28, 28]", "<li>&lt;two&gt;</li>", "/classify"})
    EXPECT_CONTAINS(page->body, part);
  for (const char* foreign : {"http://www", "https://", "src=\"", "@import"})
    EXPECT_EQ(page->body.find(foreign), std::string::npos) << foreign;
}

TEST_F(Served, AThousandRequestsAt32ConnectionsEachGetTheirOwnAnswer) {
  constexpr std::uint32_t requests = 1'000, connections = 32;
  std::vector<std::vector<float>> expected;
  for (std::uint32_t i = 0; i < requests; ++i) expected.push_back(direct_.outputs(numbered_image(i)));
  std::vector<std::string> bodies;
  for (std::uint32_t i = 0; i < requests; ++i) bodies.push_back(infer_json(i));
  std::atomic<std::uint32_t> next = 0, right = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t c = 0; c < connections; ++c)
    threads.emplace_back([&] {
      Client client(server_.port());
      for (std::uint32_t i; (i = next++) < requests;) {
        const auto reply = client.ask(post("/v2/models/sample/infer", bodies[i]));
        if (reply && is_answer(*reply, i, expected[i])) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, requests);
  server_.stop();  // an answer is counted once it is written, when its client may have it already
  EXPECT_EQ(server_.counts().answered, requests);
  const Batcher::Counts counts = service_.counts();
  EXPECT_EQ(counts.images, requests + 1);  // one is of the start
  EXPECT_LE(counts.passes, counts.images);
  std::cout << counts.images << " images in " << counts.passes << " forward passes\n";
}

TEST_F(Served, AFullQueueIsOneSentence) {
  // The forward pass of another service waits.
  std::atomic<bool> warm = false;
  std::latch begun(1), go_on(1);
  Service busy(model_, {}, {}, {.batch = 1, .queue = 2, .pixels = 1000},
               [&](const float* images, std::int64_t count, float* outputs) {
                 if (warm) {
                   if (!begun.try_wait()) begun.count_down();
                   go_on.wait();
                 }
                 inference_.forward(images, count, outputs);
               });
  warm = true;
  Running server(busy.routes(), {.connections = 10});
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(server.port());
  const auto ask_for = [&](std::uint32_t which) {
    clients[which].send(post("/v2/models/sample/infer", infer_json(which)));
  };
  ask_for(0);
  begun.wait();
  ask_for(1);
  ask_for(2);
  while (busy.counts().waiting != 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto refused = Client(server.port()).ask(post("/v2/models/sample/infer", infer_json(3)));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(error_of(refused), "the queue is full: 2 images wait for the model, 2 can");
  EXPECT_NE(refused->head.find("Retry-After: 1"), std::string::npos);
  go_on.count_down();
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto reply = clients[i].receive();
    ASSERT_TRUE(reply);
    EXPECT_TRUE(is_answer(*reply, i, direct_.outputs(numbered_image(i))));
  }
}

TEST_F(Served, AModelThatFailsAtTheStartIsNotServed) {
  EXPECT_EQ(sentence([&] {
              Service(model_, {}, {}, {}, [](const float*, std::int64_t, float*) { fail("TESSERA_ISA is wrong"); });
            }),
            "TESSERA_ISA is wrong");
}

}  // namespace
}  // namespace tessera::runtime::serve
