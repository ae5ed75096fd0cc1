// SPDX-License-Identifier: Apache-2.0
//
// When faults come, with a job of which only its records are real.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/cli/chaos/disturb.h"

#include "tests/support/files.h"

namespace lockstep::cli {
namespace {

// Records a step whenever it is looked at, until it has made all of them.
class PacedJob final : public Victim {
 public:
  PacedJob(std::int64_t steps, std::int64_t first_with_workers = 0)
      : steps_(steps), first_with_workers_(first_with_workers) {}

  std::filesystem::path steps_file() const override { return folder_.path("metrics.jsonl"); }
  std::vector<pid_t> workers() const override {
    return done_ < first_with_workers_ ? std::vector<pid_t>() : std::vector{::getpid()};
  }
  void resize() override { ++resizes_; }
  void restart_launcher() override {}
  pollfd end() const override { return {-1, 0, 0}; }
  bool has_ended() override {
    if (done_ == steps_) return true;
    const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
    std::ofstream(steps_file(), std::ios::app)
        << fmt::format(R"({{"step": {}, "time": {}, "step_s": 0.001, "loss": 1.5}})", ++done_, now.count())
        << std::endl;
    return false;
  }

  int resizes() const { return resizes_; }

 private:
  test::TemporaryFolder folder_;
  std::int64_t steps_;
  std::int64_t first_with_workers_;
  std::int64_t done_ = 0;
  int resizes_ = 0;
};

// A resize, which needs no process to be done to.
Fault fault(double at_s, std::int64_t by_step) {
  return {.at_s = at_s, .by_step = by_step, .kind = FaultKind::resize};
}

std::vector<std::int64_t> steps_of(const std::vector<InjectedFault>& injected) {
  std::vector<std::int64_t> steps;
  for (const InjectedFault& one : injected) steps.push_back(one.step);
  return steps;
}

constexpr double kNever = 1000;

TEST(Disturb, AFaultComesWithItsStepWhenThatIsBeforeItsTime) {
  PacedJob job(6);
  const std::vector<Fault> plan = {fault(kNever, 3), fault(kNever, 6)};
  const auto injected = disturb(job, plan);
  EXPECT_EQ(steps_of(injected), (std::vector<std::int64_t>{3, 6}));
  EXPECT_EQ(job.resizes(), 2);
  ASSERT_EQ(injected.size(), 2U);
  EXPECT_GT(injected[0].after_s, 0);
  EXPECT_GT(injected[1].after_s, injected[0].after_s);
  EXPECT_LT(injected[1].after_s, kNever);
}

TEST(Disturb, AFaultWithoutAStepWaitsForItsTime) {
  PacedJob in_time(1000);
  EXPECT_EQ(disturb(in_time, std::vector{fault(0.05, 0)}, 0.5).size(), 1U);
  PacedJob ends_before(2);
  EXPECT_TRUE(disturb(ends_before, std::vector{fault(kNever, 0)}).empty());
  EXPECT_EQ(ends_before.resizes(), 0);
}

TEST(Disturb, AFaultIsKeptUntilThereIsAWorker) {
  PacedJob job(5, 5);
  EXPECT_EQ(steps_of(disturb(job, std::vector{fault(kNever, 2)})), std::vector<std::int64_t>{5});
}

}  // namespace
}  // namespace lockstep::cli
