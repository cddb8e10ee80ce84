# -DVALGRIND -DPROGRAM: the program under valgrind, without an error and without a leak.
if(NOT VALGRIND)
  message("valgrind is not installed: skipped (apt-get install valgrind)")
  return()
endif()
execute_process(COMMAND ${VALGRIND} --quiet --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --error-exitcode=9
                        --suppressions=${CMAKE_CURRENT_LIST_DIR}/valgrind.supp ${PROGRAM} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} under valgrind: ${result}")
endif()
