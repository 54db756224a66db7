# cmake --install: headers under include/tessera, libraries, and what find_package(Tessera) reads.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)
set_target_properties(tessera_dsl PROPERTIES EXPORT_NAME dsl)
set_target_properties(tessera_codegen PROPERTIES EXPORT_NAME codegen)
set_target_properties(tessera_runtime PROPERTIES EXPORT_NAME runtime)
install(TARGETS tessera_dsl tessera_codegen tessera_runtime EXPORT TesseraTargets)
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION ${package_folder})
install(DIRECTORY dsl codegen runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera FILES_MATCHING PATTERN *.hpp PATTERN *.def)

configure_package_config_file(cmake/TesseraConfig.cmake.in ${CMAKE_BINARY_DIR}/TesseraConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TesseraConfig.cmake ${CMAKE_BINARY_DIR}/TesseraConfigVersion.cmake
  cmake/TesseraAddModel.cmake codegen/isas.def DESTINATION ${package_folder})
