#include "codegen/names.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/all_of.hpp>

#include "codegen/error.hpp"
#include "dsl/text.hpp"

namespace tessera::codegen {

namespace {

void check_identifier(const char* what, std::string_view name) {
  if (!is_identifier(name))
    throw Error(
        fmt::format("the name of {}, \"{}\", is not letters, digits and underscores, a letter first, of at most 63",
                    what, shown(name)));
}

void check_key(const char* what, std::string_view key) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.-:/{}").find(c) != std::string_view::npos;
  };
  if (!ranges::all_of(key, fits))
    throw Error(fmt::format("the key of {}, \"{}\", holds something else than letters, digits and _ . - : / {{ }}",
                            what, shown(key)));
}

void check_axes(const Polynomial& dim) {
  for (int i = 0; i < dim.terms; ++i)
    for (int k = 0; k < dim.term[i].factors; ++k) check_identifier("an axis", dim.term[i].factor[k].name);
}

}  // namespace

std::string shown(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte >= ' ' && byte != 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return line;
}

void check_names(const graph::Graph& graph) {
  check_identifier("the model", graph.name);
  for (const graph::Region& r : graph.regions) check_key("a module", r.path);
  for (const graph::Node& n : graph.nodes) {
    check_key("a module", n.path);
    if (n.op == graph::Op::input)
      check_identifier("an input", n.name);
    else
      check_key("a parameter", n.name);
    for (const Dim& d : n.shape) {
      check_axes(d.shown);
      check_axes(d.normal);
    }
  }
  for (const graph::Output& o : graph.outputs)
    if (o.kind != graph::Output::Kind::gradient) check_identifier("an output", o.name);
}

}  // namespace tessera::codegen
