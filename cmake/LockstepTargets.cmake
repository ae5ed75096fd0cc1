# How every target of the project is built.
include(GNUInstallDirs)

# Settings that all our own targets share; never exported to consumers.
add_library(lockstep_flags INTERFACE)
target_compile_features(lockstep_flags INTERFACE cxx_std_20)
target_compile_options(lockstep_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror -fstack-protector-strong)
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

# lockstep_library(name SOURCES a.cpp ... PUBLIC dependencies... PRIVATE dependencies...)
# One static target per folder: lockstep_<name>, alias Lockstep::<name>.
function(lockstep_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(lockstep_${name} STATIC ${ARG_SOURCES})
  add_library(Lockstep::${name} ALIAS lockstep_${name})
  set_target_properties(lockstep_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(lockstep_${name} PUBLIC cxx_std_20)
  target_include_directories(lockstep_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(lockstep_${name} PUBLIC ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:lockstep_flags> ${ARG_PRIVATE})
endfunction()

# lockstep_test(name SOURCES a_test.cpp ... LIBRARIES Lockstep::x ... [LABELS fast|slow|multi ...] [TIMEOUT seconds])
# One GoogleTest program per folder of tests, registered with CTest case by case.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE lockstep_flags ${ARG_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
