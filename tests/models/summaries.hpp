// The summary of every model of models/ at its reference size: the texts of tests/models/summary.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tessera::test {

struct ModelSummary {
  std::string name;  ///< "vit_mnist": the file is vit_mnist.txt
  std::function<std::string()> text;
};

/// In the order of models/README.md.
const std::vector<ModelSummary>& model_summaries();

}  // namespace tessera::test
