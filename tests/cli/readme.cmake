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
set_tests_properties(readme.example PROPERTIES LABELS multi RUN_SERIAL ON TIMEOUT 120)
