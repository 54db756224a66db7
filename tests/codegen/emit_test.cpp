// Whole files: what they hold, and that they are the same every time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/headless.hpp"
#include "codegen/passes/subgraph.hpp"
#include "dsl/trace.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_notebook.hpp"
#include "models/vit_relpos.hpp"
#include "tests/codegen/support/refusal.hpp"
#include "tests/codegen/support/sketch.hpp"
#include "tests/models/forward_only_models.hpp"
#include "tests/models/golden_variants.hpp"
#include "tests/recipes/digit_probe.hpp"
#include "tests/recipes/recipes.hpp"

namespace tessera::test {
namespace {

using codegen::GeneratorOptions;
using graph::NodeId;
using graph::Op;

std::map<std::string, std::string> vit_mnist() {
  GeneratorOptions options;
  options.train = true;
  return codegen::generate(trace<models::vit_mnist::VitMnist>("vit_mnist"), options);
}

TEST(Emit, GeneratingTwiceGivesTheSameText) {
  const std::map<std::string, std::string> once = vit_mnist(), twice = vit_mnist();
  ASSERT_EQ(once.size(), twice.size());
  for (const auto& [name, text] : once) EXPECT_TRUE(text == twice.at(name)) << name;
}

TEST(Emit, WritesAHeaderAnApiAProgramAndAFileForEachInstructionSet) {
  std::vector<std::string> names;
  for (const auto& [name, text] : vit_mnist()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"vit_mnist.cpp", "vit_mnist.h", "vit_mnist_avx2.cpp", "vit_mnist_avx512.cpp",
                                      "vit_mnist_kernels.h", "vit_mnist_program.cpp", "vit_mnist_scalar.cpp"}));
}

TEST(Emit, WritesALibraryWhichEmbedsWhereThatIsAskedFor) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.library = true;
  const graph::Graph seen = trace<VitMnistInference>("seen");
  const std::map<std::string, std::string> plain = codegen::generate(seen, options);
  EXPECT_EQ(plain.size(), 7u);
  for (const char* file : {"seen_model.h", "seen_model.cpp", "seen.py"})
    EXPECT_EQ(plain.at(file).find("embed"), std::string::npos) << file;
  options.embedding = true;
  const std::map<std::string, std::string> embeds = codegen::generate(seen, options);
  EXPECT_EQ(embeds.size(), 7u);
  // The head maps eight numbers to ten classes, and ends in a softmax.
  EXPECT_NE(embeds.at("seen_model.h").find("#define SEEN_MODEL_EMBEDDING_FLOATS 8\n"), std::string::npos);
  EXPECT_NE(embeds.at("seen_model.cpp").find("    .embed = seen_embed,\n"), std::string::npos);
  for (const auto& [name, text] : embeds) {
    if (!name.starts_with("seen_model") && name != "seen.py") {
      EXPECT_EQ(text, plain.at(name)) << name;
      continue;
    }
    EXPECT_NE(text.find("embed"), std::string::npos) << name;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << name << ": " << line;
  }
}

/// outputs = images * scale, one for each pixel: no linear map. With a loss where it is wanted.
graph::Graph scaled_pixels(bool loss) {
  Sketch s;
  s.graph.name = "tiny";
  const std::vector<Dim> shape{s.B, Dim::constant(1), Dim::constant(2), Dim::constant(2)};
  const NodeId x = s.input("images", shape);
  const NodeId scale = s.b.broadcast(s.parameter("scale", {shape.begin() + 1, shape.end()}), shape, {1, 2, 3});
  const NodeId outputs = s.b.reduce(Op::reduce_sum, s.b.multiply(x, scale), {2, 3});
  s.value("outputs", outputs);
  if (loss) s.weighted_loss(outputs);
  return s.graph;
}

std::string why_no_library(const graph::Graph& graph, bool embedding) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.library = true;
  options.embedding = embedding;
  return refusal(graph, options);
}

TEST(Emit, RefusesToEmbedWhereNoLinearMapReadsARow) {
  EXPECT_EQ(why_no_library(scaled_pixels(true), true),
            "tiny has no embedding: its outputs are not a linear map of a row of numbers");
}

