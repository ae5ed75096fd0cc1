# usage: cmake -D EXPECTED=REGEX -P expect_output.cmake -- COMMAND ARGUMENTS...
# Fails unless the command ends with 0 and what it prints matches. CTest's own PASS_REGULAR_EXPRESSION ignores how a
# command ends.
set(command)
set(begun OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(begun)
    string(REPLACE ";" "\\;" argument "${CMAKE_ARGV${i}}")
    list(APPEND command "${argument}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(begun ON)
  endif()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output
  ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${command} ended with: ${result}")
endif()
if(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "${command} printed nothing that matches: ${EXPECTED}")
endif()
