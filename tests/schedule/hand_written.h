// SPDX-License-Identifier: Apache-2.0
//
// What small programs are written with by hand, and two that are right.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"

#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {

using Programs = std::vector<Program>;

inline constexpr bool kFinish = true;

inline Source local(Slice slice, std::uint8_t merges = 0) {
  return {.from = kLocal, .slice = slice, .merges = merges};
}

inline Source message(Rank from, std::uint8_t merges = 0) {
  return {.from = from, .slice = {}, .merges = merges};
}

inline Move send(Slice slice, std::vector<Rank> to) {
  return {.sources = {local(slice)}, .into = {}, .send_to = std::move(to), .finish = false};
}

inline Move receive(Rank from, Slice into) {
  return {.sources = {message(from)}, .into = into, .send_to = {}, .finish = false};
}

inline Move reduce(std::vector<Source> sources, Slice into, std::vector<Rank> to = {}, bool finish = false) {
  return {.sources = std::move(sources), .into = into, .send_to = std::move(to), .finish = finish};
}

inline Program program(Rank rank, int world, std::vector<std::size_t> buffers, std::vector<Round> rounds,
                       std::uint32_t scratch_from = 1) {
  return {.rank = rank,
          .world = world,
          .buffer_elements = std::move(buffers),
          .scratch_from = scratch_from,
          .rounds = std::move(rounds)};
}

inline CollectiveSpec spec_of(Op op, int world, std::size_t count, Algorithm algorithm = Algorithm::ring) {
  return flat_spec(op, algorithm, world, count);
}

inline constexpr Slice kFirst = {0, {0, 4}};
inline constexpr Slice kSecond = {0, {4, 8}};
inline constexpr Slice kAll = {0, {0, 8}};
inline constexpr Slice kScratch = {1, {0, 8}};

// Each rank reduces its chunk and returns it, all in one round and in place.
inline Programs exchange_in_place() {
  return {program(0, 2, {8},
                  {{send(kSecond, {1}), reduce({local(kFirst), message(1, 1)}, kFirst, {1}, kFinish),
                    receive(1, kSecond)}}),
          program(1, 2, {8},
                  {{send(kFirst, {0}), reduce({message(0), local(kSecond, 1)}, kSecond, {0}, kFinish),
                    receive(0, kFirst)}})};
}

inline CollectiveSpec exchange_spec() {
  return spec_of(Op::all_reduce, 2, 8, Algorithm::direct);
}

// Rank 0 collects both values in scratch, adds, and sends the sum back.
inline Programs reduce_through_root() {
  return {program(0, 2, {8, 8},
                  {{receive(1, kScratch)}, {reduce({local(kAll), local(kScratch, 1)}, kAll, {1}, kFinish)}}),
          program(1, 2, {8}, {{send(kAll, {0})}, {receive(0, kAll)}})};
}

inline CollectiveSpec root_spec() {
  return spec_of(Op::all_reduce, 2, 8);
}

inline void expect_right(const CollectiveSpec& spec, const Programs& programs) {
  const CheckResult result = check_without_formulas(spec, programs);
  EXPECT_FALSE(result.violation) << result.violation->to_string();
}

inline void expect_wrong(const CollectiveSpec& spec, const Programs& programs, const std::string& reason) {
  const CheckResult result = check(spec, programs);
  ASSERT_TRUE(result.violation) << "accepted, but expected: " << reason;
  EXPECT_THAT(result.violation->to_string(), ::testing::HasSubstr(reason));
}

}  // namespace lockstep::schedule::testing
