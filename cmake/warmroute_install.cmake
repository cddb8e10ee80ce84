# cmake --install, and what find_package(warmroute) and pkg-config find afterwards.
# Components of the installation (cmake --install build --component NAME):
#   core       the C++ headers
#   lib        warmroute::warmroute; with core
#   zmq        warmroute::zmq, the subscriber of KV events; with lib
#   c          the C header and the name that linkers look for; with c_runtime
#   c_static   the C header and libwarmroute_c.a
#   lib_runtime, c_runtime   shared libraries: all that a finished program needs
# One export set each, so that nobody has to find what another part depends on.
# Dependencies that were downloaded are not installed with us; then there is nothing to export to.
if(WARMROUTE_FETCH_DEPS)
  set(install_default OFF)
else()
  set(install_default ${PROJECT_IS_TOP_LEVEL})
endif()
option(WARMROUTE_INSTALL "Add install rules, the CMake package, pkg-config files and Debian packages" ${install_default})
if(NOT WARMROUTE_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
include(warmroute_pkgconfig)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/warmroute)

# The package's entry is the same for all of them, and comes with each. Static libraries leave what they need to their users.
set(WARMROUTE_STATIC_COMPONENTS c_static)
if(TARGET warmroute)
  get_target_property(type warmroute TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND WARMROUTE_STATIC_COMPONENTS lib)
  endif()
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/warmrouteConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warmrouteConfig.cmake INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may break the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warmrouteConfigVersion.cmake COMPATIBILITY SameMinorVersion)

# warmroute_install_part(<component> <target> [header files]): library, export set, package entry, licence
function(warmroute_install_part component target)
  install(TARGETS ${target} EXPORT warmroute_${component}_targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component}_runtime
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}_runtime NAMELINK_COMPONENT ${component})
  install(EXPORT warmroute_${component}_targets NAMESPACE warmroute:: DESTINATION ${package_folder} COMPONENT ${component})
  install(FILES ${PROJECT_BINARY_DIR}/warmrouteConfig.cmake ${PROJECT_BINARY_DIR}/warmrouteConfigVersion.cmake
          DESTINATION ${package_folder} COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
  if(ARGN)
    install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${component})
  endif()
endfunction()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/warmroute DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT core)
warmroute_install_part(core warmroute_core)
# xxHash is inline: its header is needed, its library is not.
warmroute_install_pkgconfig(core warmroute-core REQUIRES_PRIVATE libxxhash LIBS_PRIVATE ${CMAKE_THREAD_LIBS_INIT}
  DESCRIPTION "In-process routing for LLM serving: the C++ headers")
if(TARGET warmroute)
  warmroute_install_part(lib warmroute)
  if("lib" IN_LIST WARMROUTE_STATIC_COMPONENTS)  # there is no other, so what it needs is always said
    set(needed LIBS ${WARMROUTE_PC_NEEDED_LIBS} REQUIRES ${WARMROUTE_PC_NEEDED_PACKAGES})
  endif()
  warmroute_install_pkgconfig(lib warmroute CFLAGS -DWARMROUTE_ROUTER_IN_LIBRARY LIBS -lwarmroute ${needed} REQUIRES warmroute-core
    DESCRIPTION "In-process routing for LLM serving: the C++ library")
endif()
if(TARGET warmroute_zmq)
  warmroute_install_part(zmq warmroute_zmq)
  warmroute_install_pkgconfig(zmq warmroute-zmq LIBS -lwarmroute_zmq REQUIRES "warmroute;libzmq"
    DESCRIPTION "In-process routing for LLM serving: KV events over ZeroMQ")
endif()
if(TARGET warmroute_c)
  get_target_property(WARMROUTE_ABI_VERSION warmroute_c SOVERSION)  # packages are named after it
  set(headers ${PROJECT_SOURCE_DIR}/capi/include/warmroute.h ${PROJECT_SOURCE_DIR}/capi/include/warmroute_usage.h
      ${PROJECT_SOURCE_DIR}/capi/include/warmroute_control.h ${PROJECT_SOURCE_DIR}/capi/include/warmroute_trace.h)
  warmroute_install_part(c warmroute_c ${headers})
  warmroute_install_part(c_static warmroute_c_static ${headers})
  # `pkg-config --static` adds what the static library needs; a prefix that holds both is asked for the static one by its own name.
  set(zmq "")
  if(WARMROUTE_WITH_ZMQ)
    set(zmq -lzmq)
  endif()
  # Not "Requires: libzmq": what Debian's file says of a static libzmq does not link, and ours may be linked with its shared one.
  set(needed ${WARMROUTE_PC_NEEDED_LIBS} ${zmq} ${WARMROUTE_PC_CXX_RUNTIME} ${CMAKE_THREAD_LIBS_INIT})
  set(archive ${CMAKE_STATIC_LIBRARY_PREFIX}warmroute_c${CMAKE_STATIC_LIBRARY_SUFFIX})
  warmroute_install_pkgconfig("c;c_static" warmroute-c DESCRIPTION "In-process routing for LLM serving: the C interface"
    LIBS -lwarmroute_c LIBS_PRIVATE ${needed} REQUIRES_PRIVATE ${WARMROUTE_PC_NEEDED_PACKAGES})
  warmroute_install_pkgconfig(c_static warmroute-c-static
    DESCRIPTION "In-process routing for LLM serving: the C interface, linked statically"
    LIBS "\${libdir}/${archive}" ${needed} REQUIRES ${WARMROUTE_PC_NEEDED_PACKAGES})
endif()
if(PROJECT_IS_TOP_LEVEL)
  include(warmroute_packages)
endif()
