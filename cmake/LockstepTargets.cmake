# How every target of the project is built.
include(GNUInstallDirs)

# Settings that all our own targets share; never exported to consumers.
add_library(lockstep_flags INTERFACE)
target_compile_features(lockstep_flags INTERFACE cxx_std_20)
# -ffp-contract=off: the compiler must not fuse a product and a sum in one place and not in another; results have
# bits that are promised.
# -Wrestrict: GCC 12 sees overlaps in std::string concatenations that are not there. -Warray-bounds and
# -Wstringop-...: GCC 14 sees copies of vectors of one element that go past its end, in the standard library and in libtorch;
# -Wmaybe-uninitialized: it sees members of variants that are not the one which is there.
target_compile_options(lockstep_flags INTERFACE
  -ffp-contract=off -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-maybe-uninitialized>
  -fstack-protector-strong)
if(LOCKSTEP_SANITIZE)
  # A finding ends the program, so that a test cannot pass with one. Without vptr, whose check opens a pipe and
  # cries wolf in the tests that run out of descriptors.
  target_compile_options(lockstep_flags INTERFACE
    -fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
  if(LOCKSTEP_SANITIZE MATCHES "thread")
    # Asio's fences, which order nothing here: each of our event loops has one thread.
    target_compile_options(lockstep_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()
if(LOCKSTEP_FUZZERS)
  target_compile_options(lockstep_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# lockstep_library(name [INTERNAL | TORCH] SOURCES a.cpp ... PUBLIC dependencies... PRIVATE dependencies...)
# One static target per folder: lockstep_<name>, alias Lockstep::<name>, with every header of the folder. The
# lockstep_... targets among PRIVATE are settings of this build and stay out of the exported package, as does a
# library that is INTERNAL. One that is TORCH is in the half of the package that needs oneDNN and libtorch.
function(lockstep_library name)
  cmake_parse_arguments(ARG "INTERNAL;TORCH" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(lockstep_${name} STATIC ${ARG_SOURCES})
  add_library(Lockstep::${name} ALIAS lockstep_${name})
  set_target_properties(lockstep_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(lockstep_${name} PUBLIC cxx_std_20)
  target_include_directories(lockstep_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(name STREQUAL "kernels")
    list(FILTER headers EXCLUDE REGEX "/kernels/compute/")  # of a library of its own
  endif()
  target_sources(lockstep_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})

  set(private ${ARG_PRIVATE} lockstep_flags)
  list(TRANSFORM private REPLACE "^(lockstep_.*)$" "$<BUILD_INTERFACE:\\1>")
  target_link_libraries(lockstep_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${private})
  if(ARG_TORCH)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_TORCH_LIBRARIES lockstep_${name})
  elseif(NOT ARG_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LIBRARIES lockstep_${name})
  endif()
endfunction()

# lockstep_program(name SOURCES a.cpp ... LIBRARIES Lockstep::x ...)
# A program for users: bin/<name> in the build folder, and installed. The target lockstep_programs builds them all.
add_custom_target(lockstep_programs)
function(lockstep_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_link_libraries(${name} PRIVATE lockstep_flags ${ARG_LIBRARIES})
  add_dependencies(lockstep_programs ${name})
  if(LOCKSTEP_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# How the programs of lockstep_test are compiled: -O1, because a test spends its time in the libraries, and with the
# headers that all of them read compiled once. Each takes a quarter off the time that a test takes to compile.
# -Warray-bounds and -Wstringop-...: GCC 12 sees in precompiled strings what is not there, as for -Wrestrict.
function(compile_as_test target)
  target_link_libraries(${target} PRIVATE lockstep_flags ${ARGN} GTest::gtest GTest::gmock)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-O1>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
endfunction()
function(precompile_for_tests target)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${target}.cpp CONTENT "")
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/${target}.cpp)
  compile_as_test(${target})
  target_precompile_headers(${target} PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <chrono> <filesystem> <functional> <string> <thread> <vector> ${ARGN})
endfunction()
if(LOCKSTEP_TESTS)
  precompile_for_tests(lockstep_test_headers)
  if(LOCKSTEP_TRAIN)
    precompile_for_tests(lockstep_torch_test_headers <ATen/core/Tensor.h> <torch/csrc/autograd/custom_function.h>)
    target_link_libraries(lockstep_torch_test_headers PRIVATE Lockstep::nn)
  endif()
endif()

# lockstep_test(name SOURCES a_test.cpp ... LIBRARIES Lockstep::x ... [LABELS fast|multi|sweep]
#               [TIMEOUT seconds] [WAITS] [TORCH])
# One GoogleTest program per folder of tests, registered with CTest case by case. Without LABELS: fast. Cases
# that start several processes (multi) run alone, because they load or disturb the whole machine; but those that spend
# most of their time waiting (WAITS) come first, beside others. TORCH: it reads libtorch's headers.
function(lockstep_test name)
  cmake_parse_arguments(ARG "TORCH;WAITS" "TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(LOCKSTEP_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  set(order)
  if(ARG_WAITS)
    set(order COST 1000)
  elseif("multi" IN_LIST ARG_LABELS)
    set(order RUN_SERIAL ON)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  compile_as_test(${name} ${ARG_LIBRARIES} GTest::gtest_main)
  if(ARG_TORCH)
    target_precompile_headers(${name} REUSE_FROM lockstep_torch_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM lockstep_test_headers)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set(environment)
  if(LOCKSTEP_SANITIZE MATCHES "thread")
    set(environment ENVIRONMENT TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/thread_sanitizer.supp)
  endif()
  # One label, such as multi+slow: gtest_discover_tests takes a list apart.
  list(JOIN ARG_LABELS "+" label)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT} ${order} ${environment})
endfunction()

# lockstep_output_test(name expected command...)
# A CTest case that runs a command and passes when it ends with 0 and what it prints matches a regular expression.
# Programs of this build are named as $<TARGET_FILE:x>.
function(lockstep_output_test name expected)
  add_test(NAME ${name}
    COMMAND ${CMAKE_COMMAND} -D "EXPECTED=${expected}" -P ${PROJECT_SOURCE_DIR}/tests/support/expect_output.cmake -- ${ARGN})
endfunction()

# lockstep_mpi_test(name SOURCES ... LIBRARIES ... RANKS 2 4 ... [EXCEPT patterns...])
# A GoogleTest program with a main() of its own that initializes MPI, registered once for each number of ranks under
# mpirun (labels multi and mpi). EXCEPT lists GoogleTest patterns of tests that make no sense there.
function(lockstep_mpi_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;RANKS;EXCEPT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE lockstep_flags ${ARG_LIBRARIES} GTest::gtest GTest::gmock MPI::MPI_CXX)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  list(JOIN ARG_EXCEPT ":" except)
  foreach(ranks ${ARG_RANKS})
    add_test(NAME ${name}.${ranks}_ranks
      COMMAND ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none -n ${ranks}
        $<TARGET_FILE:${name}> --gtest_filter=-${except})
    # Containers forbid the system call of the single-copy mechanism, and Open MPI then complains on every start.
    set_tests_properties(${name}.${ranks}_ranks PROPERTIES LABELS "multi;mpi" TIMEOUT 300 RUN_SERIAL ON
      ENVIRONMENT "OMPI_MCA_btl_vader_single_copy_mechanism=none;OMPI_MCA_btl_base_warn_component_unused=0")
  endforeach()
endfunction()

# lockstep_fuzzer(name SOURCES a_fuzzer.cpp ... LIBRARIES Lockstep::x ... CORPUS folder)
# A libFuzzer target, and a CTest case (label fuzz) that runs it for LOCKSTEP_FUZZ_SECONDS from the environment
# (20 by default). The corpus is only read.
function(lockstep_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE lockstep_flags ${ARG_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
  cmake_path(ABSOLUTE_PATH ARG_CORPUS)
  add_test(NAME fuzz.${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/run_fuzzer.sh $<TARGET_FILE:${name}> ${ARG_CORPUS})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
endfunction()
