# tessera_add_model(<name> DECLARATION <header> MODEL <class> [ISA scalar avx2 ...] [CUDA 80 90a] [PRECISION bf16|int8|int4]
#   [TILES table] [TRAIN [SERVE] [DISTRIBUTED mpi [nccl]]] [CHECKPOINT weights [LABELS names]] [SHARED [EMBED]])
# tessera_add_model(<name> GENERATOR <target> MODEL <class> ...)
#
# From a declared model to a library. Targets:
#   <name>_generator  the declaration, compiled (this is where shapes are checked) together with the generator
#   <name>_sources    the emitted files
#   <name>_model      static library of the emitted C API; include "<name>.h"
#   <name>_cuda_model with CUDA, where the project has enabled that language: static library of the model on a GPU, for these
#                     architectures; include "<name>_cuda.h". Without the language the sources are written, not compiled.
#   <name>_shared     with SHARED: lib<name>.so, the model with its weights; include "<name>_model.h". It exports <name>_* alone,
#                     is <name>::<name> for others, and cmake --install installs it with its headers, <name>Config.cmake,
#                     <name>.pc and, in share/<name>/python, what pip makes a wheel of. With EMBED it also embeds: what the
#                     head reads or, of a model without classes, its features, which is then all that it does.
#   <name>            with TRAIN: the emitted program: train, eval, predict, attention, ...; where <name>_cuda_model is
#                     made, with --device cuda; with SERVE, which links cpp-httplib, also serve
#                     with DISTRIBUTED it can be started as several ranks (mpirun), which partition each step. It is linked with
#                     the MPI that find_package(MPI COMPONENTS C) finds, for which the project needs the language C. With nccl,
#                     where <name>_cuda_model is made, it is linked with NCCL too, and each rank can use a GPU.
#                     With CHECKPOINT, which makes the program as well: with these parameters, a safetensors file with the
#                     model's keys. Each build checks that they fit and writes them as <name>.safetensors beside the program,
#                     which takes them unless it is told --out or --checkpoint; cmake --install installs both, and they can
#                     be moved together. The classes are called as LABELS, a file as predict --labels takes it, says.
# A model without a recipe has no loss: its libraries are for inference, and its program trains nothing.
#
# GENERATOR is an executable of the project's own that holds many declarations, whose main calls
# codegen::generator_main(models, argc, argv) (codegen/driver.hpp): a project with many models compiles them faster so.
#
# DECLARATION is relative to the calling CMakeLists.txt (whose folder is an include folder of the declaration).
# MODEL is the fully qualified class. ISA are the instruction sets to emit, names of codegen/isas.def in any order; without it,
# those that the table has by default for the precision. Of those that run on a machine, which CPUID says, a program takes the last
# one in the table (neon: on 64-bit Arm, always); scalar is the portable one that is always needed. PRECISION is what the factors of matrix products are
# rounded to: fp32 (default), bf16, or int8 (of products with a parameter, where nothing is trained), of which int4 has the
# parameters in four bits; parameters, gradients
# and optimiser state are of single precision in all. TILES is a table of tiles of matrix products that bench/tune.py has
# measured for the machine that it is for, in the place of the generator's own (codegen/plan/tiles.txt). The emitted files lie in ${CMAKE_BINARY_DIR}/generated/<name>. Where TESSERA_EMITTED_FROM
# names another build tree of the project, they are taken from there and nothing is generated: so a further compiler compiles the
# same files.

# The target's CUDA sources are compiled as C++20, for these architectures.
function(_tessera_compile_for_gpus target architectures)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
  if(CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20)
  else()  # CMake 3.25 does not know that nvcc 13 has it
    set_target_properties(${target} PROPERTIES CUDA_STANDARD_REQUIRED OFF)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  endif()
endfunction()

