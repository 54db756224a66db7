// The library of docs/tutorial's my_vit, through its C interface alone: what it answers, what it refuses, and that any
// number of threads may call it. Built by check_library with ThreadSanitizer. Usage: library_test WEIGHTS PROGRAM
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "my_vit_model.h"
#include "runtime/safetensors.hpp"

namespace {

using tessera::runtime::read_safetensors;

constexpr std::int64_t classes = MY_VIT_MODEL_CLASSES, floats = MY_VIT_MODEL_EMBEDDING_FLOATS;

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cout << "FAILED: " << what << '\n';
  ++failures;
}

void refused(int code, const std::string& part) {
  const std::string said = my_vit_model_error();
  expect(code == 1 && said.find(part) != std::string::npos, "'" + part + "' was expected in: " + said);
}

/// Pictures of one size, of noise, each different.
struct Pictures {
  std::int64_t count, width, height, stride;
  std::vector<std::uint8_t> bytes;

  Pictures(std::int64_t pictures, std::int64_t columns, std::int64_t rows, std::int64_t gap, unsigned seed)
      : count(pictures), width(columns), height(rows), stride(3 * columns + gap) {
    std::mt19937 random(seed);
    bytes.resize(static_cast<std::size_t>(count * height * stride));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  }
};

struct Answers {
  std::vector<std::int32_t> labels;
  std::vector<float> probabilities, embeddings;
  bool operator==(const Answers&) const = default;
};

Answers ask(const my_vit_model* model, const Pictures& pictures) {
  const auto count = static_cast<std::size_t>(pictures.count);
  Answers answers{std::vector<std::int32_t>(count * classes), std::vector<float>(count * classes),
                  std::vector<float>(count * floats)};
  const auto& [number, width, height, stride, bytes] = pictures;
  int code = my_vit_model_classify(model, bytes.data(), number, width, height, stride, classes, answers.labels.data(),
                                   answers.probabilities.data());
  if (code == 0)
    code = my_vit_model_embed(model, bytes.data(), number, width, height, stride, answers.embeddings.data());
  if (code != 0) std::cout << my_vit_model_error() << '\n', std::exit(1);
  return answers;
}

/// The head, in double precision, on what `embed` gives: softmax(W e + b).
void embeddings_are_what_the_head_reads(const my_vit_model* model, const std::string& weights) {
  const auto file = read_safetensors(weights);
  const std::vector<float> matrix = file.at("head.1.weight").floats(), bias = file.at("head.1.bias").floats();
  const Pictures pictures(5, 12, 20, 0, 7);
  const Answers answers = ask(model, pictures);
  double worst = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    std::vector<double> sure(classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      double logit = bias[c];
      for (std::size_t d = 0; d < floats; ++d) logit += matrix[c * floats + d] * answers.embeddings[i * floats + d];
      sum += sure[c] = std::exp(logit);
    }
    for (std::size_t k = 0; k < classes; ++k) {
      const auto label = static_cast<std::size_t>(answers.labels[i * classes + k]);
      worst = std::max(worst, std::abs(sure[label] / sum - answers.probabilities[i * classes + k]));
    }
  }
  expect(worst < 1e-5, "the head of the embeddings differs from the answers by " + std::to_string(worst));
  std::cout << "head(embedding) differs from the answers by at most " << worst << '\n';
}

/// The same picture, in a file, to the program.
void agrees_with_the_program(const my_vit_model* model, const std::string& program, const std::string& weights) {
  const Pictures picture(1, 31, 17, 0, 3);
  const Answers answers = ask(model, picture);
  std::ofstream("picture.ppm", std::ios::binary) << "P6 31 17 255\n"
                                                 << std::string(picture.bytes.begin(), picture.bytes.end());
  const std::string command = program + " predict --topk 10 --json --checkpoint " + weights + " picture.ppm";
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::string said;
  for (char buffer[4096]; pipe && std::fgets(buffer, sizeof buffer, pipe);) said += buffer;
  expect(pipe && pclose(pipe) == 0, command);
  std::size_t at = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    at = said.find("\"probability\":", at);
    if (at == std::string::npos) break;
    at += std::string("\"probability\":").size();
    expect(std::abs(std::strtod(said.c_str() + at, nullptr) - answers.probabilities[k]) < 1e-6,
           "the program gives other probabilities: " + said);
  }
  expect(at != std::string::npos, "the program tells fewer probabilities: " + said);
}

