# Builds tests/install/consumer against the project in one of four ways and runs it.
#   HOW  find_package | find_parallel | pkg_config | add_subdirectory        WORK  a folder that is made anew
#   BUILD, SOURCE  of the project    COMPILER, LAUNCHER, LIBDIR, SANITIZE  as in its build
file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(NOT HOW STREQUAL "add_subdirectory")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
endif()

set(flags "-Wall -Wextra -Wshadow -Werror")
if(SANITIZE)
  string(APPEND flags " -fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build
  -D HOW=${HOW} -D LOCKSTEP_SOURCE=${SOURCE} -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_BUILD_TYPE=Release
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_CXX_FLAGS=${flags})
run(${CMAKE_COMMAND} --build ${WORK}/build --target consumer)
run(${WORK}/build/consumer)
