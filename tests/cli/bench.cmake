lockstep_test(cli_bench_test
  SOURCES bench_test.cpp bench_protocol_test.cpp bench_statistics_test.cpp bench_values_test.cpp
  LIBRARIES lockstep_bench nlohmann_json::nlohmann_json)
