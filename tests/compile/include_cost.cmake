# The cost of #include <warmroute/warmroute.hpp>, in lines after preprocessing: they measure the same on every machine.
# The yardstick is what the interface itself is made of, taken from the same standard library, since releases differ:
# libstdc++ 12 has 54,400 lines for it. An embedder has most of that already. On top come xxHash (5,400 lines) and our own
# code; half the yardstick is room for that, and not for <iostream>, <regex>, <filesystem> or another library.
set(yardstick string string_view vector memory atomic mutex array optional variant span algorithm)
set(factor_percent 150)

function(preprocessed_lines result)
  set(source ${SCRATCH}/include_cost.cpp)
  set(text "")
  foreach(header IN LISTS ARGN)
    string(APPEND text "#include <${header}>\n")
  endforeach()
  file(WRITE ${source} "${text}")
  execute_process(COMMAND ${COMPILER} -std=c++20 -I${INCLUDE} -I${XXHASH} -E -P ${source}
                  OUTPUT_FILE ${source}.i RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${COMPILER} cannot preprocess ${source}")
  endif()
  file(READ ${source}.i text)
  string(REGEX REPLACE "[^\n]+" "" text "${text}")
  string(LENGTH "${text}" lines)
  set(${result} ${lines} PARENT_SCOPE)
endfunction()

preprocessed_lines(base ${yardstick})
preprocessed_lines(cost warmroute/warmroute.hpp)
math(EXPR budget "${base} * ${factor_percent} / 100")
message(STATUS "warmroute.hpp: ${cost} preprocessed lines; the standard headers of its interface: ${base}; budget: ${budget}")
if(cost GREATER budget)
  message(FATAL_ERROR "warmroute.hpp costs ${cost} lines, ${budget} are allowed: find the header that brought them, and move what needs it to lib/")
endif()
