# The binary interface of libwarmroute_c.so against the one that was promised, warmroute_c-<ABI>.abi beside this file.
# Functions may be added; anything else fails. A field that takes room from `reserved`, or comes at the end of a struct that begins with
# struct_size, is allowed by the header's rules but fails here too: whoever adds it reads the report and writes the promise anew.
#   cmake -DSCRATCH=<folder> -DCXX=<compiler> [-DLAUNCHER=ccache] [-DWRITE=ON] -P abi.cmake
# WRITE: writes the promise anew (the target warmroute_c_abi).
# Of the library only capi/src is built, as one file with debug information: ten seconds, and all that the header names is in it.
cmake_minimum_required(VERSION 3.25)
find_program(ABIDW abidw)
find_program(ABIDIFF abidiff)
if(NOT ABIDW OR NOT ABIDIFF)
  message(STATUS "skipped: abidiff is not installed (Debian: abigail-tools)")
  return()
endif()

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${SCRATCH} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

cmake_path(SET capi NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/..)
cmake_path(SET root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
set(header ${capi}include/warmroute.h)
file(READ ${header} text)
string(REGEX MATCH "#define WR_ABI_VERSION ([0-9]+)" line "${text}")
set(number ${CMAKE_MATCH_1})
set(promised ${CMAKE_CURRENT_LIST_DIR}/warmroute_c-${number}.abi)

file(GLOB sources ${capi}src/*.cpp)
list(TRANSFORM sources REPLACE "(.+)" "#include \"\\1\"\n")
string(JOIN "" all ${sources})
file(CONFIGURE OUTPUT ${SCRATCH}/all.cpp CONTENT "${all}" @ONLY)
set(library ${SCRATCH}/libwarmroute_c.so.${number})
run(${LAUNCHER} ${CXX} -std=c++20 -g -O0 -fPIC -fvisibility=hidden -I${root}include -I${capi}include -I${capi}src
    -c all.cpp -o all.o)
run(${CXX} -shared all.o -o ${library} -Wl,-soname,libwarmroute_c.so.${number}
    -Wl,--version-script=${capi}warmroute_c.map)
# Handles are named in the header and made of private types: those are dropped, and nothing about this machine is kept.
run(${ABIDW} --headers-dir ${capi}include --drop-private-types --exported-interfaces-only --no-corpus-path --no-comp-dir-path
    --no-show-locs --no-elf-needed --no-architecture --no-parameter-names --type-id-style hash
    --out-file ${SCRATCH}/now.abi ${library})
if(WRITE)
  file(COPY_FILE ${SCRATCH}/now.abi ${promised})
  message(STATUS "written: ${promised}")
  return()
endif()
if(NOT EXISTS ${promised})
  message(FATAL_ERROR "${promised} is missing: cmake --build <folder> --target warmroute_c_abi writes it")
endif()

execute_process(COMMAND ${ABIDIFF} --leaf-changes-only --no-added-syms ${promised} ${SCRATCH}/now.abi
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the C library's binary interface changed (abidiff: ${status}):\n${output}")
endif()
message(STATUS "as promised: ${promised}")
