#include "runtime/run_report.hpp"

#include <sys/resource.h>

#include "runtime/confusion.hpp"
#include "runtime/curve.hpp"
#include "runtime/file.hpp"
#include "runtime/html.hpp"
#include "runtime/numbers.hpp"
#include "runtime/predictions.hpp"
#include "runtime/report.hpp"
#include "runtime/run_start.hpp"

namespace tessera::runtime {

void write_report(const std::filesystem::path& folder, const Model& model, const FinishedRun& finished,
                  const std::string& result) {
  const TrainingState& state = finished.state;
  const Evaluation& test = finished.evaluation;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto counted = [](double share, std::int64_t right, std::int64_t all) {
    return text(percent(share), " (", grouped(right), " of ", grouped(all), ")");
  };
  Section run{
      "Run",
      {{"Data", text(grouped(finished.training_images.size()), " training and ", grouped(finished.test_images.size()),
                     " test images (", finished.training_images.source, ")")},
       {"Steps", text(state.step)},
       {"Among first 5", counted(test.accuracy_of_five(), test.among_five, finished.test_images.size())},
       {"Confidence", text(probability(test.mean_confidence()), " on average, where ", percent(test.accuracy()),
                           " of the answers are right")},
       {"Speed", text(grouped(static_cast<std::int64_t>(finished.images_per_second)), " images/s, ",
                      fixed(finished.seconds, 1), " s of training in this run")},
       {"Peak memory", bytes(std::int64_t{usage.ru_maxrss} * 1024)},
       {"Checkpoint", std::filesystem::absolute(checkpoint_in(folder)).lexically_normal().string()}},
      {},
      ""};
  if (!finished.ranks.empty()) run.rows.insert(run.rows.begin() + 1, {"Ranks", finished.ranks});
  const Section recipe{"Recipe", recipe_rows(model, state.recipe), {}, ""};
  Section machine{"Machine", machine_rows(), {}, ""};
  machine.rows.emplace_back("Kernels", finished.kernels);
  const Section shapes{"Shapes", {}, {}, model.summary};

  std::string plain = model.name + ": " + result + "\n";
  for (const Section& section : {run, recipe, machine, shapes}) {
    plain += '\n';
    for (const auto& [name, value] : section.rows) plain += padded(name, -18) + value + '\n';
    plain += section.text;
  }
  if (plain.back() != '\n') plain += '\n';
  write_file(folder / "report.txt", plain);
  write_file(folder / "report.html",
             html_report(model.name, result,
                         {run,
                          {"Curves", {}, curve_panels(state.curve, finished.batches_per_epoch), ""},
                          {"Confusion", {}, {confusion_svg(confusion(finished.test_images, test), "")}, ""},
                          {"Samples", {}, {}, "", prediction_tiles(finished.test_images, test)},
                          recipe,
                          machine,
                          shapes}));
}

}  // namespace tessera::runtime