TEST(Emit, ALibraryOfAModelWithoutClassesEmbedsAndDoesNothingElse) {
  const graph::Graph features = scaled_pixels(false);
  EXPECT_EQ(why_no_library(features, false),
            "tiny has no classes: its library (--library, SHARED) is one that embeds (--embedding, EMBED)");
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.library = options.embedding = true;
  const std::map<std::string, std::string> files = codegen::generate(features, options);
  for (const char* file : {"tiny_model.h", "tiny_model.cpp", "tiny.py"}) {
    EXPECT_NE(files.at(file).find("embed"), std::string::npos) << file;
    for (const char* of_classes : {"classify(", "label", "CLASSES"})
      EXPECT_EQ(files.at(file).find(of_classes), std::string::npos) << file << " has " << of_classes;
  }
}

/// outputs = scale * (x first + x second) of images [B, I], with a loss where it is wanted.
graph::Graph two_maps(double scale, bool loss) {
  Sketch s;
  s.graph.name = "two";
  const NodeId x = s.input("images", {s.B, s.I});
  const auto mapped = [&](const char* key) {
    return s.b.einsum({x, s.parameter(key, {s.J, s.I})}, {{0, 1}, {2, 1}, {0, 2}});
  };
  const NodeId first = mapped("first"), second = mapped("second");
  NodeId outputs = s.b.add(first, second);
  if (scale != 1) outputs = s.b.multiply(outputs, s.b.constant(scale));
  s.value("outputs", outputs);
  if (loss) s.graph.outputs.push_back({graph::Output::Kind::loss, "loss", outputs, graph::none});
  return s.graph;
}

TEST(Emit, TwoHeadsAreAveragedAndOtherSumsOfMapsAreNoHead) {
  EXPECT_TRUE(codegen::has_head(two_maps(0.5, true)));
  EXPECT_FALSE(codegen::has_head(two_maps(0.25, true)));
  EXPECT_FALSE(codegen::has_head(two_maps(1, true)));
  // Without a loss they are features; with one they are logits of a head that is not known.
  EXPECT_TRUE(codegen::embeds(two_maps(1, false)));
  EXPECT_FALSE(codegen::embeds(two_maps(1, true)));
}

TEST(Emit, KeepsLinesOfKernelsWithin120Columns) {
  for (const auto& [name, text] : vit_mnist()) {
    if (!name.ends_with("_scalar.cpp") && !name.ends_with("_avx2.cpp") && !name.ends_with("_avx512.cpp")) continue;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << name << ": " << line;
  }
}

/// The lines of the longest kernel with register tiles in a file: they are those that are not inlined.
std::size_t longest_with_tiles(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0, count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[[gnu::noinline]] static "))
      count = 1;
    else if (count)
      ++count;
    if (line != "}") continue;
    longest = std::max(longest, count);
    count = 0;
  }
  return longest;
}

TEST(Emit, ARegisterTileStandsInTheTextOnceAndNotOnceForEachAccumulator) {
  GeneratorOptions options;
  options.train = true;
  options.isas = {"scalar", "avx2", "avx512"};
  const auto files = codegen::generate(trace<models::CifarVit<{}>>("vit_cifar"), options);
  for (const char* isa : {"avx2", "avx512"}) {
    const std::size_t longest = longest_with_tiles(files.at(fmt::format("vit_cifar_{}.cpp", isa)));
    EXPECT_GT(longest, 20u) << isa;
    EXPECT_LT(longest, 80u) << isa;
  }
}

/// A convolution that halves a padded map, with the gradient of what it reads: zeros around and between that map's
/// rows.
graph::Graph halved_map() {
  constexpr auto B = axis<"B">;
  using Map = Tensor<4_c, 28_c, 28_c>;
  Sketch s;
  s.graph.name = "halved";
  const RecorderScope scope(s.b);
  const Tensor<B, 4_c, 28_c, 28_c> x(s.input("images", Tensor<B, 4_c, 28_c, 28_c>::shape.dims()));
  const Map shift(s.parameter("shift", Map::shape.dims()));
  const Tensor<4_c, 4_c, 3_c, 3_c> weight(s.parameter("weight", Tensor<4_c, 4_c, 3_c, 3_c>::shape.dims()));
  const NodeId halved = node_of(conv2d<Convolution{.stride = 2, .padding = 1}>(x + shift, weight));
  const NodeId outputs = s.b.reduce(Op::reduce_sum, halved, {2, 3});
  s.value("outputs", outputs);
  s.loss(s.b.cross_entropy(outputs, s.labels("labels", {s.B}, 4)));
  return s.graph;
}

