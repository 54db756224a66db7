#include "codegen/plan/tuned.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/find.hpp>
#include <sstream>
#include <string>

#include "codegen/error.hpp"

namespace tessera::codegen {

void use_tiles(std::string_view table, std::vector<Target>& targets) {
  std::istringstream lines{std::string(table)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string isa, what, vectors, tile, more;
    std::int64_t size = 0, width = 0, height = 1;
    if (!(words >> isa)) continue;
    words >> what >> size >> vectors >> width;
    if (what == "rows") words >> tile >> height;
    if (!words || (words >> more) || (what != "columns" && what != "rows") || vectors != "vectors" ||
        (what == "rows" && tile != "tile") || size < 1 || width < 1 || height < 1 || width > 1024 || height > 1024)
      throw Error(
          fmt::format("line {} of the table of tiles is neither \"ISA columns N vectors V\" nor \"ISA rows M "
                      "vectors V tile R\": {}",
                      number, line));
    const auto at = ranges::find(targets, isa, &Target::name);
    if (at == targets.end()) continue;
    if (width * height > at->product_sums)
      throw Error(fmt::format("line {} of the table of tiles wants {} sums at once, and {} has registers for {}: {}",
                              number, width * height, isa, at->product_sums, line));
    if (what == "columns")
      at->tuned_vectors[size] = static_cast<int>(width);
    else
      at->tuned_rows[{size, static_cast<int>(width)}] = height;
  }
}

}  // namespace tessera::codegen
