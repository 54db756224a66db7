cmake_minimum_required(VERSION 3.25)

# Compiles one snippet, and fails with a line that says what was expected and what was seen.
#
#   cmake -DCOMPILER=g++ -DSTANDARD=c++20 -DROOT=. -DHEADER=declared.hpp -DSNIPPET=a.cpp [-DTWIN=ON] -P check.cmake
#
# HEADER, which includes the DSL, may lie compiled beside itself.
#
# Without TWIN the compilation has to fail with exactly one error, whose line holds the sentence that stands after
# "// expect: " in the snippet, on as many comment lines as it needs. With TWIN it is compiled with -DTWIN, where it differs in the fix only, and has to succeed.
file(READ ${SNIPPET} text)
if(NOT text MATCHES "// expect: ([^\n]+(\n// [^\n]+)*)\n")
  message(FATAL_ERROR "there is no sentence after // expect: in ${SNIPPET}")
endif()
string(REPLACE "\n// " " " expected "${CMAKE_MATCH_1}")
if(NOT text MATCHES "#ifdef TWIN\n")
  message(FATAL_ERROR "there is no twin in ${SNIPPET}")
endif()

set(command ${COMPILER} -std=${STANDARD} -Wall -Wextra -Wpedantic -Werror -I${ROOT} -include ${HEADER} -fsyntax-only)
if(TWIN)
  list(APPEND command -DTWIN)
endif()
set(ENV{LC_ALL} C)
execute_process(COMMAND ${command} ${SNIPPET} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(TWIN)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "expected the twin to compile, and it gives:\n${output}")
  endif()
  return()
endif()
if(result EQUAL 0)
  message(FATAL_ERROR "expected the compilation to fail, and it succeeds")
endif()
string(REGEX MATCHALL "error: " errors "${output}")
list(LENGTH errors count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "expected exactly one error, and there are ${count}:\n${output}")
endif()
string(REGEX MATCH "error: [^\n]*" line "${output}")
string(FIND "${line}" "${expected}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "expected the sentence\n  ${expected}\nand the error is\n  ${line}")
endif()
