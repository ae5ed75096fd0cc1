// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/chaos/figures.h"

namespace lockstep::cli {

// What a job under faults came to.
struct JobFigures {
  std::vector<InjectedFault> faults;
  std::vector<FaultOutcome> outcomes;  // of each fault
  Repeats repeats;
  Effective effective;
};

struct ChaosReport {
  std::string folder;
  int workers = 0;
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  std::size_t planned = 0;
  double undisturbed_step_s = 0;
  JobFigures ours;
  double pace = 0;  // of the undisturbed run's time for the same steps, over the disturbed one's
  LossComparison losses;
  std::string digest;
  std::string undisturbed_digest;
  std::optional<JobFigures> torchrun;

  bool has_equal_digest() const { return digest == undisturbed_digest; }
  bool is_equal() const { return has_equal_digest() && losses.different == 0; }
};

std::string chaos_text(const ChaosReport& report);
// One object in one line, with every fault.
std::string chaos_json(const ChaosReport& report);

}  // namespace lockstep::cli