# What a declaration is compiled with beside the project's own flags, so that a shape error is its sentence, the lines of the
# user's that led to it, and little else: Clang shows no source lines of the DSL's own headers, and from Clang 17 on compiles
# C++26, in which the sentence is the error itself and not a note below it.
function(_tessera_declaration_options result id version)
  set(options)
  if(id STREQUAL "Clang")
    set(options -fno-caret-diagnostics)
    if(version VERSION_GREATER_EQUAL 17)
      list(APPEND options -std=gnu++26)
    endif()
  endif()
  set(${result} ${options} PARENT_SCOPE)
endfunction()

# The table of the instruction sets: beside this file where it is installed.
set(isas ${CMAKE_CURRENT_LIST_DIR}/isas.def)
if(NOT EXISTS ${isas})
  cmake_path(SET isas NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../codegen/isas.def)
endif()
option(TESSERA_LINE_TABLES "Emitted code with line tables, by which bench --kernels finds where time goes" OFF)
set(TESSERA_EMITTED_OPTIONS "" CACHE STRING "Further options of emitted code, behind all others")
set_property(GLOBAL PROPERTY TESSERA_ISAS ${isas})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${isas})

# _tessera_isas(VARIABLE SAYS PRECISION isa...): the instruction sets asked for, once it is sure that the generator takes them;
# without any, those that are emitted by default for the precision. SAYS begins what is said of others.
function(_tessera_isas variable says precision)
  get_property(file GLOBAL PROPERTY TESSERA_ISAS)
  file(STRINGS ${file} rows REGEX "\\.name = ")
  set(all)
  set(defaults)
  foreach(row IN LISTS rows)
    if(NOT row MATCHES [[^{\.name = "([a-z0-9_]+)", \.precisions = {([a-z0-9, ]+)}, \.by_default = (true|false),$]])
      message(FATAL_ERROR "${file} has a row that is not written as the others are: ${row}")
    endif()
    set(isa ${CMAKE_MATCH_1})
    set(by_default ${CMAKE_MATCH_3})
    list(APPEND all ${isa})
    string(REPLACE ", " ";" precisions_of_${isa} ${CMAKE_MATCH_2})
    if(by_default AND precision IN_LIST precisions_of_${isa})
      list(APPEND defaults ${isa})
    endif()
  endforeach()
  if(NOT ARGN)
    set(${variable} ${defaults} PARENT_SCOPE)
    return()
  endif()
  list(JOIN all ", " known)
  set(seen)
  foreach(isa IN LISTS ARGN)
    if(NOT isa IN_LIST all)
      message(FATAL_ERROR "${says}: there is no instruction set ${isa}: choose from ${known}")
    elseif(isa IN_LIST seen)
      message(FATAL_ERROR "${says}: ISA names ${isa} twice")
    elseif(NOT precision IN_LIST precisions_of_${isa})
      list(JOIN precisions_of_${isa} " or " fitting)
      message(FATAL_ERROR "${says}: ISA ${isa} needs PRECISION ${fitting}")
    endif()
    list(APPEND seen ${isa})
  endforeach()
  if(NOT "scalar" IN_LIST ARGN)
    message(FATAL_ERROR "${says}: ISA must hold scalar, which every machine can run")
  endif()
  set(${variable} ${ARGN} PARENT_SCOPE)
endfunction()

set_property(GLOBAL PROPERTY TESSERA_WHEEL ${CMAKE_CURRENT_LIST_DIR}/wheel_of_model.py)

include(GNUInstallDirs)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

# What makes a mistake with memory harder to use: for optimised builds, since the sanitizers (build type None) have checks of
# their own. Emitted kernels are left alone: they read no files, and all of their memory is the caller's; zeros in the arrays
# that weight gradients copy to would cost these 2.7 % (AVX2, 192 columns, 197 tokens: 166.3 us, then 170.8).
function(_tessera_harden target)
  set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
  target_compile_options(${target} PRIVATE "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>,${optimised}>:\
-fstack-protector-strong;-ftrivial-auto-var-init=zero;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "^(STATIC|OBJECT)_LIBRARY$")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_options(${target} PRIVATE "$<$<PLATFORM_ID:Linux>:LINKER:-z,relro,-z,now>")
  endif()
endfunction()

# Cross-compiling: the build tree, in this one, of the same project for the machine that builds. Its generators write the files.
function(_tessera_host variable)
  set(host ${CMAKE_BINARY_DIR}/host)
  get_property(configured GLOBAL PROPERTY TESSERA_HOST)
  if(NOT configured)
    message(STATUS "Tessera: configuring ${host}, whose generators run on this machine")
    execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=CC --unset=CXX --unset=CMAKE_TOOLCHAIN_FILE
      ${CMAKE_COMMAND} -S ${CMAKE_SOURCE_DIR} -B ${host} -G ${CMAKE_GENERATOR} "-DCMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH}"
      "-DTessera_DIR=${Tessera_DIR}"
      COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
    set_property(GLOBAL PROPERTY TESSERA_HOST ${host})
  endif()
  set(${variable} ${host} PARENT_SCOPE)
endfunction()

# A static library of kernels and their C API.
function(_tessera_kernels target folder)
  # No -m flags: each file carries its own target pragmas, so that one library runs on every machine. Contraction is off
  # so that the sources alone, not the compiler's choice, decide where a multiply and an add become one operation.
  add_library(${target} STATIC ${ARGN})
  target_include_directories(${target} PUBLIC ${folder})
  target_compile_features(${target} PRIVATE cxx_std_20)
  # Build type None: the flags are the user's alone, as for sanitizers, where -O3 would only take long.
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:None>>:-O3> -ffp-contract=off)
  # Below -O2, as for sanitizers, Clang leaves long loops as they are and warns of it.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>)
  if(TESSERA_LINE_TABLES)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-g1>)
  endif()
  target_compile_options(${target} PRIVATE ${TESSERA_EMITTED_OPTIONS})
  # Position independent, for whatever shared library or module it is linked into; hidden, so that calls between its files are
  # as direct as in a program. What its first source, that of the C API, defines is visible.
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  list(FILTER ARGN INCLUDE REGEX "[.]cpp$")
  list(GET ARGN 0 api)
  set_source_files_properties(${api} PROPERTIES COMPILE_OPTIONS -fvisibility=default)
  if(TARGET OpenMP::OpenMP_CXX)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()

