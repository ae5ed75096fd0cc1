// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/sampling/sampler.h"
#include "lockstep/data/sampling/windows.h"
#include "lockstep/model/block.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// The micro-batches of a run. Which tokens stand where depends on the seed and the position only, never on
// who asks.
class Feed {
 public:
  struct Options {
    std::vector<spec::Corpus> corpora;
    spec::Sharding sharding = spec::Sharding::sample;
    std::int64_t vocabulary = 0;
    std::int64_t length = 0;  // of a sequence
    std::uint64_t seed = 0;
    data::StepShape shape;
  };
  // UsageError when there is no corpus or one is too short; DataError when one is corrupt.
  explicit Feed(const Options& options);

  // How far a step moves the position.
  std::uint64_t samples_per_step() const { return sampler_->samples_per_step(); }

  model::Batch batch(std::uint64_t position, int lane, int micro_batch) const;

 private:
  std::vector<data::Windows> windows_;  // by corpus
  std::unique_ptr<data::Sampler> sampler_;
  std::uint64_t seed_;
  std::uint64_t rows_;
  std::int64_t length_;
};

}  // namespace lockstep::train
