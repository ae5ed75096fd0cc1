// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/chaos/duration.h"
#include "lockstep/cli/chaos/plan.h"

namespace lockstep::cli {
namespace {

PlanOptions many_of(std::vector<FaultKind> kinds) {
  return {.seed = 7, .duration_s = 20'000, .workers = 4, .mtbf_s = 20, .kinds = std::move(kinds)};
}

TEST(ChaosPlan, IsTheSameForTheSameSeed) {
  PlanOptions options = many_of({FaultKind::kill, FaultKind::stop});
  const auto plan = plan_faults(options);
  EXPECT_EQ(plan, plan_faults(options));
  options.seed = 8;
  EXPECT_NE(plan, plan_faults(options));
}

TEST(ChaosPlan, FaultsComeAsOftenAsAskedFor) {
  const auto plan = plan_faults(many_of({FaultKind::kill}));
  // A thousand are expected; the deviation is about 32.
  EXPECT_GT(plan.size(), 850U);
  EXPECT_LT(plan.size(), 1150U);
  EXPECT_TRUE(std::ranges::is_sorted(plan, {}, &Fault::at_s));
  EXPECT_GT(plan.front().at_s, 0);
  EXPECT_LT(plan.back().at_s, 20'000);
}

TEST(ChaosPlan, HasAllKindsAndWorkers) {
  std::set<FaultKind> kinds;
  std::set<int> workers;
  bool goes_on = false, never_does = false;
  for (const Fault& fault : plan_faults(many_of({FaultKind::kill, FaultKind::stop, FaultKind::all}))) {
    kinds.insert(fault.kind);
    workers.insert(fault.worker);
    if (fault.kind == FaultKind::stop) (fault.stopped_for_s > 0 ? goes_on : never_does) = true;
    if (fault.kind != FaultKind::stop) {
      EXPECT_EQ(fault.stopped_for_s, 0);
    }
  }
  EXPECT_EQ(kinds, (std::set{FaultKind::kill, FaultKind::stop, FaultKind::all}));
  EXPECT_EQ(workers, (std::set{0, 1, 2, 3}));
  EXPECT_TRUE(goes_on && never_does);
}

TEST(ChaosPlan, HasExactlyWhatWasCounted) {
  PlanOptions options = {.seed = 3, .duration_s = 60, .workers = 4};
  options.exactly.assign(20, FaultKind::kill);
  options.exactly.insert(options.exactly.end(), 3, FaultKind::resize);
  const auto plan = plan_faults(options);
  ASSERT_EQ(plan.size(), 23U);
  EXPECT_EQ(std::ranges::count(plan, FaultKind::resize, &Fault::kind), 3);
  EXPECT_TRUE(std::ranges::is_sorted(plan, {}, &Fault::at_s));
  EXPECT_LT(plan.back().at_s, 60);
}

TEST(ChaosPlan, KeepsTheLeastGap) {
  PlanOptions apart = many_of({FaultKind::kill});
  apart.least_gap_s = 5;
  PlanOptions counted = {.seed = 3, .duration_s = 60, .workers = 4, .least_gap_s = 2};
  counted.exactly.assign(20, FaultKind::kill);
  for (const PlanOptions& options : {apart, counted}) {
    const auto plan = plan_faults(options);
    EXPECT_LT(plan.back().at_s, options.duration_s);
    for (std::size_t i = 1; i < plan.size(); ++i) {
      EXPECT_GE(plan[i].at_s - plan[i - 1].at_s, options.least_gap_s - 1e-9);
    }
  }
  EXPECT_GT(plan_faults(apart).size(), 850U) << "the average stays";
  counted.least_gap_s = 3;
  EXPECT_THROW(plan_faults(counted), UsageError);
}

TEST(ChaosPlan, FaultsComeWithTheirShareOfTheStepsAtTheLatest) {
  constexpr double kTime = 25'000;
  const auto planned = plan_faults(many_of({FaultKind::kill}));
  for (const std::int64_t steps : {2, 7, 1000, 1'000'000}) {
    auto plan = planned;
    bound_by_steps(plan, steps, kTime);
    ASSERT_EQ(plan.size(), planned.size());
    const double step_s = kTime / static_cast<double>(steps);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      EXPECT_EQ(plan[i].at_s, planned[i].at_s);
      const double end_of_step = static_cast<double>(plan[i].by_step) * step_s;
      EXPECT_GE(end_of_step, plan[i].at_s) << "a run as fast as expected has all faults at their times";
      EXPECT_LE(end_of_step, plan[i].at_s + step_s * 1.001);
      EXPECT_LE(plan[i].by_step, steps) << "the last ones, too, come before its end";
    }
  }
}

TEST(ChaosPlan, WithoutKindsIsEmpty) {
  EXPECT_TRUE(plan_faults(many_of({})).empty());
}

TEST(ChaosDuration, HasUnits) {
  EXPECT_DOUBLE_EQ(parse_duration("--for", "500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_duration("--for", "20s"), 20);
  EXPECT_DOUBLE_EQ(parse_duration("--for", "90"), 90);
  EXPECT_DOUBLE_EQ(parse_duration("--for", "1.5m"), 90);
  EXPECT_DOUBLE_EQ(parse_duration("--for", "2h"), 7200);
  for (const char* text : {"", "s", "20x", "-1s", "0s", "1e400s", "nan", "inf", "20 s", "99999h", "1s2"}) {
    EXPECT_THROW(parse_duration("--for", text), UsageError) << text;
  }
}

}  // namespace
}  // namespace lockstep::cli
