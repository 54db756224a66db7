# cmake --install: headers under include/tessera, libraries, and what find_package(Tessera) reads.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)
set_target_properties(tessera_dsl PROPERTIES EXPORT_NAME dsl)
set_target_properties(tessera_codegen PROPERTIES EXPORT_NAME codegen)
set_target_properties(tessera_inference PROPERTIES EXPORT_NAME inference)
set_target_properties(tessera_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(tessera_tokens PROPERTIES EXPORT_NAME tokens)
install(TARGETS tessera_dsl tessera_codegen tessera_inference tessera_runtime tessera_tokens EXPORT TesseraTargets)
if(TARGET tessera_serve)  # a set of its own: a project without SERVE needs no cpp-httplib
  set_target_properties(tessera_serve PROPERTIES EXPORT_NAME serve)
  install(TARGETS tessera_serve EXPORT TesseraServeTargets)
  install(EXPORT TesseraServeTargets NAMESPACE Tessera:: DESTINATION ${package_folder})
endif()
install(TARGETS tessera DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION ${package_folder})
install(DIRECTORY dsl codegen models runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera FILES_MATCHING PATTERN *.hpp PATTERN *.def)

get_target_property(inference_sources tessera_inference SOURCES)
install(FILES ${inference_sources} DESTINATION ${package_folder}/inference)  # for other processors
install(FILES runtime/ranks_mpi.cpp runtime/ranks_nccl.cpp DESTINATION ${package_folder})  # for the MPI of whoever has DISTRIBUTED

configure_package_config_file(cmake/TesseraConfig.cmake.in ${CMAKE_BINARY_DIR}/TesseraConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TesseraConfig.cmake ${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake
  cmake/TesseraAddModel.cmake cmake/wheel_of_model.py codegen/isas.def DESTINATION ${package_folder})

# Last, for the files that are installed by then: a bill of materials of what a build ships, SPDX 2.3 as JSON. Names and versions
# are those of the packages that were found; header-only libraries are compiled in, the others are linked. MPI and NCCL are not
# among them: what needs them is shipped as source, for those of whoever has DISTRIBUTED.
set(TESSERA_SBOM_PACKAGES
  "boost|${Boost_VERSION}|BSL-1.0" "cli11|${CLI11_VERSION}|BSD-3-Clause" "fmt|${fmt_VERSION}|MIT"
  "libjpeg|${JPEG_VERSION} (ABI)|IJG AND BSD-3-Clause" "libpng|${PNG_VERSION_STRING}|libpng-2.0"
  "nlohmann-json|${nlohmann_json_VERSION}|MIT" "range-v3|${range-v3_VERSION}|BSL-1.0" "zlib|${ZLIB_VERSION_STRING}|Zlib")
if(TARGET tessera_serve)
  list(APPEND TESSERA_SBOM_PACKAGES "cpp-httplib|${TESSERA_HTTPLIB_VERSION}|MIT")
endif()
if(OpenMP_CXX_FOUND)  # its library comes with the compiler
  list(GET OpenMP_CXX_LIB_NAMES 0 library)
  set(license "Apache-2.0 WITH LLVM-exception")
  if(library STREQUAL gomp)
    set(license "GPL-3.0-or-later WITH GCC-exception-3.1")
  endif()
  list(APPEND TESSERA_SBOM_PACKAGES "lib${library}|${CMAKE_CXX_COMPILER_VERSION}|${license}")
endif()
list(TRANSFORM TESSERA_SBOM_PACKAGES REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE TESSERA_SBOM_ITEMS)
list(JOIN TESSERA_SBOM_ITEMS " " TESSERA_SBOM_ITEMS)
configure_file(cmake/Sbom.cmake.in ${CMAKE_BINARY_DIR}/Sbom.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/Sbom.cmake)