# lib<name>.so of these kernels, and all that others need to use it.
function(_tessera_shared name folder)
  set(target ${name}_shared)
  add_library(${target} SHARED ${folder}/${name}_model.cpp)
  add_library(${name}::${name} ALIAS ${target})
  # The soname has the version of the interface, NAME_MODEL_VERSION (codegen/emit/library.cpp).
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME ${name} SOVERSION 1)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${folder}> $<INSTALL_INTERFACE:include>)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${name}_model>" Tessera::inference)
  _tessera_harden(${target})
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${name}.map)
  file(CONFIGURE OUTPUT ${map} @ONLY CONTENT "{ global: ${name}_*; local: *; };\n")
  target_link_options(${target} PRIVATE LINKER:--version-script=${map})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})

  set(headers ${folder}/${name}.h ${folder}/${name}_model.h)
  install(TARGETS ${target} EXPORT ${name}Targets COMPONENT ${name}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name} NAMELINK_COMPONENT ${name})
  install(FILES ${headers} DESTINATION include COMPONENT ${name})
  install(EXPORT ${name}Targets FILE ${name}Config.cmake NAMESPACE ${name}:: COMPONENT ${name}
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${name})
  # Paths by way of the file's own place: the installed folder can be moved.
  file(RELATIVE_PATH prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" prefix ${prefix})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@prefix@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/include

Name: @name@
Description: the model @name@ with its weights, from a declaration by Tessera
Version: 1
Cflags: -I${includedir}
Libs: -L${libdir} -l@name@
]])
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc COMPONENT ${name} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

  set(python share/${name}/python)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.toml @ONLY CONTENT [[
[project]
name = "@name@"
version = "1"
description = "The model @name@ with its weights, from a declaration by Tessera"
dependencies = ["numpy"]

[build-system]
requires = []
build-backend = "wheel_of_model"
backend-path = ["."]
]])
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.toml RENAME pyproject.toml DESTINATION ${python} COMPONENT ${name})
  get_property(backend GLOBAL PROPERTY TESSERA_WHEEL)
  file(COPY ${backend} DESTINATION ${CMAKE_CURRENT_BINARY_DIR})  # what is installed needs the build tree alone
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/wheel_of_model.py DESTINATION ${python} COMPONENT ${name})
  install(FILES ${folder}/${name}.py RENAME __init__.py DESTINATION ${python}/${name} COMPONENT ${name})
  install(FILES $<TARGET_FILE:${target}> RENAME lib${name}.so DESTINATION ${python}/${name} COMPONENT ${name})
