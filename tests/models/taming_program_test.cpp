// The program taming_digits, with a VQGAN as it starts: what it draws are no digits, but the bytes are those of the
// seed.
#include <iostream>
#include <map>
#include <optional>

#include "digits_gpt.h"
#include "runtime/checkpoint.hpp"
#include "runtime/digits.hpp"
#include "runtime/forward_pass.hpp"
#include "runtime/image.hpp"
#include "runtime/picture_sheet.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/sampling.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"
#include "vqgan_digits_decode.h"
#include "vqgan_digits_encode.h"

namespace tessera::runtime {
namespace {

/// The starting values of both phases in one file, the codes being those of the second.
void write_vqgan(const std::filesystem::path& path, std::uint64_t seed) {
  Safetensors file;
  const auto put = [&](const auto& table, const std::vector<float>& numbers) {
    for (const tessera_parameter& row : table) {
      const Shape shape(row.shape, row.shape + row.rank);
      const auto count = static_cast<std::size_t>(elements(shape));
      file.tensors[row.name] = Tensor::of(shape, std::span(&numbers[static_cast<std::size_t>(row.offset)], count));
    }
  };
  std::vector<float> encoder(VQGAN_DIGITS_ENCODE_PARAMETER_FLOATS), decoder(VQGAN_DIGITS_DECODE_PARAMETER_FLOATS);
  ASSERT_EQ(vqgan_digits_encode_init(encoder.data(), seed), 0);
  ASSERT_EQ(vqgan_digits_decode_init(decoder.data(), seed), 0);
  put(vqgan_digits_encode_parameters, encoder);
  put(vqgan_digits_decode_parameters, decoder);
  write_safetensors(path, file);
}

class TamingProgram : public testing::Test {
 protected:
  TamingProgram() { write_vqgan(folder / "vqgan.safetensors", 1); }
  std::string at(const std::string& name) const { return (folder / name).string(); }
  static std::string succeeds(const Result& result) {
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
  static std::string fails(const Result& result) {
    EXPECT_EQ(result.code, 1) << result.out;
    return result.err;
  }
  Result trained(const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{
        "train", "--vqgan", at("vqgan.safetensors"), "--out", at(out), "--images", "40", "--batch", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sample(arguments);
  }
  Image drawn(const std::vector<std::string>& more, const std::string& run = "run") const {
    std::vector<std::string> arguments{"sample", "--out", at(run), "--count", "3", "-o", at("s.png")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    succeeds(sample(arguments));
    const std::string png = slurp(folder / "s.png");
    return decode_image(bytes_of(png), 1, "s.png");
  }
  TemporaryFolder folder;
};

TEST_F(TamingProgram, TellsTheVersionOfTesseraAndOfTheDeclaration) {
  const std::string version = succeeds(sample({"--version"}));
  EXPECT_TRUE(version.starts_with("taming_digits, declaration ")) << version;
  EXPECT_CONTAINS(version, ", made with Tessera ");
}

TEST_F(TamingProgram, ARunThatWasResumedEndsInTheSameBytes) {
  const std::string said = succeeds(trained("run", {"--steps", "60"}));
  EXPECT_NE(said.find("step 60/60  loss "), std::string::npos) << said;
  succeeds(trained("again", {"--steps", "23"}));
  succeeds(trained("again", {"--steps", "60", "--resume"}));
  EXPECT_EQ(slurp(folder / "again/checkpoint.safetensors"), slurp(folder / "run/checkpoint.safetensors"));
  EXPECT_NE(fails(trained("run", {"--steps", "60"})).find("is there already"), std::string::npos);
  // What would make it another run.
  for (const auto& [option, value, said] : {std::tuple{"--seed", "2", ": its seed is '1', not '2'"},
                                            {"--learning-rate", "0.5", ": its learning rate is '0.002', not '0.5'"},
                                            {"--data", "elsewhere", ": its data is 'built-in digits', not '"}})
    EXPECT_NE(fails(trained("again", {"--steps", "70", "--resume", option, value})).find(said), std::string::npos)
        << option;
}

TEST_F(TamingProgram, TheCurveOfAResumedRunGoesOn) {
  succeeds(trained("run", {"--steps", "110"}));
  succeeds(trained("again", {"--steps", "57"}));
  succeeds(trained("again", {"--steps", "110", "--resume"}));
  const Safetensors whole = read_safetensors(folder / "run/checkpoint.safetensors");
  EXPECT_EQ(slurp(folder / "again/checkpoint.safetensors"), slurp(folder / "run/checkpoint.safetensors"));
  EXPECT_NE(whole.metadata.at("curve").find("\n100,"), std::string::npos) << whole.metadata.at("curve");
  const std::string report = slurp(folder / "run/report.html");
  for (const char* said : {"<h2>Samples</h2>", "<h3>Class 0</h3>", "<h3>Class 9</h3>", "<h2>Curve</h2>",
                           "nats a token on test images; even chances: 4.1589"})
    EXPECT_NE(report.find(said), std::string::npos) << said;
}

TEST_F(TamingProgram, AFieldOfACheckpointOutOfItsBoundsIsOneSentence) {
  succeeds(trained("run", {"--steps", "101"}));
  const std::filesystem::path path = folder / "run/checkpoint.safetensors";
  const Safetensors sound = read_safetensors(path);
  const auto refused = [&](const std::string& key, const std::optional<std::string>& value) {
    Safetensors file = sound;
    file.metadata.erase(key);
    if (value) file.metadata[key] = *value;
    write_safetensors(path, file);
    const std::string before = slurp(path), said = fails(trained("run", {"--steps", "102", "--resume"}));
    EXPECT_TRUE(slurp(path) == before) << key;
    return said;
  };
  const std::string begin = "taming_digits: " + path.string() + ": the checkpoint";
  const std::string names = "step,epoch,train_loss,train_accuracy,test_loss,test_accuracy\n";
  for (const auto& [key, values] : std::map<std::string, std::vector<std::string>>{
           {"step", {"", "-1", "1x", "4294967297", "999999999999", "99999999999999999999", "nan"}},
           {"losses summed", {"", "-1", "0", "2", "100", "1e0"}},  // one step is behind the row
           {"loss sum", {"", "-1", "nan", "inf", "1e301"}},
           {"curve",
            {names, names + "99,5,1,0,1,\n", names + "100,0,1,0,1,\n", names + "100,101,1,0,1,\n",
             names + "100,20,nan,0,1,\n", names + "100,20,inf,0,1,\n", names + "100,20,-1,0,1,\n",
             names + "100,20,1,0,nan,\n", names + "100,20,1,0,,\n", names + "100,20,1,0,1,\n200,40,1,0,1,\n"}}}) {
    for (const std::string& value : values)
      EXPECT_EQ(refused(key, value), begin + "'s '" + key + "' is damaged\n") << value;
    EXPECT_EQ(refused(key, std::nullopt), begin + " does not say its '" + key + "'\n");
  }
  // Fields that contradict one another.
  EXPECT_EQ(refused("step", "100"), begin + "'s 'losses summed' is damaged\n");
  EXPECT_EQ(refused("step", "1"), begin + "'s 'curve' is damaged\n");
  EXPECT_EQ(refused("curve", names + "100,x\n"),
            "taming_digits: " + path.string() + ": line 2 of the curve is damaged\n");
  write_safetensors(path, sound);
  succeeds(trained("run", {"--steps", "102", "--resume"}));
}

TEST_F(TamingProgram, TokensThatAreNotKeptAreReadAsRandomOnes) {
  const auto loss = [&](const std::string& out, const std::string& keep) {
    const std::string said = succeeds(trained(out, {"--steps", "40", "--keep", keep}));
    return said.substr(said.find("  loss "), 14);
  };
  EXPECT_NE(loss("half", "0.5"), loss("all", "1"));
  succeeds(trained("half-again", {"--steps", "17", "--keep", "0.5"}));
  succeeds(trained("half-again", {"--steps", "40", "--keep", "0.5", "--resume"}));
  EXPECT_EQ(slurp(folder / "half-again/checkpoint.safetensors"), slurp(folder / "half/checkpoint.safetensors"));
  EXPECT_NE(fails(trained("half", {"--steps", "50", "--resume"})).find(": its keep is '0.5', not '1'"),
            std::string::npos);
}

TEST_F(TamingProgram, EvalTellsTheLossOfATokenThatTrainingEndedWith) {
  const std::string trained_to = succeeds(trained("run", {"--steps", "30"}));
  const std::string said = succeeds(sample({"eval", "--out", at("run"), "--images", "40"}));
  const std::size_t test = trained_to.find("  test ") + 7;
  EXPECT_EQ(said.rfind("loss " + trained_to.substr(test, 6) + " nats a token on ", 0), 0u) << said << trained_to;
  write_vqgan(folder / "other.safetensors", 2);
  EXPECT_NE(fails(sample({"eval", "--out", at("run"), "--vqgan", at("other.safetensors")}))
                .find("was trained on another codebook ("),
            std::string::npos);
}

TEST_F(TamingProgram, WhatIsDrawnDependsOnTheSeedAlone) {
  succeeds(trained("run", {"--steps", "10"}));
  const Image first = drawn({"--seed", "5"});
  EXPECT_EQ(first.height, 56);
  EXPECT_EQ(first.width, 56);
  EXPECT_EQ(drawn({"--seed", "5"}).pixels, first.pixels);
  EXPECT_NE(drawn({"--seed", "6"}).pixels, first.pixels);
  EXPECT_EQ(drawn({"--seed", "5", "--greedy"}).pixels, drawn({"--seed", "6", "--greedy"}).pixels);
  const Image larger = drawn({"--size", "9x8", "--topk", "10"});
  EXPECT_EQ(larger.height, 2 * 9 * 4);
  EXPECT_EQ(larger.width, 2 * 8 * 4);
}

TEST_F(TamingProgram, AGivenHalfIsKept) {
  succeeds(trained("run", {"--steps", "1"}));
  const Dataset digits = draw_digits(1, 1, Split::test);
  const Bytes png = encode_png(digits.image(0), 1, 28, 28);
  spill(folder / "half.png", std::string(png.begin(), png.end()));
  const Image completed = drawn({"--complete", at("half.png"), "--seed", "5"});

  // The same by the library: the tokens of the upper three rows are the picture's.
  const auto loaded = [&](const std::string& file, std::span<const tessera_parameter> table, std::int64_t floats) {
    Model model;
    model.name = file;
    model.parameters = table;
    model.parameter_floats = floats;
    Arena parameters = Arena::of_floats(floats, 64);
    load_parameters(folder / file, model, parameters.floats(), std::cerr);
    return parameters;
  };
  const ForwardPass encoder = TESSERA_FORWARD_PASS(vqgan_digits_encode, VQGAN_DIGITS_ENCODE);
  const ForwardPass decoder = TESSERA_FORWARD_PASS(vqgan_digits_decode, VQGAN_DIGITS_DECODE);
  const PackedPass encode(encoder, loaded("vqgan.safetensors", encoder.parameters, encoder.parameter_floats));
  const PackedPass decode(decoder, loaded("vqgan.safetensors", decoder.parameters, decoder.parameter_floats));
  succeeds(sample({"export", "--out", at("run"), "-o", at("gpt.safetensors")}));
  const Arena gpt = loaded("gpt.safetensors", digits_gpt_parameters, DIGITS_GPT_PARAMETER_FLOATS);
  const Arena packed = Arena::of_floats(DIGITS_GPT_PACKED_FORWARD_FLOATS + 1, 64);
  ASSERT_EQ(digits_gpt_pack_forward(gpt.floats(), packed.floats()), 0);
  const TokenModel tokens{
      .name = "digits_gpt",
      .codes = DIGITS_GPT_CODES,
      .window = {7, 7},
      .cache_bytes = [](std::int64_t batch) -> std::int64_t { return DIGITS_GPT_CACHE_BYTES(batch); },
      .step_scratch_bytes = [](std::int64_t batch) -> std::int64_t { return DIGITS_GPT_STEP_SCRATCH_BYTES(batch); },
      .step = digits_gpt_step,
      .error = digits_gpt_error};
  const std::vector<float> all = encode(numbers_of_pixels(digits.image(0)), 28 * 28);
  const std::vector<std::int32_t> upper(all.begin(), all.begin() + 21);
  Drawing drawing{.grid = {7, 7}, .start = {0, 1, 2}, .given = {}, .uniforms = uniforms_of(5, 0)};
  for (int i = 0; i < 3; ++i) drawing.given.insert(drawing.given.end(), upper.begin(), upper.end());
  const std::vector<std::int32_t> chosen = draw_tokens(tokens, gpt.floats(), packed.floats(), drawing);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(std::equal(upper.begin(), upper.end(), chosen.begin() + i * 49)) << "image " << i;
  const Bytes sheet = picture_sheet(decode(std::vector<float>(chosen.begin(), chosen.end()), 49), {1, 28, 28}, 2, 0);
  EXPECT_EQ(decode_image(sheet, 1, "sheet").pixels, completed.pixels);
  EXPECT_NE(drawn({"--seed", "5"}).pixels, completed.pixels);
  const Bytes wide = encode_png(Bytes(20 * 28), 1, 28, 20);
  spill(folder / "narrow.png", std::string(wide.begin(), wide.end()));
  EXPECT_NE(fails(sample({"sample", "--out", at("run"), "--complete", at("narrow.png"), "-o", at("s.png")}))
                .find("is 20x28 pixels; what is completed is 28 across and from 4 to 28 down"),
            std::string::npos);
}

TEST_F(TamingProgram, TheParametersAreExportedWithPublishedKeys) {
  succeeds(trained("run", {"--steps", "1"}));
  succeeds(sample({"export", "--out", at("run"), "-o", at("gpt.safetensors")}));
  const Safetensors file = read_safetensors(folder / "gpt.safetensors");
  EXPECT_TRUE(file.has("transformer.blocks.2.attn.query.weight"));
  EXPECT_FALSE(file.has("optimizer.m.pos_emb"));
  succeeds(sample({"export", "--out", at("gpt.safetensors"), "-o", at("again.safetensors")}));
  EXPECT_EQ(slurp(folder / "again.safetensors"), slurp(folder / "gpt.safetensors"));

  // And back: what was imported draws the same pictures.
  const Image before = drawn({"--seed", "5"});
  succeeds(sample({"import", at("gpt.safetensors"), "--vqgan", at("vqgan.safetensors"), "--out", at("imported")}));
  succeeds(sample({"export", "--out", at("imported"), "-o", at("back.safetensors")}));
  EXPECT_EQ(slurp(folder / "back.safetensors"), slurp(folder / "gpt.safetensors"));
  EXPECT_EQ(drawn({"--seed", "5"}, "imported").pixels, before.pixels);
  EXPECT_NE(fails(sample({"train", "--resume", "--vqgan", at("vqgan.safetensors"), "--out", at("imported")}))
                .find(": its batch is '', not '64'"),
            std::string::npos);
}

TEST_F(TamingProgram, BenchTimesAStepAndATokenAndSummaryTellsShapes) {
  const std::string said = succeeds(sample({"bench", "--batch", "2", "--runs", "1"}));
  for (const char* line : {"kernels: ", "training step of 2  ", "a token of    1  ", "a token of   16  "})
    EXPECT_NE(said.find(line), std::string::npos) << said;
  EXPECT_NE(succeeds(sample({"summary"})).find("tok_emb.weight"), std::string::npos);
}

TEST_F(TamingProgram, WhatCannotBeDrawnIsOneSentence) {
  succeeds(trained("run", {"--steps", "1"}));
  write_vqgan(folder / "other.safetensors", 2);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"sample", "--out", at("run"), "-o", at("none.png")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string said = fails(sample(arguments));
    EXPECT_FALSE(std::filesystem::exists(folder / "none.png"));
    return said;
  };
  EXPECT_EQ(refused({"--class", "10"}), "taming_digits: --class 10: there are the classes 0 to 9\n");
  EXPECT_EQ(refused({"--size", "6x7"}),
            "taming_digits: a grid of 6x7 tokens is smaller than the window of taming_digits, 7x7\n");
  EXPECT_EQ(refused({"--size", "7"}), "taming_digits: --size '7': rows and columns of tokens are needed, as 10x12\n");
  EXPECT_EQ(refused({"--temperature", "0"}), "taming_digits: the temperature must be above 0, and finite\n");
  EXPECT_EQ(refused({"--topp", "1.5"}), "taming_digits: top_p must be above 0 and at most 1\n");
  EXPECT_EQ(refused({"--topk", "-1"}), "taming_digits: top_k must not be negative (0 keeps all codes)\n");
  EXPECT_EQ(refused({"--device", "cuda"}),
            "taming_digits: --device cuda: a step of one token has no kernels for GPUs, pictures are drawn on the CPU "
            "only\n");
  EXPECT_EQ(fails(trained("none", {"--device", "cuda"})),
            "taming_digits: this program was built without CUDA and computes on the CPU only (CUDA in "
            "tessera_add_model lets it use a GPU)\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
  EXPECT_NE(refused({"--vqgan", at("other.safetensors")}).find("was trained on another codebook ("), std::string::npos);
  EXPECT_NE(
      fails(sample({"train", "--resume", "--vqgan", at("other.safetensors"), "--out", at("run"), "--images", "40"}))
          .find("was trained on another codebook than that of"),
      std::string::npos);
}

TEST_F(TamingProgram, ParametersThatGiveNoNumbersAreNoAnswer) {
  succeeds(trained("run", {"--steps", "1"}));
  const auto enlarge = [&](const std::string& from, const std::string& to, const std::string& keys) {
    Safetensors file = read_safetensors(from);
    for (auto& [key, tensor] : file.tensors)
      if (key.starts_with(keys))
        tensor = Tensor::of(tensor.shape, std::vector<float>(static_cast<std::size_t>(elements(tensor.shape)), 3e38F));
    write_safetensors(to, file);
  };
  enlarge(at("run/checkpoint.safetensors"), at("large.safetensors"), "");
  EXPECT_EQ(fails(sample({"eval", "--out", at("large.safetensors"), "--images", "20"})).substr(0, 54),
            "taming_digits: the loss of a token is not a number: th");
  EXPECT_NE(fails(sample({"sample", "--out", at("large.safetensors"), "-o", at("s.png")})).find("no token comes of it"),
            std::string::npos);
  enlarge(at("vqgan.safetensors"), at("vqgan-large.safetensors"), "encoder.");
  EXPECT_NE(fails(sample({"eval", "--out", at("run"), "--vqgan", at("vqgan-large.safetensors"), "--images", "20"}))
                .find("the encoder finds no nearest code"),
            std::string::npos);
  EXPECT_NE(fails(sample({"train", "--vqgan", at("vqgan-large.safetensors"), "--out", at("new"), "--images", "20"}))
                .find("the encoder finds no nearest code"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "new/checkpoint.safetensors"));
}

TEST_F(TamingProgram, WhatItCannotDoIsOneSentenceAndNothingIsLost) {
  succeeds(trained("run", {"--steps", "1"}));
  succeeds(sample({"export", "--out", at("run"), "-o", at("gpt.safetensors")}));
  const Bytes png = encode_png(Bytes(28 * 28, 90), 1, 28, 28);
  spill(folder / "half.png", std::string(png.begin(), png.end()));
  const std::string checkpoint = at("run/checkpoint.safetensors"), vqgan = at("vqgan.safetensors");
  const auto all = [&] {
    return slurp(checkpoint) + slurp(vqgan) + slurp(at("gpt.safetensors")) + slurp(at("half.png"));
  };
  const std::string before = all();
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& said,
                           const Process::Limits& limits = {}, int code = 1) {
    const Result result = sample(arguments, limits);
    EXPECT_EQ(result.code, code) << said;
    EXPECT_EQ(result.err.substr(0, result.err.find('\n') + 1), "taming_digits: " + said + "\n");
    EXPECT_TRUE(all() == before) << said;
    EXPECT_EQ(partial_files(folder.path()), std::vector<std::string>()) << said;
  };
  const std::string lost = ": it is the checkpoint of a training run, which would be lost",
                    read = ": it is what is read";
  refused({"export", "--out", at("run"), "-o", checkpoint}, "cannot write " + checkpoint + lost);
  refused({"export", "--out", at("gpt.safetensors"), "-o", checkpoint}, "cannot write " + checkpoint + lost);
  refused({"import", at("gpt.safetensors"), "--vqgan", vqgan, "--out", at("run")}, "cannot write " + checkpoint + lost);
  refused({"sample", "--out", at("run"), "-o", checkpoint}, "cannot write " + checkpoint + lost);
  refused({"sample", "--out", at("run"), "-o", vqgan},
          "cannot write " + vqgan + ": it is a safetensors file, whose parameters would be lost");
  refused({"sample", "--out", at("run"), "--complete", at("half.png"), "-o", at("half.png")},
          "cannot write " + at("half.png") + read);
  refused({"eval", "--out", at("run"), "--images", "20"}, "cannot write to standard output",
          {.stdout_to = "/dev/full"});
  refused({"export", "--out", at("run"), "-o", at("more.safetensors")},
          "cannot write " + at("more.safetensors") + ": File too large", {.file_bytes = 1000, .stdout_to = {}});
  for (const char* rate : {"nan", "-1", "inf"})
    refused({"train", "--vqgan", vqgan, "--out", at("new"), "--learning-rate", rate},
            "--learning-rate: '" + std::string(rate) +
                "' is no number from 0 to 1,000,000 (taming_digits train --help tells more)",
            {}, 2);
  for (const char* seed : {"-1", "18446744073709551616"}) {
    const std::string no_seed =
        "--seed: '" + std::string(seed) + "' is not an integer from 0 to 2^64 - 1 (taming_digits ";
    refused({"train", "--vqgan", vqgan, "--out", at("new"), "--seed", seed}, no_seed + "train --help tells more)", {},
            2);
    refused({"sample", "--out", at("run"), "-o", at("s.png"), "--seed", seed}, no_seed + "sample --help tells more)",
            {}, 2);
  }
  const std::string unsaid = at("v\xff.safetensors");
  std::filesystem::copy_file(vqgan, unsaid);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"train", "--steps", "1"}, {"import", at("gpt.safetensors")}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--vqgan", unsaid, "--out", at("new")});
    refused(arguments,
            "--vqgan " + unsaid +
                " cannot be kept in a checkpoint, whose texts are UTF-8: give it such a name, or a link that "
                "has one");
    EXPECT_FALSE(std::filesystem::exists(at("new/checkpoint.safetensors")));
  }
  refused({"smaple"}, "there is no command 'smaple'; did you mean sample? (taming_digits --help tells more)", {}, 2);
}

}  // namespace
}  // namespace tessera::runtime
