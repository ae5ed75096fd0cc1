# The program in README.md, as it stands there, built and run.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md)
file(READ ${PROJECT_SOURCE_DIR}/README.md readme)
if(NOT readme MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "README.md has no example in C++")
endif()
file(CONFIGURE OUTPUT readme_example.cpp CONTENT "${CMAKE_MATCH_1}" @ONLY)

add_executable(readme_example ${CMAKE_CURRENT_BINARY_DIR}/readme_example.cpp)
target_link_libraries(readme_example PRIVATE lockstep_flags Lockstep::comm)
lockstep_output_test(readme.example "rank 1 of 2: 2 4 1"
  $<TARGET_FILE:lockstep> launch -n 2 $<TARGET_FILE:readme_example>)
add_test(NAME readme.example_ends_with_the_code_of_the_error
  COMMAND sh -c "RANK=x \"$1\"; test $? -eq 2" sh $<TARGET_FILE:readme_example>)
set_tests_properties(readme.example readme.example_ends_with_the_code_of_the_error PROPERTIES LABELS multi RUN_SERIAL ON TIMEOUT 120)

if(LOCKSTEP_TRAIN)
  add_test(NAME readme.default_job
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/readme_default_job.py $<TARGET_FILE:lockstep> ${PROJECT_SOURCE_DIR})
  set_tests_properties(readme.default_job PROPERTIES LABELS slow RUN_SERIAL ON TIMEOUT 1800)
endif()