endfunction()

# What carries bytes between the program's ranks, compiled for the MPI and the NCCL that are found.
set(ranks ${CMAKE_CURRENT_LIST_DIR})
if(NOT EXISTS ${ranks}/ranks_mpi.cpp)
  cmake_path(SET ranks NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../runtime)
endif()
set_property(GLOBAL PROPERTY TESSERA_RANKS ${ranks})

function(_tessera_distribute name over_nccl)
  find_package(MPI COMPONENTS C QUIET)
  if(NOT MPI_C_FOUND)
    message(FATAL_ERROR "tessera_add_model(${name}): DISTRIBUTED mpi finds no MPI: install one (Debian: libopenmpi-dev, \
openmpi-bin), and let the project have the language C")
  endif()
  get_property(ranks GLOBAL PROPERTY TESSERA_RANKS)
  target_sources(${name} PRIVATE ${ranks}/ranks_mpi.cpp)
  target_link_libraries(${name} PRIVATE MPI::MPI_C)
  if(NOT over_nccl)
    return()
  endif()
  find_package(CUDAToolkit QUIET)
  find_path(TESSERA_NCCL_HEADERS nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME PATH_SUFFIXES include)
  find_library(TESSERA_NCCL nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} ENV NCCL_HOME
    PATH_SUFFIXES lib lib64)
  if(NOT TESSERA_NCCL_HEADERS OR NOT TESSERA_NCCL OR NOT CUDAToolkit_FOUND)
    message(FATAL_ERROR "tessera_add_model(${name}): DISTRIBUTED mpi nccl finds no NCCL 2.14 (libnccl-dev of NVIDIA's packages; \
NCCL_HOME in the environment tells another place)")
  endif()
  target_sources(${name} PRIVATE ${ranks}/ranks_nccl.cpp)
  target_compile_definitions(${name} PRIVATE TESSERA_NCCL)
  target_include_directories(${name} SYSTEM PRIVATE ${TESSERA_NCCL_HEADERS})
  target_link_libraries(${name} PRIVATE ${TESSERA_NCCL} CUDA::cudart_static)
endfunction()

# Makes the path that the variable holds absolute; a file has to be there.
function(_tessera_file says variable)
  set(file "${${variable}}")
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "${says}: there is no ${file}")
  elseif(IS_DIRECTORY ${file})
    message(FATAL_ERROR "${says}: ${file} is a folder")
  endif()
  set(${variable} ${file} PARENT_SCOPE)
endfunction()

