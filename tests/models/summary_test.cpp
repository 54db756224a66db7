// The committed shape tables are those of the declared models.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/models/summaries.hpp"
#include "tests/paths.hpp"

namespace tessera::test {

static void PrintTo(const ModelSummary& model, std::ostream* out) { *out << model.name; }

namespace {

namespace fs = std::filesystem;

const fs::path folder = paths::summaries;

std::string read(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class Summary : public testing::TestWithParam<ModelSummary> {};

// GoogleTest shows texts of several lines that differ as a diff.
TEST_P(Summary, IsTheCommittedOne) {
  EXPECT_EQ(read(folder / (GetParam().name + ".txt")), GetParam().text())
      << "run scripts/regenerate and review the difference";
}

INSTANTIATE_TEST_SUITE_P(Models, Summary, testing::ValuesIn(model_summaries()),
                         [](const auto& info) { return info.param.name; });

TEST(Summaries, AreCommittedForTheModelsThatThereAreAndNoOthers) {
  std::set<std::string> committed, declared;
  for (const fs::directory_entry& file : fs::directory_iterator(folder))
    if (file.path().extension() == ".txt") committed.insert(file.path().stem());
  for (const ModelSummary& model : model_summaries()) declared.insert(model.name);
  EXPECT_EQ(committed, declared);
}

}  // namespace
}  // namespace tessera::test