/// 8 threads, each with pictures of its own, in batches of any size, and mistakes between them.
void threads_do_not_meet(const my_vit_model* model) {
  std::vector<Pictures> pictures;
  std::vector<Answers> alone;
  for (unsigned i = 0; i < 8; ++i) {
    pictures.emplace_back(1 + 5 * i, 12 + i, 20 - i, i, i);
    alone.push_back(ask(model, pictures.back()));
  }
  std::vector<int> wrong(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 6; ++turn) {
        wrong[i] += ask(model, pictures[i]) != alone[i];
        std::int32_t label = -1;
        float probability = 0;
        const int width = -static_cast<int>(i) - 1;  // each thread keeps its own sentence
        wrong[i] +=
            my_vit_model_classify(model, pictures[i].bytes.data(), 1, width, 9, 0, 1, &label, &probability) != 1;
        std::this_thread::yield();
        wrong[i] += std::string(my_vit_model_error()).find(std::to_string(width) + "x9") == std::string::npos;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) expect(count == 0, "a thread got other answers than it gets alone");
}

void refuses_what_it_must(const my_vit_model* model, const std::string& weights) {
  my_vit_model* other = nullptr;
  refused(my_vit_model_open("nowhere.safetensors", &other), "nowhere.safetensors");
  refused(my_vit_model_open(nullptr, &other), "null");
  refused(my_vit_model_open(weights.c_str(), nullptr), "null");
  refused(my_vit_model_open_for(MY_VIT_MODEL_VERSION + 1, MY_VIT_DECLARATION_HASH, weights.c_str(), &other),
          "version 2");
  refused(my_vit_model_open_for(MY_VIT_MODEL_VERSION, MY_VIT_DECLARATION_HASH + 1, weights.c_str(), &other),
          "another declaration");
  auto file = read_safetensors(weights);
  file.metadata["declaration_hash"] = "0123456789abcdef";
  write_safetensors("other.safetensors", file);
  refused(my_vit_model_open("other.safetensors", &other), "another declaration of my_vit");
  file.metadata.clear();
  write_safetensors("other.safetensors", file);  // as PyTorch writes: that fits
  expect(my_vit_model_open("other.safetensors", &other) == 0, my_vit_model_error());
  my_vit_model_close(other);
  other = nullptr;
  file.tensors.erase("head.1.bias");
  write_safetensors("other.safetensors", file);
  refused(my_vit_model_open("other.safetensors", &other), "head.1.bias");
  std::filesystem::resize_file("other.safetensors", 1000);
  refused(my_vit_model_open("other.safetensors", &other), "other.safetensors");
  expect(!other, "a model was handed out beside an error");

  const Pictures picture(1, 12, 20, 0, 1);
  std::int32_t label = -1;
  float probability = -1, embedding[floats];
  const auto classify = [&](const std::uint8_t* rgb, std::int64_t count, std::int64_t width, std::int64_t height,
                            std::int64_t stride, std::int64_t top) {
    return my_vit_model_classify(model, rgb, count, width, height, stride, top, &label, &probability);
  };
  const std::uint8_t* const rgb = picture.bytes.data();
  refused(classify(nullptr, 1, 12, 20, 36, 1), "null");
  refused(classify(rgb, 0, 12, 20, 36, 1), "their number is 0");
  refused(classify(rgb, -5, 12, 20, 36, 1), "their number is -5");
  refused(classify(rgb, INT64_MAX, 12, 20, 36, 1), "not enough memory");
  refused(classify(rgb, 1, 12, 8193, 36, 1), "12x8193");
  refused(classify(rgb, 1, 12, 20, 35, 1), "35 bytes");
  refused(classify(rgb, 1, 12, 20, 36, 0), "0 of them");
  refused(classify(rgb, 1, 12, 20, 36, classes + 1), "11 of them");
  refused(my_vit_model_classify(model, rgb, 1, 12, 20, 36, 1, nullptr, &probability), "null");
  refused(my_vit_model_classify(nullptr, rgb, 1, 12, 20, 36, 1, &label, &probability), "'model' is null");
  refused(my_vit_model_embed(nullptr, rgb, 1, 12, 20, 36, embedding), "'model' is null");
  refused(my_vit_model_embed(model, rgb, 1, 12, 20, 36, nullptr), "null");
  setenv("TESSERA_ISA", "quantum", 1);
  refused(classify(rgb, 1, 12, 20, 36, 1), "TESSERA_ISA");
  unsetenv("TESSERA_ISA");
  expect(label == -1 && probability == -1, "something was written beside an error");
  expect(!my_vit_model_label(model, -1) && !my_vit_model_label(model, classes) && !my_vit_model_label(nullptr, 0),
         "a class that is not there has a name");
  my_vit_model_close(nullptr);
}

}  // namespace

int main(int, char** argv) {
  const std::string weights = argv[1], program = argv[2];
  expect(std::string(my_vit_model_error()).empty(), "an error before the first call");
  my_vit_model* model = nullptr;
  if (my_vit_model_open(weights.c_str(), &model) != 0) return std::cout << my_vit_model_error() << '\n', 1;
  refuses_what_it_must(model, weights);
  embeddings_are_what_the_head_reads(model, weights);
  agrees_with_the_program(model, program, weights);
  threads_do_not_meet(model);
  my_vit_model_close(model);
  if (failures == 0) std::cout << "8 threads get the answers that one gets\n";
  return failures != 0;
}
