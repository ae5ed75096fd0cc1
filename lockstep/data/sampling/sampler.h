// SPDX-License-Identifier: Apache-2.0
//
// Who takes which data. A *position* is the number of samples that a run has drawn so far: the one number
// that has to be saved to go on. What stands at a place of a step depends on the seed, the position and the
// place, never on who asks; so it does not matter which rank owns a lane, and the order in which places are
// asked is free.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/sampling/mixture.h"
#include "lockstep/mesh/range.h"

namespace lockstep::data {

// How a step is cut.
struct StepShape {
  std::uint64_t lanes = 1;
  std::uint64_t micro_batches = 1;  // of each lane
  std::uint64_t rows = 1;           // samples of a micro-batch
};

// A row of a step; each number is below that of the shape.
struct Place {
  std::uint64_t lane = 0;
  std::uint64_t micro_batch = 0;
  std::uint64_t row = 0;
};

struct Piece {
  std::size_t part = 0;      // which corpus
  std::uint64_t sample = 0;  // which of its samples
  Range features;            // which of its columns
  std::uint64_t number = 0;  // of all samples that the run draws, which one this is
  bool operator==(const Piece&) const = default;
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  // How far one step moves the position.
  virtual std::uint64_t samples_per_step() const = 0;
  // `position` is that of the step's begin: step * samples_per_step() while the shape stays.
  virtual Piece at(std::uint64_t position, const Place& place) const = 0;
};

struct SamplerOptions {
  std::vector<MixturePart> parts;
  std::uint64_t seed = 0;
  StepShape shape;
  std::size_t features = 1;  // columns of a sample
};

// Single samples are shuffled and dealt to the lanes. UsageError for parts that Mixture refuses, here and
// below.
std::unique_ptr<Sampler> shard_by_sample(const SamplerOptions& options);

// Runs of `rows` neighbouring samples are shuffled and dealt, so that a micro-batch is one stretch of the
// corpus. Runs are cut anew in every epoch, from another first sample. The position advances by whole runs:
// it is a multiple of `rows` unless the shape has changed, and is then rounded down. UsageError when a corpus
// has fewer samples than `rows`.
std::unique_ptr<Sampler> shard_by_batch(const SamplerOptions& options);

// All lanes see the same samples, each lane its own chunk of the columns (chunk_range). UsageError when there
// are fewer columns than lanes.
std::unique_ptr<Sampler> shard_by_feature(const SamplerOptions& options);

}  // namespace lockstep::data
