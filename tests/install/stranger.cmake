# One step of the install tests: installs into a folder, renames it, or configures, builds and runs one consumer.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(prefix ${SCRATCH}/prefix)
if(STEP STREQUAL "install")
  file(REMOVE_RECURSE ${SCRATCH})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/before --component warmroute)
  file(RENAME ${SCRATCH}/before ${prefix})
  # Nothing that was installed may point back to this source tree or to where it was first put.
  file(GLOB_RECURSE files ${prefix}/*.cmake ${prefix}/*.hpp)
  foreach(file IN LISTS files)
    file(READ ${file} text)
    foreach(path IN ITEMS ${SOURCE} ${SCRATCH}/before)
      string(FIND "${text}" "${path}" found)
      if(NOT found EQUAL -1)
        message(FATAL_ERROR "${file} names ${path}")
      endif()
    endforeach()
  endforeach()
  return()
endif()

# The package of the moved folder, and no other that may be on this machine.
set(build ${SCRATCH}-${STEP})
file(REMOVE_RECURSE ${build})
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/${STEP} -B ${build} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=${prefix} -DWARMROUTE_SOURCE=${SOURCE} -DEXPECTED_VERSION=${VERSION}
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${build})
run(${build}/consumer)
message(STATUS "${output}")