/// Whether a line stores a constant, which is what it is called with, not a factor of that.
bool stores_a_constant(const std::string& line) {
  const std::size_t store = line.find("v_store"), constant = line.find(", v_set(real(");
  if (store == std::string::npos || constant == std::string::npos || constant < store) return false;
  const std::string between = line.substr(store, constant - store);
  return std::count(between.begin(), between.end(), '(') == std::count(between.begin(), between.end(), ')') + 1;
}

TEST(Emit, ConstantsAreFilledByTheRunAndNotStoredOneByOne) {
  EXPECT_TRUE(stores_a_constant("  v_store(maps + (c * 784 + i), v_set(real(0.0)));"));
  EXPECT_FALSE(stores_a_constant("  v_store_n(magnitude_0, v_mul(row0, v_set(real(0.25))), 1);"));
  GeneratorOptions options;
  options.isas = {"scalar", "avx2", "avx512", "neon"};
  const auto files = codegen::generate(halved_map(), options);
  for (const std::string& isa : options.isas) {
    const std::string& text = files.at(fmt::format("halved_{}.cpp", isa));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_FALSE(stores_a_constant(line)) << isa << ": " << line;
    EXPECT_NE(text.find(", 29, 116, real(0.0));"), std::string::npos) << isa << ": before each row of all channels";
    EXPECT_NE(text.find(", 1, 28, real(0.0));"), std::string::npos) << isa << ": above the first row";
  }
}

/// A convolution of wide maps whose lines fill vectors badly, 8 lines of 136 columns, with SiLU.
graph::Graph wide_map() {
  constexpr auto B = axis<"B">;
  Sketch s;
  s.graph.name = "wide";
  const RecorderScope scope(s.b);
  const Tensor<B, 32_c, 8_c, 136_c> x(s.input("images", Tensor<B, 32_c, 8_c, 136_c>::shape.dims()));
  const Tensor<32_c, 32_c, 3_c, 3_c> weight(s.parameter("weight", Tensor<32_c, 32_c, 3_c, 3_c>::shape.dims()));
  s.value("outputs", node_of(silu(conv2d<Convolution{.padding = 1}>(x, weight))));
  return s.graph;
}

TEST(Emit, AConvolutionWithLanesAlongChannelsHasOneEpilogueForALine) {
  GeneratorOptions options;
  options.isas = {"scalar", "avx2", "avx512", "neon"};
  const auto files = codegen::generate(wide_map(), options);
  for (const char* isa : {"avx2", "avx512", "neon"}) {
    const std::string& text = files.at(fmt::format("wide_{}.cpp", isa));
    const std::size_t kernel = text.find("lanes along i\n[[gnu::noinline]]");
    ASSERT_NE(kernel, std::string::npos) << isa;
    const std::string body = text.substr(kernel, text.find("\n}\n", kernel) - kernel);
    const std::size_t sums = body.find("v_store_transposed<"), line = body.find("v_load"), silu = body.find("v_tanh");
    EXPECT_NE(sums, std::string::npos) << isa << ": " << body;
    EXPECT_TRUE(sums < line && line < silu) << isa << ": " << body;
    EXPECT_EQ(body.find("v_tanh", silu + 1), std::string::npos) << isa << ": " << body;
    // With 16 vector registers taps are a loop, so that no sums are spilled for what neighbours share.
    EXPECT_EQ(body.find("#pragma GCC unroll 1\n") != std::string::npos, isa == std::string("avx2")) << body;
    // Threads partition the lines, though a line has more points than there are lines.
    EXPECT_NE(body.find("(8, 1"), std::string::npos) << isa << ": " << body;
  }
  EXPECT_EQ(files.at("wide_scalar.cpp").find("v_store_transposed<"), std::string::npos);
}

