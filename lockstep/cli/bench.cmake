# `lockstep bench`: a library of its own, which the program, its tests and the MPI agent link.
set(bench_folder ${PROJECT_SOURCE_DIR}/bench/collectives)

# Debian's GlooConfig.cmake names a CUDA library that is not there, so gloo is looked for by hand.
find_path(GLOO_INCLUDE_DIR gloo/allreduce.h)
find_library(GLOO_LIBRARY gloo)
if(GLOO_INCLUDE_DIR AND GLOO_LIBRARY)
  set(gloo_source ${bench_folder}/gloo_opponent.cpp)
  set(gloo_library ${GLOO_LIBRARY})
else()
  set(gloo_source ${bench_folder}/gloo_absent.cpp)
  set(gloo_library)
endif()

add_library(lockstep_bench STATIC
  bench_agent.cpp bench_collectives.cpp bench_coordinator.cpp bench_crew.cpp bench_crews.cpp bench_limits.cpp bench_line.cpp
  bench_lockstep.cpp bench_mpi_crew.cpp bench_options.cpp bench_process_crew.cpp bench_protocol.cpp bench_report.cpp bench_sizes.cpp bench_sockets.cpp bench_statistics.cpp
  bench_thread_crew.cpp bench_tune.cpp bench_values.cpp ${gloo_source})
target_include_directories(lockstep_bench PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(lockstep_bench
  PUBLIC Lockstep::comm Lockstep::rendezvous Lockstep::transport
  PRIVATE lockstep_flags fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json ${gloo_library})

if(MPI_CXX_FOUND)
  lockstep_program(lockstep-mpi-agent
    SOURCES ${bench_folder}/mpi_agent.cpp
    LIBRARIES lockstep_bench MPI::MPI_CXX fmt::fmt)
endif()
