# Functions of the tests' CMakeLists.txt.

# Sources that programs of the tests write. Like those of tessera_add_model they are taken from another build tree, and nothing
# is written, where TESSERA_EMITTED_FROM names one.

# emitted_folder(VARIABLE): where the calling folder's lie.
function(emitted_folder variable)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated)
  if(TESSERA_EMITTED_FROM)
    file(RELATIVE_PATH within ${CMAKE_BINARY_DIR} ${folder})
    set(folder ${TESSERA_EMITTED_FROM}/${within})
  endif()
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()

# emitted_sources(TARGET [ALONE] OUTPUT file... COMMAND writer argument...)
# ALONE: no other build tree compiles them, and they are written only where something here asks for them.
function(emitted_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE" "" "OUTPUT;COMMAND")
  if(TESSERA_EMITTED_FROM)
    set_source_files_properties(${arg_OUTPUT} PROPERTIES GENERATED ON)
    return()
  endif()
  list(GET arg_COMMAND 0 writer)
  add_custom_command(OUTPUT ${arg_OUTPUT} COMMAND ${arg_COMMAND} DEPENDS ${writer} COMMENT "Generating ${target}" VERBATIM)
  add_custom_target(${target} DEPENDS ${arg_OUTPUT})
  if(arg_ALONE)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_EMITTED_SOURCES ${target})
  set_property(GLOBAL APPEND PROPERTY TESSERA_EMITTED_FILES ${arg_OUTPUT})
endfunction()

# test_paths(TARGET NAME path...): defines these of paths.hpp.
function(test_paths target)
  set(text "#include \"tests/paths.hpp\"\n\n")
  while(ARGN)
    list(POP_FRONT ARGN name path)
    string(APPEND text "const char* const tessera::paths::${name} = \"${path}\";\n")
  endwhile()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_paths.cpp)
  file(GENERATE OUTPUT ${file} CONTENT "${text}")
  set_source_files_properties(${file} PROPERTIES GENERATED ON)
  target_sources(${target} PRIVATE ${file})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# Of tests that take long: what passed before is left out where the program, or where they are given each INPUT, has the same
# bytes (tests/once_equal): once_for_equal_programs(TARGET [INPUT...]). Before
# gtest_discover_tests, with SKIP_REGULAR_EXPRESSION ${skipped}; for add_test, ${once_equal} stands before the program, with
# ${unchanged} alone: of a program of many tests one may be skipped and another fail, and what matches is never a failure.
set(once_equal ${PROJECT_SOURCE_DIR}/tests/once_equal ${PROJECT_SOURCE_DIR}/tests/passed.txt ${CMAKE_BINARY_DIR}/passed)
set(unchanged "^unchanged since it passed")
set(skipped "${unchanged}|  SKIPPED ")
function(once_for_equal_programs target)
  get_target_property(launcher ${target} CROSSCOMPILING_EMULATOR)
  if(NOT launcher)
    set(launcher)
  endif()
  set(inputs ${ARGN})
  if(inputs)
    list(APPEND inputs --)
  endif()
  set_target_properties(${target} PROPERTIES CROSSCOMPILING_EMULATOR "${once_equal};${inputs};${launcher}")
endfunction()

# A test of the release build whose program is compiled when it starts, and neither compiled nor run where it has passed before
# with the same calling folder, which has its sources and options, and the same INPUTS, what is emitted and the libraries:
# once_for_equal_sources(TEST TARGET [ARGUMENTS argument...] INPUTS file...). As two such tests must not build at once, each
# holds the lock `build`.
function(once_for_equal_sources test target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ARGUMENTS;INPUTS")
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_test(NAME ${test} COMMAND ${PROJECT_SOURCE_DIR}/tests/once ${PROJECT_SOURCE_DIR}/tests/passed.txt ${CMAKE_BINARY_DIR}/passed
    ${test}@ "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE}"
    ${CMAKE_CURRENT_SOURCE_DIR} ${arg_INPUTS}
    -- ${PROJECT_SOURCE_DIR}/tests/built ${CMAKE_BINARY_DIR} ${target} $<TARGET_FILE:${target}> ${arg_ARGUMENTS})
  set_tests_properties(${test} PROPERTIES RESOURCE_LOCK build ENVIRONMENT OMP_WAIT_POLICY=passive TIMEOUT 1200 COST 100
    SKIP_REGULAR_EXPRESSION ${unchanged})
endfunction()
