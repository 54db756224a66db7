// No options, tables of tiles or recipe may do more to the generator than draw a codegen::Error from it.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "dsl/graph/builder.hpp"

namespace {

using namespace tessera;

/// A linear layer with a loss: small, so that generating it takes milliseconds.
graph::Graph declared(FuzzedDataProvider& input) {
  graph::Graph g;
  graph::Builder b(g);
  g.name = input.ConsumeBool() ? "model" : input.ConsumeRandomLengthString(12);
  const std::int64_t odd = input.ConsumeBool() ? 5 : input.ConsumeIntegral<std::int64_t>();
  static std::string axis;
  axis = input.ConsumeBool() ? "I" : input.ConsumeRandomLengthString(8);
  const Dim B = Dim::axis("B"), I = Dim::axis(axis, odd), J = Dim::axis("J", 3);
  const graph::NodeId x = b.input("images", {B, I}), labels = b.input("labels", {B}, graph::Type::integer);
  const graph::NodeId weight = b.parameter(input.ConsumeBool() ? "head.weight" : input.ConsumeRandomLengthString(12),
                                           {J, I}, {graph::Init::Kind::uniform, -1, 1}, true);
  const graph::NodeId y = b.einsum({x, weight}, {{'b', 'i'}, {'j', 'i'}, {'b', 'j'}});
  g.outputs.push_back({graph::Output::Kind::value, "outputs", y, graph::none});
  g.outputs.push_back({graph::Output::Kind::loss, "loss", b.cross_entropy(y, labels), graph::none});
  graph::Recipe& r = g.recipe;
  for (double* number : {&r.learning_rate, &r.beta1, &r.epsilon, &r.momentum, &r.weight_decay, &r.clip_norm, &r.warmup,
                         &r.floor, &r.every, &r.smoothing, &r.average})
    if (input.ConsumeBool()) *number = input.ConsumeFloatingPoint<double>();
  r.optimizer = input.ConsumeBool() ? graph::Recipe::Optimizer::adamw : graph::Recipe::Optimizer::sgd;
  return g;
}

std::string word(FuzzedDataProvider& input) {
  static const char* const words[] = {"scalar",
                                      "avx2",
                                      "avx512",
                                      "avx512_bf16",
                                      "amx",
                                      "neon",
                                      "bf16",
                                      "int8",
                                      "int4",
                                      "fp32",
                                      "columns",
                                      "rows",
                                      "vectors",
                                      "tile",
                                      "1",
                                      "64",
                                      "0",
                                      "-1",
                                      "9223372036854775807",
                                      "wgmma:",
                                      "128x64",
                                      "none",
                                      "again",
                                      "=",
                                      ":",
                                      "\n",
                                      "#",
                                      ","};
  return input.ConsumeIntegralInRange(0, 7) ? input.PickValueInArray(words) : input.ConsumeRandomLengthString(8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const graph::Graph g = declared(input);
  codegen::GeneratorOptions options;
  while (input.ConsumeBool() && options.isas.size() < 4) options.isas.push_back(word(input));
  options.precision = input.PickValueInArray(codegen::precisions);
  options.train = input.ConsumeBool();
  options.cuda = input.ConsumeBool() && !codegen::quantizes(options.precision);
  if (input.ConsumeBool()) {
    std::string table;
    while (input.ConsumeBool()) table += word(input) + (input.ConsumeBool() ? " " : "\n");
    options.tiles_of_cpu = table;
  }
  while (input.ConsumeBool() && options.tiles.size() < 4) options.tiles[word(input) + word(input)] = word(input);
  try {
    for (const auto& [name, text] : codegen::generate(g, options))
      if (text.empty() || name.find('/') != std::string::npos) std::abort();
  } catch (const codegen::Error&) {
  }
  // The command line, without an --out: it writes nothing.
  static const char* const names[] = {"--isa",  "--precision", "--batch", "--predict", "--cuda-tile",
                                      "--real", "--cuda",      "--train", "--help",    "--tiles"};
  std::vector<std::string> arguments{"generator"};
  while (input.ConsumeBool() && arguments.size() < 9) {
    arguments.emplace_back(input.PickValueInArray(names));
    if (input.ConsumeBool()) arguments.push_back(word(input));
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  static FILE* const nowhere = std::freopen("/dev/null", "w", stdout);
  if (!nowhere) std::abort();
  codegen::generator_main(g, static_cast<int>(argv.size()), argv.data());
  return 0;
}
