// SPDX-License-Identifier: Apache-2.0
//
// Which faults a run is given, and when: data that a seed makes, so that a run can be disturbed in the same
// way again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// kill: SIGKILL for a worker. stop: SIGSTOP for one, and SIGCONT after a while or never. resize: a worker
// leaves for longer, or comes back. all: SIGKILL for all workers at once. launcher: SIGKILL for the process
// that keeps them, and a new one with --resume auto.
enum class FaultKind { kill, stop, resize, all, launcher };

const std::vector<std::string>& fault_names();  // in the order of the kinds
std::string_view name_of(FaultKind kind);

struct Fault {
  double at_s = 0;           // after the run's first step has begun
  std::int64_t by_step = 0;  // or when this one is done, if that is sooner; 0: at its time alone
  FaultKind kind = FaultKind::kill;
  int worker = 0;            // which one; counted among those that there are then, from the first again
  double stopped_for_s = 0;  // of a stop; 0: it is never continued
  bool operator==(const Fault&) const = default;
};

struct PlanOptions {
  std::uint64_t seed = 1;
  double duration_s = 600;
  int workers = 2;
  double least_gap_s = 0;  // between two faults
  // Faults of these kinds come at random, mtbf_s apart on average.
  double mtbf_s = 20;
  std::vector<FaultKind> kinds = {};
  // Or exactly as many as this list has, at random times in random order.
  std::vector<FaultKind> exactly = {};
};

// By time. Pure. UsageError when so many do not fit into the time.
std::vector<Fault> plan_faults(const PlanOptions& options);

// For a run of `steps` that should take `time_s`: one that turns out to be faster gets each fault when it has
// made the same share of its steps, rounded up to whole ones. Pure.
void bound_by_steps(std::vector<Fault>& plan, std::int64_t steps, double time_s);

}  // namespace lockstep::cli