/// The kernels of a file whose names end in a number.
std::vector<std::string> numbered_kernels(const std::string& text) {
  const std::string begin = "static void ";
  std::istringstream lines(text);
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(begin), end = line.find('(');
    if (at == std::string::npos || end == std::string::npos || end < at) continue;
    const std::string name = line.substr(at + begin.size(), end - at - begin.size());
    const std::string last = name.substr(name.rfind('_') + 1);
    if (last.find_first_not_of("0123456789") == std::string::npos) found.push_back(name);
  }
  return found;
}

TEST(Emit, NamesKernelsAfterWhatTellsThemApartAndNotByNumbers) {
  GeneratorOptions options;
  options.train = true;
  options.isas = {"scalar"};
  const auto files = codegen::generate(trace<models::CifarVit<{}>>("vit_cifar"), options);
  EXPECT_EQ(numbered_kernels(files.at("vit_cifar_scalar.cpp")), std::vector<std::string>{});
  EXPECT_EQ(numbered_kernels(vit_mnist().at("vit_mnist_scalar.cpp")), std::vector<std::string>{});
  EXPECT_EQ(numbered_kernels("static void left_forward_2(\nstatic void right_forward("),
            std::vector<std::string>{"left_forward_2"});
}

TEST(Emit, LeavesNothingOfTheMachineItRanOnInTheText) {
  for (const auto& [name, text] : vit_mnist())
    for (const char* trace : {"/home", "/tmp", "__DATE__", "__TIME__", "__FILE__"})
      EXPECT_EQ(text.find(trace), std::string::npos) << name << " holds " << trace;
}

TEST(Emit, WritesIntoTheLoopWhatTheRecipeAsksForAndNothingElse) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.train = true;
  const std::string plain =
      codegen::generate(trace<models::vit_mnist::VitMnist>("vit_mnist"), options).at("vit_mnist_program.cpp");
  const std::string asked = codegen::generate(trace<DigitProbe>("probe"), options).at("probe_program.cpp");
  for (const char* part : {"run.gather(", "run.improves()", "batch->targets", ".mixup", ".augment", "average."}) {
    EXPECT_EQ(plain.find(part), std::string::npos) << part;
    EXPECT_NE(asked.find(part), std::string::npos) << part;
  }
}

TEST(Emit, AProgramHasTheCommandServeWhereItIsAskedForAndIsElseTheSame) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.train = true;
  const auto program = [&] {
    return codegen::generate(trace<models::vit_mnist::VitMnist>("vit_mnist"), options).at("vit_mnist_program.cpp");
  };
  const std::string plain = program();
  options.serve = true;
  std::string serves = program();
  for (const std::string part : {"#include \"runtime/serve/command.hpp\"\n", ", serve::command(declared)"}) {
    const std::size_t at = serves.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    serves.erase(at, part.size());
  }
  EXPECT_EQ(serves, plain);
}

TEST(Emit, PackingAndAnUpdateThatPacksComputeWhatDependsOnParametersAlone) {
  using Relative =
      models::Vit<{.image = 32, .patch = 4, .width = 64, .heads = 2, .depth = 3, .classes = 10}, models::RelativeBlock>;
  const auto counted = [](const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  };
  GeneratorOptions options;
  options.isas = {"scalar"};
  const std::string text = codegen::generate(trace<Relative>("relative"), options).at("relative_scalar.cpp");
  // The head reads the class token alone: the last block is another one for forward, and not for embed.
  for (const std::string program : {"forward", "embed"}) {
    EXPECT_EQ(counted(text, "static void fold_constants_of_" + program + "("), 1) << program;
    EXPECT_EQ(counted(text, "  fold_constants_of_" + program + "(parameters, packed);"), 2) << program;
  }
  EXPECT_EQ(counted(text, "fold_constants_of_evaluate"), 0) << "what it reads is forward's";
  options.disabled_passes = {"constant_folding"};
  const std::string without = codegen::generate(trace<Relative>("relative"), options).at("relative_scalar.cpp");
  EXPECT_EQ(counted(without, "fold_constants"), 0);
}

