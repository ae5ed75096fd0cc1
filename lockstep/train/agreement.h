// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/feed.h"

namespace lockstep::train {

// A rank raises it when another one tells the reason: an error of the same kind as `cause`.
class ToldElsewhere : public Error {
 public:
  explicit ToldElsewhere(std::exception_ptr cause)
      : Error("another rank tells why"), cause_(std::move(cause)) {}
  const std::exception_ptr& cause() const { return cause_; }
  std::string why() const;  // of the cause

 private:
  std::exception_ptr cause_;
};

// Calls the body, which must not communicate, on all ranks. When it raises something anywhere, the lowest
// such rank raises that, and all others ToldElsewhere; none of them before all know.
void together(const comm::Communicator& world, const std::function<void()>& body);

// By rank: the numbers of each, which may be any number of them.
std::vector<std::vector<std::int64_t>> gathered_lists(std::span<const std::int64_t> mine,
                                                      const comm::Communicator& world);

// Before some ranks leave because of what all have just learned together: returns when all know it. Whoever
// leaves sooner breaks the operation by which others learn it.
void part(const comm::Communicator& world);

// On all ranks, for the same reason: UsageError on rank 0, ToldElsewhere on the others; none before all know.
[[noreturn]] void refuse_together(const comm::Communicator& world, const std::string& sentence);

// Refuses together, naming the first rank whose run is not that of rank 0, in what all must have the same
// (spec::common_to_workers).
void require_same_run(const spec::RunSpec& run, const comm::Communicator& world);

// The same of processors, unless the run does without exact sums (comm.exact): lanes have the same bits
// whoever computes them only where kernels give the same.
void require_same_arithmetic(const spec::RunSpec& run, const comm::Communicator& world);

// The same of what files say: the schedule that one gives, and the data. Of these, samples of the first step
// and of the last are compared.
void require_same_schedule(const plan::PipelinePlan& plan, const comm::Communicator& world);
void require_same_data(const Feed& feed, const data::StepShape& shape, std::int64_t steps,
                       const comm::Communicator& world);

// What the samples of a step have in common with few others: those of the first lane and of the last.
Hash hash_of_samples(const Feed& feed, const data::StepShape& shape, std::int64_t step);

// The same of the values that a folder has given. Ranks with equal `part` hold the same parameters.
void require_same_first_values(const Hash& values, int part, const std::string& folder,
                               const comm::Communicator& world);

}  // namespace lockstep::train
