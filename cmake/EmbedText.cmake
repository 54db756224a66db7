# embed_text(OUTPUT BASE folder FILES file...)
#
# Makes OUTPUT, a C++ source that defines tessera::codegen::embedded(name) (codegen/embedded.hpp): the text of each file by
# its path below BASE. Bytes are written as character escapes, so that a file may hold anything and be of any length.
#
# Run as a script (cmake -P, with OUTPUT, BASE and FILES) it writes the source.

if(CMAKE_SCRIPT_MODE_FILE)
  set(arrays "")
  set(lookups "")
  set(number 0)
  foreach(file IN LISTS FILES)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    file(RELATIVE_PATH name ${BASE} ${file})
    string(APPEND arrays "constexpr char text_${number}[] = {${bytes}'\\0'};\n")
    string(APPEND lookups "  if (name == \"${name}\") return {text_${number}, sizeof text_${number} - 1};\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "#include \"codegen/embedded.hpp\"

#include <stdexcept>
#include <string>

namespace {
${arrays}}  // namespace

std::string_view tessera::codegen::embedded(std::string_view name) {
${lookups}  throw std::out_of_range(\"no text is embedded as \" + std::string(name));
}
")
  return()
endif()

set(TESSERA_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(embed_text output)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "BASE" "FILES")
  cmake_path(ABSOLUTE_PATH arg_BASE)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DBASE=${arg_BASE} "-DFILES=${arg_FILES}" -P ${TESSERA_EMBED_SCRIPT}
    DEPENDS ${arg_FILES} ${TESSERA_EMBED_SCRIPT}
    COMMENT "Embedding texts into ${output}"
    VERBATIM)
endfunction()