TEST(Emit, AnEvaluationCallsTheForwardPassAndComputesTheLossBehindIt) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.train = true;
  // Layers in a loop, and a last one of which the class token alone is computed.
  const std::string text =
      codegen::generate(trace<models::CifarVit<{.layers = 3}>>("cifar"), options).at("cifar_scalar.cpp");
  const std::size_t begin = text.find("\nvoid cifar_evaluate_scalar(");
  ASSERT_NE(begin, std::string::npos);
  const std::string evaluation = text.substr(begin, text.find("\n}\n", begin) - begin);
  EXPECT_NE(evaluation.find("  cifar_forward_scalar(packed, images, batch, outputs, scratch);\n"), std::string::npos)
      << evaluation;
  EXPECT_EQ(evaluation.find("layer"), std::string::npos) << evaluation;
  EXPECT_NE(evaluation.find("softmax_forward("), std::string::npos) << evaluation;
}

TEST(Emit, AnUpdateSparesWeightsThatDoNotDecayFromIt) {
  const auto update_of = [](const graph::Graph& traced) {
    GeneratorOptions options;
    options.isas = {"scalar"};
    const std::string text = codegen::generate(traced, options).at("probe_scalar.cpp");
    const std::size_t at = text.find("void probe_update_and_pack_scalar(");
    return text.substr(at, text.find("\n}\n", at) - at);
  };
  // The statement that updates a weight.
  const auto updates = [](const std::string& text, const std::string& weight) {
    const std::size_t at = text.find("update(", text.find("// " + weight));
    return text.substr(at, text.find(';', at) - at);
  };
  graph::Graph traced = trace<DigitProbe>("probe");
  const std::string both = update_of(traced);
  EXPECT_EQ(both.find("none"), std::string::npos) << both;
  for (graph::Node& n : traced.nodes)
    if (n.name == "hidden.weight") n.decay = false;
  const std::string one = update_of(traced);
  EXPECT_NE(one.find("  const float none = 0;\n"), std::string::npos) << one;
  for (const auto& [text, decays] : {std::pair{both, true}, std::pair{one, false}}) {
    const std::string update = updates(text, "hidden.weight");
    EXPECT_EQ(update.find(" decay,") != std::string::npos, decays) << update;
    EXPECT_EQ(update.find(" &none,") != std::string::npos, !decays) << update;
  }
}

TEST(Emit, FindsTheGridOfPatchesThatAModelCutsItsImagesInto) {
  const auto grid = [](graph::Graph traced) {
    codegen::ModelFiles model;
    model.forward = std::move(traced);
    const codegen::PatchGrid found = codegen::patch_grid(model);
    return std::pair(found.rows, found.columns);
  };
  using Grid = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(grid(trace<models::vit_mnist::VitMnist>("vit_mnist")), Grid(7, 7));
  EXPECT_EQ(grid(trace<models::VitSimple>("oblong")), Grid(4, 2));
  EXPECT_EQ(grid(trace<models::VitOnlyRegisters>("oblong_patches")), Grid(1, 5));
  EXPECT_EQ(grid(trace<DigitProbe>("uncut")), Grid(0, 0));
}

TEST(Emit, LabelsAreOfTheClassesOfTheLossWhateverElseAnImageGives) {
  Sketch each;  // seven logits for each of two parts of an image, whose sum is compared with the image's label
  each.graph.name = "tiny";
  const NodeId weight = each.parameter("weight", {each.K, each.J, each.I});
  const NodeId logits =
      each.b.einsum({each.input("images", {each.B, each.I}), weight}, {{'b', 'i'}, {'k', 'j', 'i'}, {'b', 'k', 'j'}});
  each.value("outputs", logits);
  each.loss(each.b.cross_entropy(each.b.reduce(Op::reduce_sum, logits, {1}), each.labels("labels", {each.B}, 7)));
  const std::map<std::string, std::string> files = codegen::generate(each.graph, {});
  EXPECT_NE(files.at("tiny.h").find("#define TINY_OUTPUT_FLOATS 14"), std::string::npos);
  EXPECT_NE(files.at("tiny.h").find("a label is not in [0, 7)"), std::string::npos);
  EXPECT_NE(files.at("tiny.h").find("#define TINY_CLASSES 7"), std::string::npos);
  EXPECT_NE(files.at("tiny.cpp").find("labels[i] >= TINY_CLASSES)"), std::string::npos);
}

