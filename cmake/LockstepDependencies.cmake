# What the project links, all from Debian packages.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(hwy REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(lockstep_asio INTERFACE)
target_include_directories(lockstep_asio SYSTEM INTERFACE $<BUILD_INTERFACE:${ASIO_INCLUDE_DIR}>)
target_compile_definitions(lockstep_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(lockstep_asio INTERFACE Threads::Threads)

find_package(Gloo QUIET)

# The component is CXX because C is not a language of this project; only MPI's C interface is used.
if(NOT LOCKSTEP_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX TRUE)
  if(LOCKSTEP_MPI STREQUAL "ON")
    find_package(MPI REQUIRED COMPONENTS CXX)
  else()
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
endif()

if(LOCKSTEP_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  include(GoogleTest)
endif()
