lockstep_test(cli_bench_test
  SOURCES
    bench_coordinator_test.cpp
    bench_footprint_test.cpp
    bench_protocol_test.cpp
    bench_report_test.cpp
    bench_statistics_test.cpp
    bench_strangers_test.cpp
    bench_test.cpp
    bench_trials_test.cpp
    bench_tune_test.cpp
    bench_values_test.cpp
    ../support/strangers.cpp
  LIBRARIES lockstep_bench nlohmann_json::nlohmann_json)

# Has a main of its own, and takes the place of the library's random bytes.
lockstep_test(cli_bench_start_test
  SOURCES bench_start_test.cpp ../support/random_draws.cpp
  LIBRARIES lockstep_bench OpenSSL::Crypto
  LABELS multi)

program_test(cli_bench_process_test MULTI SOURCES bench_process_test.cpp)
target_compile_definitions(cli_bench_process_test PRIVATE
  LOCKSTEP_TEST_GLOO=$<BOOL:${GLOO_LIBRARY}>
  LOCKSTEP_TEST_MPI=$<TARGET_EXISTS:lockstep-mpi-agent>)
if(TARGET lockstep-mpi-agent)
  add_dependencies(cli_bench_process_test lockstep-mpi-agent)
endif()
