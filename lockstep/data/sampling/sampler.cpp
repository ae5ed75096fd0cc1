// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/sampling/sampler.h"

#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"

namespace lockstep::data {
namespace {

void check_place(const StepShape& shape, const Place& place) {
  LOCKSTEP_CHECK(
      place.lane < shape.lanes && place.micro_batch < shape.micro_batches && place.row < shape.rows,
      "a place outside of the step");
}

// The number of the micro-batch among all of a step.
std::uint64_t micro_batch_number(const StepShape& shape, const Place& place) {
  return place.micro_batch * shape.lanes + place.lane;
}

class BySample : public Sampler {
 public:
  explicit BySample(const SamplerOptions& options)
      : shape_(options.shape), features_(options.features), mixture_(options.parts, options.seed) {}

  std::uint64_t samples_per_step() const override {
    return shape_.lanes * shape_.micro_batches * shape_.rows;
  }

  Piece at(std::uint64_t position, const Place& place) const override {
    check_place(shape_, place);
    const std::uint64_t number = position + micro_batch_number(shape_, place) * shape_.rows + place.row;
    const auto sample = mixture_.at(number);
    return {sample.part, sample.index, {0, features_}, number};
  }

 private:
  StepShape shape_;
  std::size_t features_;
  Mixture mixture_;
};

class ByBatch : public Sampler {
 public:
  explicit ByBatch(const SamplerOptions& options)
      : shape_(options.shape),
        features_(options.features),
        seed_(options.seed),
        parts_(options.parts),
        mixture_(runs_of(options), options.seed) {}

  std::uint64_t samples_per_step() const override {
    return shape_.lanes * shape_.micro_batches * shape_.rows;
  }

  Piece at(std::uint64_t position, const Place& place) const override {
    check_place(shape_, place);
    const std::uint64_t number = position / shape_.rows + micro_batch_number(shape_, place);
    const auto run = mixture_.at(number);
    const std::uint64_t spare = parts_[run.part].samples % shape_.rows;
    const std::uint64_t first = philox64(seed_, kFirstSampleStream - run.part, run.epoch) % (spare + 1);
    return {run.part,
            first + run.index * shape_.rows + place.row,
            {0, features_},
            number * shape_.rows + place.row};
  }

 private:
  static constexpr std::uint64_t kFirstSampleStream =
      ~std::uint64_t{0};  // counted down, away from the mixture's

  static std::vector<MixturePart> runs_of(const SamplerOptions& options) {
    std::vector<MixturePart> runs = options.parts;
    for (MixturePart& part : runs) part.samples /= options.shape.rows;
    return runs;
  }

  StepShape shape_;
  std::size_t features_;
  std::uint64_t seed_;
  std::vector<MixturePart> parts_;
  Mixture mixture_;
};

class ByFeature : public Sampler {
 public:
  explicit ByFeature(const SamplerOptions& options)
      : shape_(options.shape), features_(options.features), mixture_(options.parts, options.seed) {
    if (features_ < shape_.lanes) {
      throw UsageError(fmt::format("{} features cannot be cut into {} lanes: choose at most as many lanes",
                                   features_, shape_.lanes));
    }
  }

  std::uint64_t samples_per_step() const override { return shape_.micro_batches * shape_.rows; }

  Piece at(std::uint64_t position, const Place& place) const override {
    check_place(shape_, place);
    const std::uint64_t number = position + place.micro_batch * shape_.rows + place.row;
    const auto sample = mixture_.at(number);
    return {sample.part, sample.index, chunk_range(features_, shape_.lanes, place.lane), number};
  }

 private:
  StepShape shape_;
  std::size_t features_;
  Mixture mixture_;
};

template <typename Kind>
std::unique_ptr<Sampler> make(const SamplerOptions& options) {
  const StepShape& shape = options.shape;
  if (shape.lanes == 0 || shape.micro_batches == 0 || shape.rows == 0) {
    throw UsageError("a step needs at least one lane, one micro-batch and one row");
  }
  return std::make_unique<Kind>(options);
}

}  // namespace

std::unique_ptr<Sampler> shard_by_sample(const SamplerOptions& options) {
  return make<BySample>(options);
}

std::unique_ptr<Sampler> shard_by_batch(const SamplerOptions& options) {
  return make<ByBatch>(options);
}

std::unique_ptr<Sampler> shard_by_feature(const SamplerOptions& options) {
  return make<ByFeature>(options);
}

}  // namespace lockstep::data
