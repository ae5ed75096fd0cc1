// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/sampling/sampler.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

SamplerOptions arbitrary_options() {
  SamplerOptions options;
  options.parts = {{*rc::gen::inRange<std::uint64_t>(8, 500), 1.0}};
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.shape = {std::uint64_t{1} << *rc::gen::inRange(0, 4), *rc::gen::inRange<std::uint64_t>(1, 4),
                   *rc::gen::inRange<std::uint64_t>(1, 8)};
  options.features = *rc::gen::inRange<std::size_t>(options.shape.lanes, 40);
  return options;
}

template <typename Visit>
void for_each_place(const StepShape& shape, Visit&& visit) {
  for (std::uint64_t lane = 0; lane < shape.lanes; ++lane) {
    for (std::uint64_t micro = 0; micro < shape.micro_batches; ++micro) {
      for (std::uint64_t row = 0; row < shape.rows; ++row) visit(Place{lane, micro, row});
    }
  }
}

// How often each sample was drawn in the first `steps` steps.
std::map<std::uint64_t, int> draw(const Sampler& sampler, const StepShape& shape, std::uint64_t steps) {
  std::map<std::uint64_t, int> times;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for_each_place(shape, [&](const Place& place) {
      ++times[sampler.at(step * sampler.samples_per_step(), place).sample];
    });
  }
  return times;
}

RC_GTEST_PROP(ShardBySample, NothingComesTwiceBeforeEverythingCameOnce, ()) {
  const SamplerOptions options = arbitrary_options();
  const auto sampler = shard_by_sample(options);
  const std::uint64_t count = options.parts[0].samples;
  const std::uint64_t steps = 2 * count / sampler->samples_per_step() + 1;
  const auto times = draw(*sampler, options.shape, steps);
  const std::uint64_t epochs = steps * sampler->samples_per_step() / count;
  for (std::uint64_t sample = 0; sample < count; ++sample) {
    const auto found = times.find(sample);
    const int n = found == times.end() ? 0 : found->second;
    RC_ASSERT(n >= static_cast<int>(epochs) && n <= static_cast<int>(epochs) + 1);
  }
}

// Fewer lanes with more micro-batches draw the same samples in the same steps: the position means the same to
// both.
RC_GTEST_PROP(ShardBySample, ThePositionDoesNotDependOnTheLanes, ()) {
  SamplerOptions wide = arbitrary_options();
  wide.shape = {8, 1, 3};
  SamplerOptions narrow = wide;
  narrow.shape = {2, 4, 3};
  const auto position = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto drawn = [&](const SamplerOptions& options) {
    std::multiset<std::uint64_t> samples;
    const auto sampler = shard_by_sample(options);
    for_each_place(options.shape,
                   [&](const Place& place) { samples.insert(sampler->at(position, place).sample); });
    return samples;
  };
  RC_ASSERT(drawn(wide) == drawn(narrow));
}

RC_GTEST_PROP(ShardByBatch, AMicroBatchIsOneStretch, ()) {
  const SamplerOptions options = arbitrary_options();
  const auto sampler = shard_by_batch(options);
  const auto position = sampler->samples_per_step() * *rc::gen::inRange<std::uint64_t>(0, 1000);
  for_each_place(options.shape, [&](const Place& place) {
    const Piece piece = sampler->at(position, place);
    const Piece first = sampler->at(position, {place.lane, place.micro_batch, 0});
    RC_ASSERT(piece.sample == first.sample + place.row);
    RC_ASSERT(piece.sample < options.parts[0].samples);
  });
}

TEST(ShardByBatch, TheRestOfAnEpochComesInLaterEpochs) {
  SamplerOptions options{.parts = {{11, 1.0}}, .seed = 5, .shape = {2, 1, 4}, .features = 1};
  const auto times = draw(*shard_by_batch(options), options.shape, 60);
  EXPECT_EQ(times.size(), 11U);
}

RC_GTEST_PROP(ShardByFeature, LanesShareSamplesAndDivideColumns, ()) {
  const SamplerOptions options = arbitrary_options();
  const auto sampler = shard_by_feature(options);
  const auto position = *rc::gen::inRange<std::uint64_t>(0, 10000);
  for (std::uint64_t micro = 0; micro < options.shape.micro_batches; ++micro) {
    for (std::uint64_t row = 0; row < options.shape.rows; ++row) {
      std::size_t covered = 0;
      for (std::uint64_t lane = 0; lane < options.shape.lanes; ++lane) {
        const Piece piece = sampler->at(position, {lane, micro, row});
        RC_ASSERT(piece.sample == sampler->at(position, {0, micro, row}).sample);
        RC_ASSERT(piece.features.begin == covered);
        RC_ASSERT(!piece.features.empty());
        covered = piece.features.end;
      }
      RC_ASSERT(covered == options.features);
    }
  }
}

RC_GTEST_PROP(Samplers, NumberWhatARunDrawsWithoutGaps, ()) {
  const SamplerOptions options = arbitrary_options();
  for (const auto make : {shard_by_sample, shard_by_batch, shard_by_feature}) {
    const auto sampler = make(options);
    std::set<std::uint64_t> numbers;
    for (std::uint64_t position : {std::uint64_t{0}, sampler->samples_per_step()}) {
      for_each_place(options.shape,
                     [&](const Place& place) { numbers.insert(sampler->at(position, place).number); });
    }
    RC_ASSERT(numbers.size() == 2 * sampler->samples_per_step());
    RC_ASSERT(*numbers.rbegin() == numbers.size() - 1);
  }
}

TEST(Samplers, SeedsGiveDifferentOrders) {
  SamplerOptions options{.parts = {{1000, 1.0}}, .seed = 1, .shape = {4, 2, 4}, .features = 4};
  for (const auto make : {shard_by_sample, shard_by_batch, shard_by_feature}) {
    options.seed = 1;
    const auto one = make(options), same = make(options);
    options.seed = 2;
    const auto two = make(options);
    int equal = 0;
    for_each_place(options.shape, [&](const Place& place) {
      EXPECT_EQ(one->at(0, place), same->at(0, place));
      equal += one->at(0, place) == two->at(0, place);
    });
    EXPECT_LT(equal, 8);
  }
}

TEST(Samplers, RefuseImpossibleShapes) {
  SamplerOptions options{.parts = {{10, 1.0}}, .seed = 1, .shape = {4, 0, 4}, .features = 3};
  EXPECT_THROW(shard_by_sample(options), UsageError);
  options.shape = {4, 1, 11};
  EXPECT_THROW(shard_by_batch(options), UsageError);
  EXPECT_THROW(shard_by_feature(options), UsageError);
}

}  // namespace
}  // namespace lockstep::data
