// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/common_instant.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/ranks.h"

namespace lockstep::train {
namespace {

using std::chrono::nanoseconds;

Clock::time_point at(std::int64_t time_ns) {
  return Clock::time_point(nanoseconds(time_ns));
}

// By rank.
std::vector<CommonInstant> instants_of(const std::vector<int>& hosts) {
  std::vector<CommonInstant> instants(hosts.size());
  test::run_ranks(transport::make_loopback(static_cast<int>(hosts.size())), {.hosts = hosts},
                  [&](const comm::Communicator& world) {
                    instants[static_cast<std::size_t>(world.rank())] = common_instant(world);
                  });
  return instants;
}

TEST(ClockOffset, IsThatOfTheSoonestAnswer) {
  const std::vector<ClockQuestion> questions = {
      {at(100), at(5300), at(400)}, {at(1000), at(6010), at(1020)}, {at(2000), at(7040), at(2100)}};
  const ClockOffset offset = clock_offset(questions);
  EXPECT_EQ(offset.ahead, nanoseconds(5000));
  EXPECT_EQ(offset.error, nanoseconds(10));
}

// The answer may have been given at any time between question and hearing.
TEST(ClockOffset, IsWithinItsError) {
  for (const std::int64_t behind : {-700, 0, 900}) {
    for (std::int64_t answered = 100; answered <= 161; ++answered) {
      const std::vector<ClockQuestion> questions = {{at(100), at(answered - behind), at(161)}};
      const ClockOffset offset = clock_offset(questions);
      EXPECT_LE(std::abs((offset.ahead + nanoseconds(behind)).count()), offset.error.count() + 1);
    }
  }
}

TEST(CommonInstant, IsExactOnOneHost) {
  const auto before = Clock::now();
  for (const CommonInstant& instant : instants_of({0, 0, 0})) {
    EXPECT_GE(instant.here, before);
    EXPECT_LE(instant.here, Clock::now());
    EXPECT_EQ(instant.error, nanoseconds(0));
  }
  const std::vector<CommonInstant> all = instants_of({0, 0, 0});
  EXPECT_EQ(all[1].here, all[0].here);
  EXPECT_EQ(all[2].here, all[0].here);
}

// The hosts are one in truth, so the ranks' clocks are one: what is found beside that is the error.
TEST(CommonInstant, IsWithinItsErrorOnOtherHostsAndTheSameOnEachOfThem) {
  const std::vector<CommonInstant> all = instants_of({0, 1, 1, 0, 2});
  EXPECT_EQ(all[3].here, all[0].here);
  EXPECT_EQ(all[3].error, nanoseconds(0));
  EXPECT_EQ(all[2].here, all[1].here);
  for (const std::size_t rank : {1, 2, 4}) {
    EXPECT_GT(all[rank].error, nanoseconds(0));
    EXPECT_LE(std::abs((all[rank].here - all[0].here).count()), all[rank].error.count() + 1);
  }
}

TEST(CommonInstant, OfARankThatIsAlone) {
  const auto before = Clock::now();
  EXPECT_GE(common_instant(comm::Communicator()).here, before);
}

}  // namespace
}  // namespace lockstep::train