TEST(Emit, AModelOfTokensTakesIntegersAndLooksWhetherTheyAreBelowItsSmallestTable) {
  Sketch each;  // rows of two tables, of 7 and of 5 rows, for each of five tokens
  each.graph.name = "tiny";
  const NodeId tokens = each.labels("tokens", {each.B, each.I}, 5);
  const NodeId rows = each.b.gather(each.parameter("table", {each.J, each.K}), tokens);
  const NodeId logits = each.b.add(rows, each.b.gather(each.parameter("other", {each.I, each.K}), tokens));
  each.value("outputs", logits);
  each.loss(each.b.cross_entropy(logits, each.labels("labels", {each.B, each.I}, 2)));
  GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  const std::map<std::string, std::string> files = codegen::generate(each.graph, options);
  const auto has = [&](const char* file, const char* text) {
    EXPECT_NE(files.at(file).find(text), std::string::npos) << text;
  };
  has("tiny.h", "int tiny_forward(const float* parameters, const float* packed, const int32_t* tokens, int64_t batch,");
  has("tiny.h", "#define TINY_TOKENS 5 /* of one image */");
  has("tiny.h", "#define TINY_CODES 5 /* tokens are below it */");
  has("tiny.h", "TINY_ERROR_TOKEN = 7, /* a token is not in [0, 5) */");
  has("tiny.cpp", "i < count; ++i)\n    if (tokens[i] < 0 || tokens[i] >= TINY_CODES) return false;");
  has("tiny.cpp", "if (!tokens_fit(tokens, batch * TINY_TOKENS)) return TINY_ERROR_TOKEN;");
  has("tiny.cpp", "i < batch * 5; ++i)\n    if (labels[i] < 0 || labels[i] >= TINY_CLASSES) return false;");
  has("tiny_cuda.h", "/* outputs of tokens. */");
  for (const auto& [name, text] : files) EXPECT_EQ(text.find("input_gradient"), std::string::npos) << name;
  options.train = true;
  try {
    codegen::generate(each.graph, options);
    FAIL() << "nothing was refused";
  } catch (const codegen::Error& error) {
    EXPECT_STREQ(error.what(),
                 "tiny reads tokens: a program (--train, TRAIN) reads pictures; call tiny_train_step from your own");
  }
}

TEST(Emit, ModelOfTeamsWithoutWeightsMarksWhatItDoesNotCall) {
  // A large image is worth a team; nothing is partitioned by the rows of a weight's gradient, for there is no weight.
  Sketch large;
  large.graph.name = "large";
  const Dim T = Dim::axis("T", 256), W = Dim::axis("W", 64);
  const NodeId x = large.input("images", {large.B, T, W});
  const NodeId scores = large.b.softmax(large.b.einsum({x, x}, {{'b', 'i', 'k'}, {'b', 'j', 'k'}, {'b', 'i', 'j'}}), 2);
  const NodeId mixed = large.b.einsum({scores, x}, {{'b', 'i', 'j'}, {'b', 'j', 'k'}, {'b', 'i', 'k'}});
  const NodeId y = large.b.add(mixed, large.b.broadcast(large.parameter("bias", {W}), {large.B, T, W}, {2}));
  large.value("outputs", large.b.rearrange(y, {{large.B, T, W}, {{0}, {1}, {2}}, {{0}, {1, 2}}}, {large.B, T * W}));
  large.loss(large.b.reduce(Op::reduce_sum, y, {0, 1, 2}));
  const std::string text = codegen::generate(large.graph, {}).at("large_avx2.cpp");
  EXPECT_NE(text.find("struct Team"), std::string::npos);
  EXPECT_EQ(text.find("= threads();"), std::string::npos);
  EXPECT_NE(text.find("[[maybe_unused]] static std::int64_t threads()"), std::string::npos);
}

/// All files of a model, with all that can be asked for.
std::map<std::string, std::string> every_file(const graph::Graph& traced, codegen::Precision precision) {
  GeneratorOptions options;
  options.precision = precision;
  options.train = true;
  options.cuda = true;
  return codegen::generate(traced, options);
}

