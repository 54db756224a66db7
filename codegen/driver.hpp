// The generator as a program: from a traced graph to a folder of sources.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "codegen/cuda/tile.hpp"
#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// Takes the name and the text of a stage.
using Dump = std::function<void(const std::string& stage, const std::string& text)>;

struct GeneratorOptions {
  std::vector<std::string> isas;  ///< names of isas.def in any order, scalar among them; none: those by default
  std::string real = "float";     ///< "double": for tests, scalar only
  Precision precision = Precision::fp32;
  bool train = false;        ///< the program as well, with the training loop where there is a loss
  bool distributed = false;  ///< the program runs as several ranks, too
  bool serve = false;        ///< the program has the command serve, which links the runtime's HTTP server
  bool library = false;      ///< NAME_model.h, NAME_model.cpp and NAME.py as well
  bool embedding = false;    ///< the library embeds
  bool page = false;         ///< NAME_page.cpp as well
  bool cuda = false;         ///< the kernels for CUDA as well
  std::optional<std::string>
      tiles_of_cpu;   ///< a table for codegen/plan/tuned.hpp, in the place of codegen/plan/tiles.txt
  cuda::Tiles tiles;  ///< of their GEMMs, where others are wanted than those that the sizes suggest
  std::set<std::string, std::less<>> disabled_passes;            ///< of those that --list-passes lists
  std::map<std::string, std::string, std::less<>> pass_options;  ///< what passes are told, by name
  Dump dump_passes;  ///< called with a graph or a program's kernels behind each pass
  Dump dump;         ///< called with every stage, in order; empty: none is printed
  std::function<void(const std::string& sentence)> note;  ///< called with what is no error, and what one should know
};

/// File name -> text. Throws Error with one sentence when the graph cannot be generated.
std::map<std::string, std::string> generate(const graph::Graph& traced, const GeneratorOptions& options);

/// What the CUDA kernels should take on a GPU of this architecture, with so many images (0: the recipe's batch).
std::string predict(const graph::Graph& traced, const GeneratorOptions& options, const std::string& architecture,
                    std::int64_t batch);

/// What NAME_summary() of the emitted model returns: shapes, parameters, contract. Plans, but writes no kernel; a graph
/// without images is no model: it is not planned and has no contract.
std::string summarize(const graph::Graph& traced);

/// The options that --help lists. Returns the exit code; errors are one sentence on standard error.
int generator_main(const graph::Graph& declared, int argc, char** argv);

/// A declaration that a generator of many holds.
struct DeclaredModel {
  std::string_view type;                    ///< as MODEL of tessera_add_model says it
  graph::Graph (*trace)(std::string name);  ///< trace<type>
};

/// The same for any of many models, which are compiled together: the arguments begin with its type and the name that
/// the emitted files get.
int generator_main(std::span<const DeclaredModel> models, int argc, char** argv);

}  // namespace tessera::codegen
