// `tessera declare` as a program: what it cannot do is one sentence, and nothing is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

class DeclareProgram : public testing::Test {
 protected:
  DeclareProgram() {
    const std::filesystem::path golden = std::filesystem::path(paths::golden) / "dialects" / "hf_vit";
    std::filesystem::copy_file(golden / "model.safetensors", checkpoint);
    std::filesystem::copy_file(golden / "config.json", config);
  }
  Result declare(const std::string& output, const std::vector<std::string>& more = {},
                 const Process::Limits& limits = {}) const {
    std::vector<std::string> arguments{"declare", checkpoint, "--config", config, "-o", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sample(arguments, limits);
  }
  std::string at(const std::string& name) const { return (folder / name).string(); }
  TemporaryFolder folder;
  const std::string checkpoint = at("model.safetensors"), config = at("config.json");
};

TEST_F(DeclareProgram, WritesAHeaderAndReplacesItWhereItIsAskedTo) {
  const Result first = declare(at("my_vit.hpp"));
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, at("my_vit.hpp") + ": tessera::models::MyVit\n");
  EXPECT_EQ(declare(at("my_vit.hpp")).err,
            "tessera: " + at("my_vit.hpp") + ": is there already; --overwrite replaces it\n");
  EXPECT_EQ(declare(at("my_vit.hpp"), {"--overwrite", "--name", "Other"}).code, 0);
  EXPECT_CONTAINS(slurp(at("my_vit.hpp")), "Other");
}

TEST_F(DeclareProgram, WhatItCannotDoIsOneSentenceAndNothingIsLost) {
  const std::string before = slurp(checkpoint) + slurp(config);
  const auto refused = [&](const Result& result, const std::string& said, int code = 1) {
    EXPECT_EQ(result.code, code) << said;
    std::string last = result.err;  // behind what is assumed
    while (last.starts_with("assumed: ") && last.find('\n') != std::string::npos) last.erase(0, last.find('\n') + 1);
    EXPECT_EQ(last, "tessera: " + said + "\n");
    EXPECT_TRUE(slurp(checkpoint) + slurp(config) == before) << said;
    EXPECT_EQ(partial_files(folder.path()), std::vector<std::string>()) << said;
  };
  const std::vector<std::string> anyhow{"--overwrite", "--name", "M"};
  refused(declare(checkpoint, anyhow),
          "cannot write " + checkpoint + ": it is a safetensors file, whose parameters would be lost");
  refused(declare(config, anyhow), "cannot write " + config + ": it is what is read");
  std::filesystem::copy_file(checkpoint, at("other.safetensors"));
  refused(declare(at("other.safetensors"), anyhow),
          "cannot write " + at("other.safetensors") + ": it is a safetensors file, whose parameters would be lost");
  refused(declare(at("vit_base.hpp")),
          "the name VitBase cannot be had, since models/vit.hpp has VitBase; --name gives another");
  EXPECT_FALSE(std::filesystem::exists(at("vit_base.hpp")));
  EXPECT_EQ(declare(at("vit_base.hpp"), {"--name", "VitBased"}).code, 0);
  refused(declare("/dev/null", anyhow), "cannot write /dev/null: it is no regular file");
  refused(declare(at("none/m.hpp")), "cannot write " + at("none/m.hpp") + ": No such file or directory");
  refused(declare(at("a\x1b[31m.hpp"), {"--name", "1\x1b"}), "--name: '1?' is no name of a type in C++");
  refused(declare(at("m.hpp"), {}, {.file_bytes = 450, .stdout_to = {}}),
          "cannot write " + at("m.hpp") + ": File too large");
  EXPECT_FALSE(std::filesystem::exists(at("m.hpp")));
  refused(declare(at("m.hpp"), {}, {.stdout_to = "/dev/full"}), "cannot write to standard output");
  refused(sample({"declare", checkpoint}), "--output is required (tessera declare --help tells more)", 2);
  refused(sample({"declaer", checkpoint}),
          "there is no command 'declaer'; did you mean declare? (tessera --help tells more)", 2);
  refused(sample({}), "say what to do, for example declare (tessera --help tells more)", 2);
  refused(sample({"declare", "/dev/zero", "-o", at("n.hpp")}), "cannot read /dev/zero: it is no regular file");
}

}  // namespace
}  // namespace tessera::runtime