TEST(Emit, AModelWithoutALossHasNothingOfTrainingInItsFiles) {
  for (const codegen::Precision precision : {codegen::Precision::fp32, codegen::Precision::bf16}) {
    std::map<std::string, std::string> files = every_file(trace<VitMnistInference>("seen"), precision);
    EXPECT_EQ(files.size(), precision == codegen::Precision::fp32 ? 11u : 13u);
    for (auto& [name, text] : files) {
      // Of all models alike: the row of the table of parameters, and what kernels are made of.
      const std::string row = "from the start of the parameters, and of the gradients alike";
      if (const std::size_t at = text.find(row); at != std::string::npos) text.erase(at, row.size());
      if (const std::size_t at = text.find("// ---- kernels"); at != std::string::npos) text.erase(0, at);
      if (name.ends_with("_cuda_program.cu")) text.erase(0, text.find("std::int64_t forward_scratch_bytes"));
      const std::string micro_kernel = "rank_one_update";
      for (std::size_t at; (at = text.find(micro_kernel)) != std::string::npos;) text.erase(at, micro_kernel.size());
      for (const char* part : {"gradient", "optimizer", "moment", "loss", "labels", "learning_rate", "train_", "Train",
                               "_TRAIN", "evaluate", "seed, ", "step", "at_once", "_update", "Session"}) {
        const std::size_t at = text.find(part);
        EXPECT_EQ(at, std::string::npos) << name << ": " << text.substr(at < 60 ? 0 : at - 60, 140);
      }
    }
  }
}

TEST(Emit, RowsGoInBlocksPastAllColumnsWhereCachesDoNotHoldThemAll) {
  using Long = models::Vit<{.image = {1024, 768}, .width = 768, .heads = 12, .depth = 2}>;
  using Short = models::Vit<{.image = {512, 384}, .width = 768, .heads = 12, .depth = 2}>;
  GeneratorOptions options;
  options.isas = {"scalar", "avx2"};
  const auto fc1 = [&](const graph::Graph& traced, const std::string& isa) {
    const std::string text = codegen::generate(traced, options).at("model_" + isa + ".cpp");
    const std::size_t begin = text.find("blocks_mlp_fc1_forward(");
    return text.substr(begin, text.find("\n}\n", begin) - begin);
  };
  // 3,073 rows of 768 numbers: 341 rows are a MiB, 336 whole tiles of six.
  const std::string in_blocks = fc1(trace<Long>("model"), "avx2");
  for (const char* const part : {"  for (std::int64_t top = mine.begin; top < mine.end; top += 336) {\n"
                                 "    const std::int64_t bottom = std::min<std::int64_t>(mine.end, top + 336);\n"
                                 "    for (std::int64_t m = mine.left; m < mine.right; m += 16) {\n",
                                 "for (std::int64_t n = top; n < std::min<std::int64_t>(bottom, 3072); n += 6)",
                                 "if (bottom > 3072) tile(constant<1>, 3072);"})
    EXPECT_NE(in_blocks.find(part), std::string::npos) << part;
  EXPECT_EQ(fc1(trace<Long>("model"), "scalar").find("bottom"), std::string::npos);
  EXPECT_EQ(fc1(trace<Short>("model"), "avx2").find("bottom"), std::string::npos);
}

TEST(Emit, FactorsOfBf16AreWidenedOnceForATilesColumnsWhereOnlySinglePrecisionIsMultiplied) {
  const graph::Graph traced = trace<SmallVitInference>("small");
  const auto widens = [&](codegen::Precision precision, const std::string& isa) {
    return every_file(traced, precision).at("small_" + isa + ".cpp").find("each_widened<rows, ") != std::string::npos;
  };
  for (const char* const isa : {"avx2", "avx512"}) EXPECT_TRUE(widens(codegen::Precision::bf16, isa)) << isa;
  for (const char* const isa : {"scalar", "avx512_bf16", "amx"})
    EXPECT_FALSE(widens(codegen::Precision::bf16, isa)) << isa;
  EXPECT_FALSE(widens(codegen::Precision::fp32, "avx2"));
}

