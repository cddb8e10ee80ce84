# cmake --install, and what find_package(warmroute) finds afterwards: warmroute::core always, warmroute::warmroute if built.
# Two export sets, so that a consumer of the headers alone needs none of the library's dependencies.
# Dependencies that were downloaded are not installed with us; then there is nothing to export to.
if(WARMROUTE_FETCH_DEPS)
  set(install_default OFF)
else()
  set(install_default ${PROJECT_IS_TOP_LEVEL})
endif()
option(WARMROUTE_INSTALL "Add install rules and the CMake package" ${install_default})
if(NOT WARMROUTE_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/warmroute)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/warmroute DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT warmroute)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT warmroute)
install(TARGETS warmroute_core EXPORT warmroute_core_targets COMPONENT warmroute)
install(EXPORT warmroute_core_targets NAMESPACE warmroute:: DESTINATION ${package_folder} COMPONENT warmroute)
if(TARGET warmroute)
  install(TARGETS warmroute EXPORT warmroute_library_targets COMPONENT warmroute
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT warmroute_library_targets NAMESPACE warmroute:: DESTINATION ${package_folder} COMPONENT warmroute)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/warmrouteConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warmrouteConfig.cmake INSTALL_DESTINATION ${package_folder})
# Before 1.0 a new minor version may break the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warmrouteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/warmrouteConfig.cmake ${PROJECT_BINARY_DIR}/warmrouteConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT warmroute)
