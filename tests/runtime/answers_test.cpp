// What is said about answers: names of classes, confusion, the five likeliest.
#include "runtime/confusion.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/report.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

class Labels : public testing::Test {
 protected:
  std::vector<std::string> of(const std::string& content, std::int64_t classes = 3) {
    spill(folder / file, content);
    return read_labels(folder / file, classes);
  }
  std::string error(const std::string& content, std::int64_t classes = 3) {
    const std::string all = sentence([&] { of(content, classes); });
    return all.starts_with((folder / file).string()) ? all.substr((folder / file).string().size()) : all;
  }
  std::string file = "names";
  TemporaryFolder folder;
};

TEST_F(Labels, AreLinesOrAJsonListOrAJsonObject) {
  const std::vector<std::string> names{"cat", "great white shark", "dog"};
  EXPECT_EQ(of("cat\ngreat white shark\ndog"), names);
  EXPECT_EQ(of("cat\r\ngreat white shark\r\ndog\r\n\r\n"), names);
  EXPECT_EQ(of(R"(["cat", "great white shark", "dog"])"), names);
  EXPECT_EQ(of(R"({"1": "great white shark", "0": "cat", "2": "dog"})"), names);
  EXPECT_EQ(of(R"({"0": ["n1", "cat"], "1": ["n2", "great white shark"], "2": ["n3", "dog"]})"), names);
}

