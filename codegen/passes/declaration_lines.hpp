// From which line of the declaration each node comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The graph with its `lines`, read from the sources of its `modules`, which it no longer has then. C++20 keeps no text
/// of a call, so that it is looked for by its name: within the struct that recorded a node the op's ("softmax<"), and
/// where that is one of the DSL's own, as Linear, the member's ("qkv(", else "qkv") within the struct around it. Where
/// several lines might be meant, or none is found, a line names the struct and has no text; a recipe's loss has none.
graph::Graph with_declaration_lines(graph::Graph graph);

/// The bytes of a source of modules. Where its path is relative, it is so to the folder in which a compiler ran, below
/// which the generator lies. Empty where it cannot be read.
std::string text_of_source(const std::string& file);

/// Where a struct's functions name something.
enum class Mention : std::uint8_t { call, any };
/// Where a source names one of `names` within functions of the struct that a module is, by the line of its
/// TESSERA_MEMBERS, but not within structs of that one: positions, in their order. Empty where there is no such struct.
std::vector<std::size_t> mentions_of(std::string_view source, const graph::Module& module,
                                     const std::vector<std::string_view>& names, Mention mention);

/// The line around a position, what comes before it in a body on one line aside: without spaces and backslashes at its
/// ends, and with spaces for what is no text.
std::string line_around(std::string_view source, std::size_t at);

}  // namespace tessera::codegen
