// SPDX-License-Identifier: Apache-2.0
//
// Takes the place of gloo_opponent.cpp in a build without gloo.
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/system.h"

namespace lockstep::cli {

TrialFactory gloo_trials(Rank, int, std::filesystem::path) {
  return [](const Case&) -> std::unique_ptr<Trial> {
    throw UsageError("this lockstep was built without gloo; install libgloo-dev and build again");
  };
}

}  // namespace lockstep::cli