TEST_F(Labels, AreThoseOfAConfiguration) {
  EXPECT_EQ(of(R"({"architecture": "vit", "label_names": ["n1", "n2", "n3"]})"),
            (std::vector<std::string>{"n1", "n2", "n3"}));
  EXPECT_EQ(of(R"({"label_names": ["n1", "n2", "n3"], "label_descriptions": {"n1": "tench, Tinca", "n3": "dog"}})"),
            (std::vector<std::string>{"tench, Tinca", "n2", "dog"}));
  EXPECT_EQ(of(R"({"model_type": "vit", "id2label": {"0": "a", "2": "c", "1": "b"}})"),
            (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(error(R"({"architecture": "vit", "num_classes": 3})"), " has no name for class 0");
  EXPECT_EQ(error(R"({"label_names": ["n1", "n2"]})"), " has 2 names, the model tells 3 classes apart");
}

TEST_F(Labels, AreRowsOfACsvFile) {
  const std::vector<std::string> names{"tench, Tinca", "the \"great\" shark", "dog"};
  file = "names.csv";
  EXPECT_EQ(of("2,dog\n0,\"tench, Tinca\"\n1,\"the \"\"great\"\" shark\"\n"), names);
  EXPECT_EQ(of("class,code,name\r\n0,n1,\"tench, Tinca\"\r\n1,n2,\"the \"\"great\"\" shark\"\r\n2,n3,dog"), names);
  EXPECT_EQ(of("0,a\x1b\n1,b\n2,c\n\n")[0], "a ");
  EXPECT_EQ(error("0,a\n1,b\n"), " has 2 names, the model tells 3 classes apart");
  EXPECT_EQ(error("0,a\n1,b\n1,c\n"), ": row 3 names class 1 again");
  for (const char* row : {"3,c", "-1,c", "2", "two,c", "2x,c", "99999999999999999999,c"})
    EXPECT_EQ(error(std::string("0,a\n1,b\n") + row),
              ": row 3 is no number of a class from 0 to 2, a comma and its name");
}

TEST_F(Labels, KeepTheirNumbersThoughSomeHaveNoName) {
  const std::vector<std::string> names{"", "cat", "", "dog"};
  EXPECT_EQ(lines_of_names(names), "\ncat\n\ndog");
  EXPECT_EQ(names_of_lines(lines_of_names(names)), names);
  EXPECT_EQ(lines_of_names({"cat", "", ""}), "cat");
  EXPECT_EQ(lines_of_names({"", ""}), "");
  EXPECT_EQ(names_of_lines(lines_of_names({"a\nb", "c\r"})), (std::vector<std::string>{"a b", "c "}));
}

TEST_F(Labels, ThatATerminalWouldObeyAreBlank) { EXPECT_EQ(of("a\x1b[2J\nb\nc")[0], "a [2J"); }

TEST_F(Labels, ThatDoNotFitAreRefusedInASentence) {
  EXPECT_EQ(error("a\nb\n"), " has 2 names, the model tells 3 classes apart");
  EXPECT_EQ(error(""), " has 0 names, the model tells 3 classes apart");
  EXPECT_EQ(error("[\"a\", \"b\""), " begins as JSON, but is none: names of classes cannot be read");
  EXPECT_EQ(error("[\"a\", 1, \"b\"]"), ": the name of class 1 is no text");
  EXPECT_EQ(error("{\"0\": \"a\", \"1\": \"b\", \"3\": \"c\"}"), " has no name for class 2");
  EXPECT_EQ(error("[[], \"a\", \"b\"]"), ": the name of class 0 is no text");
  EXPECT_EQ(error(std::string("a\nb\0\nc", 6)), " is no text: names of classes cannot be read");
  EXPECT_CONTAINS(sentence([&] { read_labels(folder / "none", 3); }), "cannot open ");
}

TEST(Answers, AmongTheLargestCountsWhatComesBefore) {
  const std::vector<float> row{3, 1, 3, 2};
  EXPECT_TRUE(among_largest(row, 0, 1));
  EXPECT_FALSE(among_largest(row, 2, 1));  // as large, but further behind
  EXPECT_TRUE(among_largest(row, 2, 2));
  EXPECT_TRUE(among_largest(row, 3, 3));
  EXPECT_FALSE(among_largest(row, 1, 3));
}

TEST(Answers, PredictionLineTellsNamesInOrder) {
  const std::vector<float> row{0.25f, 0.5f, 0.125f, 0.125f};
  EXPECT_CONTAINS(prediction_line("a.png", row, 3, {"cat", "dog", "cow", "pig"}),
                  "  dog 0.5000  cat 0.2500  cow 0.1250\n");
  EXPECT_CONTAINS(prediction_line("a.png", row, 2, {}), "  1 0.5000  0 0.2500\n");
  EXPECT_CONTAINS(prediction_line("a.png", row, 2, {"cat"}), "  1 0.5000  cat 0.2500\n");
}

TEST(Answers, ProbabilitiesAreNotRoundedToCertainty) {
  EXPECT_EQ(probability(0.983), "98.3%");
  EXPECT_EQ(probability(0.99999), ">99.9%");
  EXPECT_EQ(probability(0.00001), "<0.1%");
  EXPECT_EQ(probability(1), "100.0%");
  EXPECT_EQ(probability(0), "0.0%");
  EXPECT_CONTAINS(prediction_line("a.png", std::vector<float>{0.99999f, 0}, 2, {}), "  0 >0.9999  1 0.0000\n");
  EXPECT_EQ(answer_text(std::vector<float>{0.2f, 0.7f, 0.1f}, 2, {"cat", "dog", "cow"}), "dog 70.0%, cat 20.0%");
  Evaluation evaluation;
  evaluation.confidence = {1, 0.5f};
  EXPECT_EQ(evaluation.mean_confidence(), 0.75);
}

TEST(Answers, ConfusionCountsEachClassAndAnswer) {
  Dataset data;
  data.classes = 2;
  data.labels = {0, 0, 1, 1, 1};
  Evaluation evaluation;
  evaluation.predicted = {0, 1, 1, 1, 2};
  const Confusion counts = confusion(data, evaluation);
  EXPECT_EQ(counts.classes, 3);
  EXPECT_EQ(counts.counts, (std::vector<std::int64_t>{1, 1, 0, 0, 2, 1, 0, 0, 0}));
  const std::string svg = confusion_svg(counts, "toy");
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
  std::size_t cells = 0;
  for (std::size_t at = svg.find("rgb("); at != std::string::npos; at = svg.find("rgb(", at + 1)) ++cells;
  EXPECT_EQ(cells, 4u);
  EXPECT_CONTAINS(svg, ">2</text>");
  EXPECT_CONTAINS(svg, ">66.7%</text>");
  data.names = {"cat & dog", std::string(19, 'x') + "\u00e9\u00e9"};
  const std::string named = confusion_svg(confusion(data, evaluation), "toy");
  EXPECT_CONTAINS(named, ">cat &amp; dog</text>");
  EXPECT_CONTAINS(named, ">" + std::string(19, 'x') + "…</text>") << "cut before a letter of two bytes";
  EXPECT_CONTAINS(named, ">2</text>") << "an answer without a name";
}

}  // namespace
}  // namespace tessera::runtime
