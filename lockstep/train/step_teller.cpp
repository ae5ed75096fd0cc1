// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_teller.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/seconds_since.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/spec/workload.h"
#include "lockstep/train/agreement.h"

namespace lockstep::train {
namespace {

// By rank: equal numbers for those that hold the same part of the model.
std::vector<int> work_of_ranks(const Mesh& mesh) {
  std::vector<int> work;
  for (Rank rank = 0; rank < mesh.world(); ++rank) work.push_back(mesh.group_index(rank, Axis::data));
  return work;
}

}  // namespace

StepTeller::StepTeller(const spec::RunSpec& run, const comm::Communicator& world, Options options)
    : run_(run),
      world_(world),
      options_(std::move(options)),
      speeds_(run.elastic, world, work_of_ranks(plan::mesh_of(run, world.size()))) {}

void StepTeller::tell(StepReport& report) {
  report.speed = speeds_.compare_if_due(report.step);
  if (report.speed) report.speed->is_evicted = report.speed->is_named && can_evict();
  // Only rank 0 has something to do for it.
  const auto began = Clock::now();
  if (options_.after_step) options_.after_step(report);
  add(in_phase(Phase::other, seconds_since(began)));
}

void StepTeller::tell_again(const StepReport& report) const {
  if (options_.after_step) options_.after_step(report);
}

void StepTeller::evict_if_told(const StepReport& report) const {
  if (!report.speed || !report.speed->is_evicted) return;
  part(world_);
  const std::string what = to_text(*report.speed) + ": it has to leave";
  if (report.speed->slowest.rank == world_.rank()) throw Evicted(what);
  throw CommError(what);
}

// Ranks may leave, and there are enough without one.
bool StepTeller::can_evict() const {
  const std::int64_t replica = spec::workers_of_replica(run_.parallelism, world_.size());
  const std::int64_t left = (world_.size() - 1) / replica * replica;
  return run_.elastic.evict_stragglers && options_.ranks_may_leave &&
         left >= std::max(replica, run_.elastic.min_workers);
}

}  // namespace lockstep::train
