#include "codegen/emit/entry.hpp"

namespace tessera::codegen {

std::vector<tree::Parameter> entry_parameters(const std::string& program, const std::string& real) {
  const std::string in = "const " + real + "*", out = real + "*";
  if (program == "update")
    return {{out, "parameters"},
            {in, "gradients"},
            {out, "moment1"},
            {out, "moment2"},
            {in, "learning_rate_corrected"},
            {in, "second_correction"}};
  std::vector<tree::Parameter> p{{in, "parameters"}, {in, "images"}};
  if (program == "attention_maps") {
    p.push_back({"const std::int64_t", "batch"});
    p.push_back({out, "maps"});
    p.push_back({out, "scratch"});
    return p;
  }
  if (program != "forward") p.push_back({"const std::int32_t*", "labels"});
  p.push_back({"const std::int64_t", "batch"});
  p.push_back({out, "outputs"});
  if (program != "forward") p.push_back({out, "loss"});
  if (program == "loss_and_gradients") p.push_back({out, "gradients"});
  if (program == "input_gradient") p.push_back({out, "image_gradients"});
  p.push_back({out, "scratch"});
  return p;
}

}  // namespace tessera::codegen
