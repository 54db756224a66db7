// declare_shapes SHAPES: of what timm_shapes.py writes, a row "NAME PARAMETERS DECLARATION" for each model, the
// declaration as `tessera declare` writes it, in one line, or "refused: " and its sentence.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>

#include "declare/declare.hpp"
#include "declare/input.hpp"
#include "declare/kind.hpp"
#include "runtime/error.hpp"
#include "tests/declare/camel.hpp"

namespace {

using namespace tessera;

/// What stands between the namespace's braces, in one line.
std::string in_one_line(const std::string& header) {
  const std::string opens = "namespace tessera::models {\n";
  const std::size_t begin = header.find(opens) + opens.size();
  std::istringstream words(header.substr(begin, header.rfind("}  // namespace") - begin));
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() || line.ends_with("<{") ? "" : " ") + word;
  return line;
}

struct Model {
  declare::Checkpoint checkpoint;
  declare::Config config;
  std::string parameters;

  void write() {
    // As models/ has it: a declaration without lines of its own for them.
    const declare::Input usual = declare::input_of(declare::kind_of(checkpoint));
    config.mean = usual.mean;
    config.deviation = usual.deviation;
    config.crop = usual.crop;
    std::cout << config.architecture << ' ' << parameters << ' ';
    try {
      const declare::Declaration written = declare::declare(checkpoint, config, test::camel(config.architecture));
      std::cout << in_one_line(written.header) << '\n';
    } catch (const runtime::Error& error) {
      const std::string sentence = error.what();
      std::cout << "refused: " << sentence.substr(sentence.find(": ") + 2) << '\n';
    }
  }
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) runtime::fail("usage: declare_shapes SHAPES");
  std::ifstream file(argv[1]);
  if (!file) runtime::fail("cannot open ", argv[1]);
  Model model;
  bool any = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key != "=") {
      runtime::Shape& shape = model.checkpoint.shapes[key];
      for (std::int64_t dim; words >> dim;) shape.push_back(dim);
      continue;
    }
    if (any) model.write();
    any = true;
    model = {};
    std::int64_t classes = 0, height = 0, width = 0;
    std::string pool;
    words >> model.config.architecture >> model.parameters >> classes >> pool >> height >> width;
    if (!words) runtime::fail(argv[1], ": no model in the line ", runtime::printable(line));
    model.checkpoint.where = model.config.architecture;
    model.config.classes = classes;
    model.config.pool = pool == "-" ? "" : pool;
    model.config.image = {height, width};
  }
  if (any) model.write();
  return std::cout.flush() ? 0 : 1;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "error: %s\n", problem.what());
  return 1;
}
