# Small functions that every folder uses.

# Warnings for this project's own targets; consumers never see them.
function(warmroute_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                         $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # GCC bug 105329: false alarms on "literal" + std::string
  endif()
  if(WARMROUTE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# -fsanitize=... for every target below this folder, when WARMROUTE_SANITIZE names any.
macro(warmroute_apply_sanitizers)
  if(WARMROUTE_SANITIZE)
    add_compile_options(-fsanitize=${WARMROUTE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    if(WARMROUTE_SANITIZE_EXCEPT)
      add_compile_options(-fno-sanitize=${WARMROUTE_SANITIZE_EXCEPT})
    endif()
    add_link_options(-fsanitize=${WARMROUTE_SANITIZE})
  endif()
endmacro()

# Release tests at -O1: router_test.cpp compiles in 10 s instead of 16, and what is fast is measured in benchmarks/, not here. (Coroutines get false
# warnings of GCC 12 there.)
function(warmroute_compile_fast target)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# The files of a target compiled together, some at a time: boost and the router cost each of them more than its own lines.
function(warmroute_compile_together target batch)
  if(WARMROUTE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    # GCC takes the files for headers, in which a coroutine's frame must not hold what an unnamed namespace has.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# The files of lib/ in a target compiled together, room by room.
function(warmroute_compile_rooms_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes the files for headers, in which a class must not hold what an unnamed namespace has.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  foreach(source IN LISTS ARGN)
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "" place "${source}")
    if(place MATCHES "^lib/([a-z]+)/(kv_|metrics_|forms/|decision_log/|rules/)?")
      string(MAKE_C_IDENTIFIER "${CMAKE_MATCH_1}_${CMAKE_MATCH_2}" room)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room})
    endif()
  endforeach()
endfunction()

# warmroute_add_test(<name> SOURCES a.cpp... [LIBRARIES ...] [LABELS core;...])
# One GoogleTest executable. LABELS core marks what the sanitizer runs repeat, threads what is worth a run under TSan.
function(warmroute_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(WARMROUTE_UNITY)  # eleven files that use the router compile in 23 s instead of 70
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
    set_source_files_properties(../support/counting_new.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    WARMROUTE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    WARMROUTE_BENCHMARK_DATA="${PROJECT_SOURCE_DIR}/benchmarks/data")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(TARGET warmroute_test_pch)
    target_precompile_headers(${name} REUSE_FROM warmroute_test_pch)
  endif()
  warmroute_set_warnings(${name})
  warmroute_compile_fast(${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS other)
  endif()
  list(JOIN ARG_LABELS "-" labels)  # a list would fall apart on its way; ctest -L finds one label in "core-threads", too
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES LABELS ${labels} TIMEOUT 600)
  set_property(GLOBAL APPEND PROPERTY WARMROUTE_TEST_TARGETS ${name})
  foreach(label IN LISTS ARG_LABELS)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
endfunction()
