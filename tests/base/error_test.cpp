// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

CommFailure failure() {
  return {.operation = "all_reduce",
          .sequence = 118,
          .group = "dp",
          .peer = 3,
          .done_bytes = 4096,
          .total_bytes = 65536,
          .waited = 30s};
}

TEST(Timeout, NamesOperationGroupPeerProgressAndTime) {
  EXPECT_STREQ(Timeout(failure()).what(),
               "all_reduce #118 on dp: rank 3 silent for 30.0 s after 4096 of 65536 bytes");
}

TEST(Timeout, ShowsPartsOfASecond) {
  CommFailure short_wait = failure();
  short_wait.waited = 250ms;
  EXPECT_THAT(Timeout(short_wait).what(), HasSubstr("silent for 0.2 s"));
}

TEST(Timeout, SaysNothingOfBytesWhereThereAreNone) {
  CommFailure in_a_barrier = failure();
  in_a_barrier.done_bytes = in_a_barrier.total_bytes = 0;
  EXPECT_STREQ(Timeout(in_a_barrier).what(), "all_reduce #118 on dp: rank 3 silent for 30.0 s");
}

TEST(PeerLost, NamesOperationGroupPeerProgressAndTime) {
  EXPECT_STREQ(
      PeerLost(failure()).what(),
      "all_reduce #118 on dp: rank 3 is gone (its process ended or its connection closed) after 4096 "
      "of 65536 bytes and 30.0 s of waiting");
}

TEST(PeerLost, LeavesOutWhatIsNotKnown) {
  CommFailure unknown = failure();
  unknown.done_bytes = unknown.total_bytes = 0;
  EXPECT_THAT(PeerLost(unknown).what(), EndsWith("connection closed) after 30.0 s of waiting"));
  unknown.waited = 0s;
  EXPECT_THAT(PeerLost(unknown).what(),
              EndsWith("rank 3 is gone (its process ended or its connection closed)"));
  unknown.total_bytes = 65536;
  EXPECT_THAT(PeerLost(unknown).what(), EndsWith("connection closed) after 0 of 65536 bytes"));
}

template <typename Kind, typename Base>
void expect_caught_as() {
  try {
    throw Kind("words");
  } catch (const Base& error) {
    EXPECT_STREQ(error.what(), "words");
  }
}

TEST(Errors, AreCaughtByKind) {
  expect_caught_as<PeerLost, CommError>();
  expect_caught_as<Timeout, CommError>();
  expect_caught_as<Aborted, CommError>();
  expect_caught_as<ContractMismatch, CommError>();
  expect_caught_as<AuthenticationError, CommError>();
  expect_caught_as<CommError, Error>();
  expect_caught_as<UsageError, Error>();
  expect_caught_as<DataError, Error>();
  expect_caught_as<InternalError, Error>();
  static_assert(!std::is_base_of_v<CommError, UsageError>);
  static_assert(!std::is_base_of_v<UsageError, DataError>);
}

std::string message_of_check(bool holds, const std::string& words) {
  try {
    LOCKSTEP_CHECK(holds, words);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Check, PassesSilentlyAndFailsWithItsPlace) {
  EXPECT_EQ(message_of_check(true, "words"), "");
  const std::string message = message_of_check(false, "words");
  EXPECT_THAT(message, StartsWith("internal error at "));
  EXPECT_THAT(message, HasSubstr("error_test.cpp:"));
  EXPECT_THAT(message, EndsWith(": holds does not hold: words; please report this"));
}

TEST(Check, NeedsNoMessage) {
  try {
    LOCKSTEP_CHECK(1 + 1 == 3);
    FAIL() << "passed";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), EndsWith(": 1 + 1 == 3 does not hold; please report this"));
  }
}

}  // namespace
}  // namespace lockstep
