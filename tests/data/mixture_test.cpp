// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/sampling/mixture.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep::data {
namespace {

using test::error_of;
using ::testing::HasSubstr;

std::vector<MixturePart> arbitrary_parts() {
  std::vector<MixturePart> parts;
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    parts.push_back({*rc::gen::inRange<std::uint64_t>(1, 100), *rc::gen::inRange(1, 100) / 4.0});
  }
  return parts;
}

RC_GTEST_PROP(Mixture, KeepsToTheWeightsAtEveryPosition, ()) {
  const std::vector<MixturePart> parts = arbitrary_parts();
  double total = 0;
  for (const MixturePart& part : parts) total += part.weight;
  const Mixture mixture(parts, 1);
  std::vector<double> given(parts.size());
  for (std::uint64_t position = 0; position < 500; ++position) {
    ++given[mixture.at(position).part];
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double share = parts[i].weight / total * static_cast<double>(position + 1);
      RC_ASSERT(std::abs(given[i] - share) < static_cast<double>(parts.size()) + 0.01);
    }
  }
}

// From any position on: each part gives the samples of its epochs one after another, each sample once.
RC_GTEST_PROP(Mixture, EveryPartGoesThroughItsEpochsInTurn, ()) {
  const std::vector<MixturePart> parts = arbitrary_parts();
  const Mixture mixture(parts, *rc::gen::arbitrary<std::uint64_t>());
  const auto first = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 60);
  std::map<std::size_t, std::vector<Mixture::Sample>> of_part;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto sample = mixture.at(first + i);
    RC_ASSERT(sample.index < parts[sample.part].samples);
    of_part[sample.part].push_back(sample);
  }
  for (const auto& [part, samples] : of_part) {
    std::map<std::uint64_t, std::set<std::uint64_t>> by_epoch;
    std::uint64_t before = samples.front().epoch;
    for (const Mixture::Sample& sample : samples) {
      RC_ASSERT(sample.epoch - std::exchange(before, sample.epoch) <= 1U);
      const bool is_new = by_epoch[sample.epoch].insert(sample.index).second;
      RC_ASSERT(is_new);
    }
    for (const auto& [epoch, indices] : by_epoch) {
      const bool inner = epoch != samples.front().epoch && epoch != samples.back().epoch;
      RC_ASSERT(!inner || indices.size() == parts[part].samples);
    }
  }
}

TEST(Mixture, APositionBeyondAllSamplesIsFine) {
  const Mixture mixture({{3, 1.0}, {5, 2.0}}, 0);
  EXPECT_LT(mixture.at(~std::uint64_t{0} - 1).index, 5U);
}

TEST(Mixture, RefusesWhatCannotBeMixed) {
  const auto message = [](const std::vector<MixturePart>& parts) {
    return error_of<UsageError>([&] { Mixture(parts, 0); });
  };
  EXPECT_THAT(message({}), HasSubstr("no corpus"));
  EXPECT_THAT(message({{5, 1.0}, {5, 0.0}}), HasSubstr("corpus 2 has weight 0"));
  EXPECT_THAT(message({{5, -1.0}}), HasSubstr("weight -1"));
  EXPECT_THAT(message({{5, std::numeric_limits<double>::infinity()}}), HasSubstr("weight inf"));
  EXPECT_THAT(message({{5, std::numeric_limits<double>::quiet_NaN()}}), HasSubstr("weight nan"));
  EXPECT_THAT(message({{0, 1.0}}), HasSubstr("shorter than one sample"));
  EXPECT_THAT(message({{5, 1.0}, {5, 1e-9}}), HasSubstr("too small"));
}

}  // namespace
}  // namespace lockstep::data
