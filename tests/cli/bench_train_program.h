// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace lockstep::testing {

// What a command printed with --json.
inline std::vector<nlohmann::json> json_lines_of(const Finished& finished) {
  std::istringstream in(finished.output);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// The lines of `lockstep bench train`: one turn of two short steps on two workers.
inline std::vector<nlohmann::json> bench_train_lines(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {"bench",   "train",     "--workers", "2",       "--micro-batch",
                                      "1",       "--seq-len", "16",        "--steps", "2",
                                      "--turns", "1",         "--json"};
  command.insert(command.end(), flags.begin(), flags.end());
  // Where PyTorch takes part, Python alone may take many seconds to begin.
  const Finished finished = Program(std::move(command)).finish(std::chrono::minutes(2));
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  return json_lines_of(finished);
}

}  // namespace lockstep::testing
