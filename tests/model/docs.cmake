# The program in docs/models.md, as it stands there in two pieces, built and run.
set(page ${PROJECT_SOURCE_DIR}/docs/models.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
file(READ ${page} text)
if(NOT text MATCHES "```cpp\n([^`]*)```.*```cpp\n([^`]*)```")
  message(FATAL_ERROR "docs/models.md has no two examples in C++")
endif()
file(CONFIGURE OUTPUT docs_models.cpp CONTENT "${CMAKE_MATCH_1}\n${CMAKE_MATCH_2}" @ONLY)

add_executable(docs_models ${CMAKE_CURRENT_BINARY_DIR}/docs_models.cpp)
target_link_libraries(docs_models PRIVATE lockstep_flags Lockstep::model)
lockstep_output_test(docs.models "loss 4\\." $<TARGET_FILE:docs_models>)
set_tests_properties(docs.models PROPERTIES LABELS fast TIMEOUT 60)