function(tessera_add_model name)
  if(NOT name MATCHES "^[A-Za-z][A-Za-z0-9_]*$")
    message(FATAL_ERROR "tessera_add_model(${name}): the name is letters, digits and underscores, a letter first")
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "TRAIN;SERVE;SHARED;EMBED"
    "DECLARATION;GENERATOR;MODEL;PRECISION;TILES;CHECKPOINT;LABELS" "ISA;CUDA;DISTRIBUTED")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tessera_add_model(${name}) does not know ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_KEYWORDS_MISSING_VALUES)
    list(JOIN arg_KEYWORDS_MISSING_VALUES ", " keywords)
    message(FATAL_ERROR "tessera_add_model(${name}): no value follows ${keywords}")
  endif()
  if(NOT arg_MODEL OR (NOT arg_DECLARATION AND NOT arg_GENERATOR) OR (arg_DECLARATION AND arg_GENERATOR))
    message(FATAL_ERROR "tessera_add_model(${name}) needs MODEL <class> and either DECLARATION <header> or GENERATOR <target>")
  endif()
  if(arg_DECLARATION)
    set(header ${arg_DECLARATION})
    _tessera_file("tessera_add_model(${name})" header)
  endif()
  if(arg_EMBED AND NOT arg_SHARED)
    message(FATAL_ERROR "tessera_add_model(${name}): EMBED is for SHARED")
  endif()
  if(arg_CHECKPOINT)
    _tessera_file("tessera_add_model(${name})" arg_CHECKPOINT)
    set(arg_TRAIN ON)
  endif()
  if(arg_LABELS AND NOT arg_CHECKPOINT)
    message(FATAL_ERROR "tessera_add_model(${name}): LABELS is for CHECKPOINT")
  elseif(arg_LABELS)
    _tessera_file("tessera_add_model(${name})" arg_LABELS)
  endif()
  if(arg_SERVE AND NOT arg_TRAIN)
    message(FATAL_ERROR "tessera_add_model(${name}): SERVE is for TRAIN")
  endif()
  if(arg_SERVE AND NOT CMAKE_CROSSCOMPILING AND NOT TARGET Tessera::serve)
    message(FATAL_ERROR "tessera_add_model(${name}): SERVE needs cpp-httplib 0.11 and pkgconf, when Tessera is built and here \
(Debian: libcpp-httplib-dev, pkgconf)")
  endif()
  list(JOIN arg_DISTRIBUTED " " engines)
  if(arg_DISTRIBUTED AND NOT engines MATCHES "^mpi( nccl)?$")
    message(FATAL_ERROR "tessera_add_model(${name}): DISTRIBUTED is mpi, or mpi nccl, not ${engines}")
  elseif(arg_DISTRIBUTED AND NOT arg_TRAIN)
    message(FATAL_ERROR "tessera_add_model(${name}): DISTRIBUTED is for TRAIN")
  elseif("nccl" IN_LIST arg_DISTRIBUTED AND NOT arg_CUDA)
    message(FATAL_ERROR "tessera_add_model(${name}): DISTRIBUTED mpi nccl is for CUDA")
  endif()
  if(NOT arg_PRECISION)
    set(arg_PRECISION fp32)
  elseif(NOT arg_PRECISION MATCHES "^(fp32|bf16|int8|int4)$")
    message(FATAL_ERROR "tessera_add_model(${name}): PRECISION is fp32, bf16, int8 or int4, not ${arg_PRECISION}")
  endif()
  _tessera_isas(arg_ISA "tessera_add_model(${name})" ${arg_PRECISION} ${arg_ISA})

  set(generator ${name}_generator)
  set(which)
  set(build_tree ${CMAKE_BINARY_DIR})
  set(host)
  if(TESSERA_EMITTED_FROM)
    set(build_tree ${TESSERA_EMITTED_FROM})
  elseif(CMAKE_CROSSCOMPILING)
    _tessera_host(host)
    set(build_tree ${host})
    if(arg_TRAIN)
      message(STATUS "tessera_add_model(${name}): its program is not built for another processor, its libraries are")
      set(arg_TRAIN OFF)
    endif()
  elseif(arg_GENERATOR)
    set(generator ${arg_GENERATOR})
    set(which ${arg_MODEL} ${name})
  else()
    # Named as the header and its folder are: an editor (clangd) takes the options for a header from the source most like it, and
    # not from the emitted source of the same name.
    cmake_path(GET header STEM LAST_ONLY header_name)
    cmake_path(GET header PARENT_PATH header_folder)
    cmake_path(GET header_folder FILENAME header_folder)
    set(main ${CMAKE_CURRENT_BINARY_DIR}/declared/${name}/${header_folder}/${header_name}.cpp)
    # diagnostic.hpp, where shape errors are, comes first, or a compiler lists all headers through which it was reached.
    file(CONFIGURE OUTPUT ${main} @ONLY CONTENT [[
#include "dsl/diagnostic.hpp"

#include "@arg_DECLARATION@"

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  try {
    return tessera::codegen::generator_main(tessera::trace<@arg_MODEL@>("@name@"), argc, argv);
  } catch (const std::exception& error) {  // of the trace
    std::fprintf(stderr, "@name@: %s\n", error.what());
    return 1;
  }
}
]])
    add_executable(${name}_generator ${main})
    target_include_directories(${name}_generator PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name}_generator PRIVATE Tessera::dsl Tessera::codegen)
    # The declaration runs once: optimising it would take longer than that.
    target_compile_options(${name}_generator PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O0>)
    # Of the source, not of the target: its options come behind the language standard that CMake writes.
    _tessera_declaration_options(options "${CMAKE_CXX_COMPILER_ID}" "${CMAKE_CXX_COMPILER_VERSION}")
    set_source_files_properties(${main} PROPERTIES COMPILE_OPTIONS "${options}")
  endif()

  set(folder ${build_tree}/generated/${name})
  set(library_files ${folder}/${name}.h ${folder}/${name}_kernels.h ${folder}/${name}.cpp)
  foreach(isa IN LISTS arg_ISA)
    list(APPEND library_files ${folder}/${name}_${isa}.cpp)
  endforeach()
  set(shared_files)  # beside the kernels
  set(shared_options)
  if(arg_SHARED)
    set(shared_files ${folder}/${name}_model.h ${folder}/${name}_model.cpp ${folder}/${name}.py)
    set(shared_options --library)
  endif()
  if(arg_EMBED)
    list(APPEND shared_options --embedding)
  endif()
  set(cuda_files)
  set(cuda_option)
  if(arg_CUDA)
    set(cuda_option --cuda)
    set(cuda_files ${folder}/${name}_cuda.cu ${folder}/${name}_cuda.h)
  endif()
  set(tiles_option)
  if(arg_TILES)
    cmake_path(ABSOLUTE_PATH arg_TILES BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set(tiles_option --tiles ${arg_TILES})
  endif()
  set(program_files)
  set(page_option)
  set(cuda_program_files)
  if(arg_TRAIN)
    set(page ${build_tree}/pages/${name}_page.cpp)  # what summary --html shows; beside what users ship, not among it
    set(program_files ${folder}/${name}_program.cpp ${page})
    set(page_option --page ${page})
    if(arg_CUDA)
      list(APPEND program_files ${folder}/${name}_cuda_predict.cpp)
      set(cuda_program_files ${folder}/${name}_cuda_program.cu)
    endif()
  endif()
  if(TESSERA_EMITTED_FROM)
    set_source_files_properties(${library_files} ${shared_files} ${cuda_files} ${program_files}
      ${cuda_program_files} PROPERTIES GENERATED ON)
  elseif(host)
    add_custom_target(${name}_sources ALL
      COMMAND ${CMAKE_COMMAND} --build ${host} --target ${name}_sources
      BYPRODUCTS ${library_files} ${shared_files} ${cuda_files}
      COMMENT "Generating ${name} on this machine" VERBATIM)
  else()
    list(JOIN arg_ISA "," isas)
    add_custom_command(
      OUTPUT ${library_files} ${shared_files} ${cuda_files} ${program_files} ${cuda_program_files}
      COMMAND ${generator} ${which} --out ${folder} --isa ${isas} --precision ${arg_PRECISION}
        $<$<BOOL:${arg_TRAIN}>:--train> $<$<BOOL:${arg_SERVE}>:--serve> $<$<BOOL:${engines}>:--distributed>
        ${shared_options} ${page_option} ${cuda_option} ${tiles_option}
      DEPENDS ${generator} ${arg_TILES}
      COMMENT "Generating ${name}"
      COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(${name}_sources DEPENDS ${library_files} ${shared_files} ${cuda_files} ${program_files} ${cuda_program_files})
    set_property(GLOBAL APPEND PROPERTY TESSERA_EMITTED_SOURCES ${name}_sources)  # by all models so far
    set_property(GLOBAL APPEND PROPERTY TESSERA_EMITTED_FILES ${library_files} ${shared_files}
      ${program_files})
    set_property(GLOBAL APPEND PROPERTY TESSERA_DECLARED_MODELS "${arg_MODEL}")
  endif()

  _tessera_kernels(${name}_model ${folder} ${library_files})
  if(host)
    add_dependencies(${name}_model ${name}_sources)
  endif()
  set_target_properties(${name}_model PROPERTIES TESSERA_GENERATE "${generator};${which}")  # what begins its command line
  if(arg_SHARED)
    _tessera_shared(${name} ${folder})
  endif()

  if(arg_CUDA AND CMAKE_CUDA_COMPILER)
    add_library(${name}_cuda_model STATIC ${cuda_files})
    _tessera_compile_for_gpus(${name}_cuda_model "${arg_CUDA}")
    set_target_properties(${name}_cuda_model PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(${name}_cuda_model PUBLIC ${folder})
    target_link_libraries(${name}_cuda_model PRIVATE ${name}_model)  # its header, and the words for its errors
  elseif(arg_CUDA)
    message(STATUS "tessera_add_model(${name}): the language CUDA is not enabled, its sources are not compiled")
    target_sources(${name}_model PRIVATE ${folder}/${name}_cuda.h)
  endif()

  if(arg_TRAIN)
    add_executable(${name} ${program_files})
    _tessera_harden(${name})
    # The forward pass in the words of ONNX is one string, and a large model's is longer than Clang's -Wpedantic wants.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-overlength-strings>)
    target_link_libraries(${name} PRIVATE ${name}_model Tessera::runtime $<$<BOOL:${arg_SERVE}>:Tessera::serve>)
    if(arg_DISTRIBUTED)
      set(over_nccl OFF)
      if("nccl" IN_LIST arg_DISTRIBUTED AND TARGET ${name}_cuda_model)
        set(over_nccl ON)
      endif()
      _tessera_distribute(${name} ${over_nccl})
    endif()
    if(TARGET ${name}_cuda_model)
      target_sources(${name} PRIVATE ${cuda_program_files})
      _tessera_compile_for_gpus(${name} "${arg_CUDA}")
      target_compile_definitions(${name} PRIVATE TESSERA_CUDA)
      target_link_libraries(${name} PRIVATE ${name}_cuda_model)
    endif()
  endif()
  if(arg_CHECKPOINT AND arg_TRAIN)
    # The program itself reads the file, says in a sentence why it does not fit, and writes what it has read. Part of linking: after
    # a failure, and when the file has changed, the next build does it again.
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${name} export --checkpoint ${arg_CHECKPOINT} "$<$<BOOL:${arg_LABELS}>:--labels;${arg_LABELS}>"
        -o $<TARGET_FILE_DIR:${name}>/${name}.safetensors
      COMMAND_EXPAND_LISTS VERBATIM)
    set(read ${arg_CHECKPOINT} ${arg_LABELS})
    set_target_properties(${name} PROPERTIES LINK_DEPENDS "${read}"
      ADDITIONAL_CLEAN_FILES $<TARGET_FILE_DIR:${name}>/${name}.safetensors)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${name})
    install(FILES $<TARGET_FILE_DIR:${name}>/${name}.safetensors DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${name})
  endif()
endfunction()
