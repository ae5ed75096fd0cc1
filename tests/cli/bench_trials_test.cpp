// SPDX-License-Identifier: Apache-2.0
//
// A check is worth something only when it can fail: what a trial is filled with must not be right already.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/cli/bench/system.h"

#include "tests/support/ranks.h"

namespace lockstep::cli {
namespace {

TrialFactory trials_of(const std::string& system, const comm::Communicator& world) {
  if (system == "lockstep") return lockstep_trials(world);
  if (system == "memcpy") return memcpy_trials(world);
  if (system == "sockets") return socket_trials(world);
  return link_trials(world);
}

class BenchTrials : public testing::TestWithParam<std::string> {};

TEST_P(BenchTrials, NeedARunAfterEveryFill) {
  test::run_ranks(2, [](const comm::Communicator& world) {
    Case what;
    what.system = GetParam();
    what.bytes = 4096;
    const std::unique_ptr<Trial> trial = trials_of(what.system, world)(what);
    const bool only_sends = world.rank() == 0 && (what.system == "ping" || what.system == "stream");
    for (const int runs : {1, 2, 3}) {
      trial->fill();
      EXPECT_EQ(trial->is_correct(), only_sends) << runs;
      trial->meet();
      trial->run_once();
      EXPECT_TRUE(trial->is_correct()) << runs;
      trial->clear();
      trial->meet();
      for (int i = 0; i < runs; ++i) trial->run_once();
      trial->meet();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Systems, BenchTrials,
                         testing::Values("lockstep", "memcpy", "sockets", "ping", "stream", "add"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lockstep::cli
