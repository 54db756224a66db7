#include "declare/architecture.hpp"

#include "codegen/embedded.hpp"
#include "runtime/error.hpp"
#include "runtime/text_reader.hpp"

namespace tessera::declare {

std::optional<std::map<std::string, std::string>> facts_of(std::string_view architecture) {
  runtime::TextReader rows{std::string(codegen::embedded("declare/facts.txt"))};
  for (std::string row; std::getline(rows, row);) {
    runtime::TextReader words(row);
    std::string word;
    words >> word;
    if (word != architecture) continue;
    std::map<std::string, std::string> found;
    while (words >> word) found[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    return found;
  }
  return std::nullopt;
}

std::string dino3_rope(double temperature) {
  return runtime::text("{.temperature=", temperature, ",.pairs=RopePairs::halves,.places=RopePlaces::centres}");
}

}  // namespace tessera::declare