TEST(Emit, PanelsOfBf16AreWidenedOnceForAllRowsWhereTheseAreFourTilesOrMore) {
  // 26 tokens are four tiles of six rows and more, 17 are not.
  using Some = models::Vit<{
      .image = 20, .patch = 4, .width = 48, .heads = 1, .depth = 1, .classes = 4, .pooling = models::Pooling::mean}>;
  using Few = models::Vit<{
      .image = 16, .patch = 4, .width = 48, .heads = 1, .depth = 1, .classes = 4, .pooling = models::Pooling::mean}>;
  const auto widens = [](const graph::Graph& declared, const std::string& isa) {
    const std::string text =
        every_file(codegen::subgraph(declared, {"outputs"}), codegen::Precision::bf16).at("m_" + isa + ".cpp");
    const std::size_t begin = text.find("static void blocks_mlp_fc1_forward("), end = text.find("\n}\n", begin);
    EXPECT_NE(begin, std::string::npos) << text;
    return text.substr(begin, end - begin).find("  widen_panel<") != std::string::npos;
  };
  EXPECT_TRUE(widens(trace<Some>("m"), "avx2"));
  EXPECT_FALSE(widens(trace<Few>("m"), "avx2"));
  EXPECT_FALSE(widens(trace<Some>("m"), "avx512_bf16"));
}

TEST(Emit, AProgramWithoutALossIsForPicturesAndRowsOfNumbers) {
  const graph::Graph maps = trace<GoldenSelfAttention>("maps");
  GeneratorOptions options;
  EXPECT_EQ(codegen::generate(maps, options).size(), 6u);
  options.train = true;
  try {
    codegen::generate(maps, options);
    ADD_FAILURE() << "a program was written";
  } catch (const codegen::Error& error) {
    EXPECT_STREQ(error.what(),
                 "maps makes [32, 6, 5] of [32, 6, 5]: a program (--train, TRAIN) is for models that make a row of "
                 "numbers of a picture, [channels, height, width]");
  }
}

TEST(Emit, AModelOfOneHeadWhoseHeadsAreJoinedIsGenerated) {
  const graph::Graph one = trace<models::NotebookVit<models::NotebookVitSpec{
      .channels = 1, .height = 8, .width = 8, .patch = 4, .token = 8, .heads = 1, .classes = 3, .blocks = 2}>>("one");
  for (const codegen::Precision precision : codegen::precisions) {
    GeneratorOptions options;
    options.precision = precision;
    EXPECT_NO_THROW(codegen::generate(one, options)) << codegen::name_of(precision);
  }
}

/// The C functions of a header: the words that stand before "(" and begin with the model's name.
std::set<std::string> functions_of(const std::string& header, const std::string& model) {
  std::set<std::string> all;
  for (std::size_t at = 0; (at = header.find(" " + model + "_", at)) != std::string::npos; ++at) {
    const std::size_t end = header.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + 1);
    if (header[end] == '(') all.insert(header.substr(at + 2 + model.size(), end - at - 2 - model.size()));
  }
  return all;
}

TEST(Emit, LossesOfTargetsAndOfTheCallerHaveTheirFunctions) {
  GeneratorOptions options;
  options.isas = {"scalar"};
  const std::string targets = codegen::generate(trace<SquaredError>("m"), options).at("m.h"),
                    callers = codegen::generate(trace<CallersLoss>("m"), options).at("m.h"),
                    labels = codegen::generate(trace<OwnCrossEntropy>("m"), options).at("m.h");
  std::set<std::string> functions = functions_of(labels, "m");
  EXPECT_TRUE(functions.contains("loss_and_gradients") && functions.contains("train_step"));
  EXPECT_EQ(functions_of(targets, "m"), functions);
  for (const char* gone : {"evaluate", "input_gradient", "loss_and_gradients", "train_step"}) functions.erase(gone);
  functions.insert("gradients");
  EXPECT_EQ(functions_of(callers, "m"), functions);
  for (const std::string* header : {&targets, &callers})
    for (const char* of_labels : {"M_CLASSES", "M_ERROR_LABEL", "int32_t* labels"})
      EXPECT_EQ(header->find(of_labels), std::string::npos) << of_labels;
  EXPECT_NE(targets.find("#define M_TARGET_FLOATS 3 "), std::string::npos);
  EXPECT_NE(targets.find("const float* targets"), std::string::npos);
  EXPECT_NE(callers.find("const float* output_gradients"), std::string::npos);
  options.cuda = true;
  EXPECT_NE(codegen::generate(trace<SquaredError>("m"), options).at("m_cuda.h").find("const float* targets"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::test
