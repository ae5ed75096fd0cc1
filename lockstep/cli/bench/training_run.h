// SPDX-License-Identifier: Apache-2.0
//
// Runs of training programs that benchmarks start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/rendezvous/launcher.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

// Tokens for all steps, so that none is seen twice.
void write_random_corpus(const std::string& prefix, const spec::RunSpec& run, std::int64_t tokens);

struct Workers {
  int count = 1;
  int pretended_hosts = 1;  // as rendezvous::LaunchOptions has them
};
// Runs the command once per worker and waits for all; what it prints is not shown, what it complains of is.
void run_workers(std::vector<std::string> command, const Workers& workers,
                 const rendezvous::Environment& more = {});

}  // namespace lockstep::cli
