# One step of the install tests, as somebody does it who has only what was installed: an almost empty environment, the installation moved
# away from where it was put, the consumers copied away from here.
#   SCRATCH BUILD SOURCE LIBDIR VERSION CC CXX LAUNCHER GENERATOR MAKE_PROGRAM READELF PKG_CONFIG   where things are
#   STEP    the function below; CONSUMER, OPTIONS: the folder that it builds, further options
cmake_minimum_required(VERSION 3.25)
set(prefix ${SCRATCH}/prefix)
set(strict -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

set(environment PATH=/usr/local/bin:/usr/bin:/bin LANG=C PKG_CONFIG_PATH=${prefix}/${LIBDIR}/pkgconfig)
foreach(name IN ITEMS HOME CCACHE_DIR TMPDIR)  # where a compiler may put its files
  if(DEFINED ENV{${name}})
    list(APPEND environment ${name}=$ENV{${name}})
  endif()
endforeach()

# run(<command...>): its output in `output`; a failure ends the test.
function(run)
  execute_process(COMMAND env -i ${environment} ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  list(JOIN ARGN " " command)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  message(STATUS "${command}\n${output}")
  set(output "${output}" PARENT_SCOPE)
endfunction()

# A macro: the caller reads CMAKE_MATCH_1.
macro(expect_text text expression)
  if(NOT "${text}" MATCHES "${expression}")
    message(FATAL_ERROR "expected '${expression}' in:\n${text}")
  endif()
endmacro()

# Copies the consumers, then configures, builds and runs one of them.
function(build_consumer folder from)
  set(work ${SCRATCH}/${STEP}-${folder}-${NAME})
  file(REMOVE_RECURSE ${work})
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/${folder} ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/main.cpp
       ${CMAKE_CURRENT_LIST_DIR}/main_library.cpp DESTINATION ${work}/source)
  run(${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -S ${work}/source/${folder} -B ${work}/build
      -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER_LAUNCHER=${LAUNCHER}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_PREFIX_PATH=${from} -DEXPECTED_VERSION=${VERSION}
      -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -DFETCHCONTENT_FULLY_DISCONNECTED=ON ${ARGN})
  run(${CMAKE_COMMAND} --build ${work}/build --target consumer --parallel 2)
  run(${work}/build/consumer)
  expect_text("${output}" "routed")
endfunction()

# compile_consumer(<main.c or main_library.cpp> <pkg-config package> [pkg-config options]): compiler and pkg-config alone
function(compile_consumer main package)
  run(${PKG_CONFIG} --cflags --libs ${package} ${ARGN})
  string(STRIP "${output}" flags)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(compiler ${CC} -std=c99)
  if(main MATCHES "cpp$")
    set(compiler ${CXX} -std=c++20)
  endif()
  set(work ${SCRATCH}/${STEP}-${package}-${NAME})
  file(REMOVE_RECURSE ${work})
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/${main} DESTINATION ${work})
  run(${compiler} ${strict} ${work}/${main} -o ${work}/consumer ${flags})
  set(consumer ${work}/consumer PARENT_SCOPE)
endfunction()

# No word about this source tree, nor about the folder where it was first put.
function(expect_no_traces folder)
  file(GLOB_RECURSE files ${folder}/*.cmake ${folder}/*.pc ${folder}/*.hpp ${folder}/*.h)
  foreach(file IN LISTS files)
    file(READ ${file} text)
    foreach(path IN ITEMS ${SOURCE} ${SCRATCH})
      string(FIND "${text}" "${path}" found)
      if(NOT found EQUAL -1)
        message(FATAL_ERROR "${file} names ${path}")
      endif()
    endforeach()
  endforeach()
endfunction()

# A shared library says its own name and carries no search path.
function(expect_shared_library file soname)
  run(${READELF} -dW ${file})
  expect_text("${output}" "SONAME[^\n]*\\[${soname}\\]")
  if(output MATCHES "R(UN)?PATH")
    message(FATAL_ERROR "${file} has a run path:\n${output}")
  endif()
endfunction()

# ---------------------------------------------------------------- steps

function(step_install)
  file(REMOVE_RECURSE ${SCRATCH})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/before)
  file(RENAME ${SCRATCH}/before ${prefix})
  expect_no_traces(${prefix})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/archive_before --component c_static)
  file(RENAME ${SCRATCH}/archive_before ${SCRATCH}/archive)
endfunction()

function(step_find_package)
  build_consumer(${CONSUMER} ${prefix} ${OPTIONS})
endfunction()

# Of one component nothing else is there.
function(step_core)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/core --component core)
  build_consumer(find_package_core ${SCRATCH}/core)
endfunction()

function(step_c_library)
  expect_shared_library(${prefix}/${LIBDIR}/libwarmroute_c.so libwarmroute_c.so.${ABI})
  build_consumer(find_package_c ${prefix} -DCOMPONENT=c)
endfunction()

function(step_inside)
  build_consumer(${CONSUMER} "" -DWARMROUTE_SOURCE=${SOURCE})
endfunction()

function(step_pkg_config_cxx)
  compile_consumer(main_library.cpp warmroute)
  run(${consumer})
  expect_text("${output}" "routed")
endfunction()

function(step_pkg_config_c)
  compile_consumer(main.c warmroute-c)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${prefix}/${LIBDIR} ${consumer})
  expect_text("${output}" "routed")
  run(${READELF} -dW ${consumer})
  expect_text("${output}" "libwarmroute_c")
endfunction()

# By the package of that name where both libraries are, and by --static where there is only one.
function(step_pkg_config_c_static)
  compile_consumer(main.c warmroute-c-static)
  run(${consumer})
  list(APPEND environment PKG_CONFIG_PATH=${SCRATCH}/archive/${LIBDIR}/pkgconfig)
  compile_consumer(main.c warmroute-c --static)
  run(${consumer})
  expect_text("${output}" "routed")
  run(${READELF} -dW ${consumer})
  if(output MATCHES "libwarmroute_c")
    message(FATAL_ERROR "not linked statically:\n${output}")
  endif()
endfunction()

# The shared C++ library, built on its own: it shows namespace warmroute and nothing else.
function(step_shared_build)
  set(shared ${SCRATCH}/shared)
  file(REMOVE_RECURSE ${shared})
  run(${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -S ${SOURCE} -B ${shared}/build -DBUILD_SHARED_LIBS=ON
      -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_BUILD_TYPE=MinSizeRel
      -DCMAKE_CXX_FLAGS_MINSIZEREL=-O0  # three times as quick to build, and more instantiations that might be seen
      -DWARMROUTE_BUILD_TESTS=OFF -DWARMROUTE_BUILD_BENCHMARKS=OFF -DWARMROUTE_BUILD_EXAMPLES=OFF -DWARMROUTE_BUILD_CAPI=OFF)
  run(${CMAKE_COMMAND} --build ${shared}/build --parallel 2)
  run(${CMAKE_COMMAND} --install ${shared}/build --prefix ${shared}/before)
  file(RENAME ${shared}/before ${shared}/prefix)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor ${VERSION})
  expect_shared_library(${shared}/prefix/lib/libwarmroute.so libwarmroute.so.${minor})
  run(${NM} -D --defined-only ${shared}/prefix/lib/libwarmroute.so)
  string(REGEX MATCHALL "[^\n ]+\n" names "${output}")
  list(FILTER names EXCLUDE REGEX "^_Z(TV|TI|TS|Z|GVZ)?NK?9warmroute")  # mangled: vtable, type, name, local static, its guard
  if(names)
    message(FATAL_ERROR "libwarmroute.so shows what is not its own: ${names}")
  endif()
  expect_text("${output}" "append_prometheus")
  build_consumer(find_package ${shared}/prefix -DEXPECT_SHARED=ON)
endfunction()

# Every installed header in one file, warnings on, the folder not a system folder.
function(step_headers)
  set(work ${SCRATCH}/headers)
  file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*.hpp)
  list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
  string(JOIN "" text ${headers} "#include <warmroute.h>\n" "int main() { return warmroute::Router().replicas().empty() ? 0 : 1; }\n")
  file(WRITE ${work}/all.cpp "${text}")
  file(WRITE ${work}/all.c "#include <warmroute.h>\n#include <warmroute.h>\nint main(void) { return WR_STATUS_OK; }\n")
  run(${COMPILER_CXX} -std=c++20 ${strict} -fsyntax-only -I${prefix}/include ${work}/all.cpp)
  foreach(standard IN ITEMS c99 c11)
    run(${COMPILER_C} -std=${standard} ${strict} -pedantic-errors -Wstrict-prototypes -fsyntax-only -I${prefix}/include ${work}/all.c)
  endforeach()
endfunction()

# The Debian packages, unpacked side by side into a folder of their own and used from there.
function(step_debian)
  set(work ${SCRATCH}/debian)
  file(REMOVE_RECURSE ${work})
  run(${CPACK} -G DEB --config ${BUILD}/CPackConfig.cmake -B ${work}/packages)
  file(GLOB packages ${work}/packages/*.deb)
  set(names)
  set(all_files)
  foreach(package IN LISTS packages)
    run(dpkg-deb -f ${package} Package Depends)
    expect_text("${output}" "Package: libwarmroute-(c${ABI}|dev)\n")
    set(name ${CMAKE_MATCH_1})
    list(APPEND names ${name})
    if(name STREQUAL "dev")
      expect_text("${output}" "libabsl-dev.*libwarmroute-c${ABI} .= ${VERSION}")
    else()
      expect_text("${output}" "libc6.*libssl3.*libstdc..6")  # found by dpkg-shlibdeps
      run(dpkg-deb -I ${package} shlibs)
      expect_text("${output}" "libwarmroute_c ${ABI} libwarmroute-c${ABI} .>= ${VERSION}")
    endif()
    run(dpkg-deb -x ${package} ${work}/unpacked)
    run(dpkg-deb -c ${package})
    string(REGEX MATCHALL "\\./[^\n]*[^/\n]\n" files "${output}")
    list(APPEND all_files ${files})
  endforeach()
  list(SORT names)
  expect_text("${names}" "^c${ABI};dev$")
  set(unique ${all_files})
  list(REMOVE_DUPLICATES unique)
  if(NOT all_files STREQUAL unique)
    message(FATAL_ERROR "two packages own one file: ${all_files}")
  endif()
  expect_no_traces(${work}/unpacked)
  build_consumer(find_package_c ${work}/unpacked/usr -DCOMPONENT=c)
  list(APPEND environment PKG_CONFIG_PATH=${work}/unpacked/usr/${LIBDIR}/pkgconfig)
  compile_consumer(main.c warmroute-c-static)
  run(${consumer})
endfunction()

cmake_language(CALL step_${STEP})
