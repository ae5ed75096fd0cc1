// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/dense/dense_samples.h"
#include "lockstep/data/sampling/sampler.h"
#include "lockstep/data/sampling/windows.h"
#include "lockstep/model/block.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// The micro-batches of a run. Which samples stand where depends on the seed and the position only, never on
// who asks.
class Feed {
 public:
  struct Options {
    std::vector<spec::Corpus> corpora;
    spec::Sharding sharding = spec::Sharding::sample;
    bool dense = false;           // NumPy files of samples, not corpora of tokens
    std::int64_t vocabulary = 0;  // or classes
    std::int64_t length = 0;      // of a sequence, or inputs of a sample
    std::uint64_t seed = 0;
    data::StepShape shape;
  };
  // UsageError when there is no corpus, or one is too short or has other columns; DataError when one is
  // corrupt.
  explicit Feed(const Options& options);

  // How far a step moves the position.
  std::uint64_t samples_per_step() const { return sampler_->samples_per_step(); }

  model::Batch batch(std::uint64_t position, int lane, int micro_batch) const;

 private:
  data::MixturePart open(const spec::Corpus& corpus, const Options& options);

  std::vector<data::Windows> windows_;     // by corpus, of tokens
  std::vector<data::DenseSamples> dense_;  // by corpus, of numbers
  std::unique_ptr<data::Sampler> sampler_;
  std::uint64_t seed_;
  std::uint64_t rows_;
  std::int64_t length_;
};

}  // namespace lockstep::train
