// write_timm DIR PARTS ISA... [-- NAME...]: generates timm_models(), or those of the names, in float for these
// instruction sets into DIR, with a few sources that hold them all, kernels of an instruction set in so many parts.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "tests/kernels/generated_writer.hpp"
#include "tests/models/timm_models.hpp"

int main(int argc, char** argv) try {
  using namespace tessera;
  using namespace tessera::test;
  if (argc < 4) throw std::runtime_error("DIR PARTS ISA... [-- NAME...]");
  const std::vector<std::string> arguments(argv + 3, argv + argc);
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> names;
  if (end != arguments.end()) names.assign(std::next(end), arguments.end());
  std::filesystem::create_directories(argv[1]);
  GeneratedWriter writer(argv[1], "float", {arguments.begin(), end}, codegen::Precision::fp32, std::stoul(argv[2]));
  std::size_t written = 0;
  for (const TimmModel& model : timm_models()) {
    if (!names.empty() && std::find(names.begin(), names.end(), model.name) == names.end()) continue;
    writer.add({model.name, [&](Sketch& sketch) { sketch.graph = model.record(); }});
    ++written;
  }
  if (!names.empty() && written != names.size()) throw std::runtime_error("not every name is one of a declaration");
  writer.finish();
  return 0;
} catch (const std::exception& error) {
  std::cerr << argv[0] << ": " << error.what() << std::endl;
  return 1;
}
