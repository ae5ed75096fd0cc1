// SPDX-License-Identifier: Apache-2.0
//
// Pipeline schedules: all are proved, and their times and memory are those of docs/algorithms.md.
#include "lockstep/schedule/pipeline/pipeline.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/pipeline/message.h"
#include "lockstep/schedule/pipeline/timeline.h"

#include "tests/schedule/pipelines.h"

namespace lockstep::schedule {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr PipelineCosts kUnequal = {
    .forward = 3, .backward = 7, .backward_input = 5, .backward_weight = 2, .link = 0};

double makespan_of(const PipelineSpec& spec, const PipelineCosts& costs = {}) {
  return time_pipeline(make_pipeline(spec), costs).makespan;
}

// Of interleaved, which takes micro-batches in groups of as many as there are stages.
struct Groups {
  explicit Groups(const PipelineSpec& spec)
      : count((spec.micro_batches + spec.stages - 1) / spec.stages),
        last(spec.micro_batches - (count - 1) * spec.stages),
        missing(spec.stages - last) {}

  int count;
  int last;     // micro-batches of the last one
  int missing;  // that it has less than the others
};

// Of the first n forward passes of interleaved, if all groups were full, those that exist.
int existing_passes(const PipelineSpec& spec, int n) {
  const Groups groups(spec);
  const int before = (groups.count - 1) * spec.stages * spec.virtual_stages;
  if (n <= before) return n;
  const int rows = std::min((n - before) / spec.stages, spec.virtual_stages);
  if (rows == spec.virtual_stages) return before + rows * groups.last;
  return before + rows * groups.last + std::min((n - before) % spec.stages, groups.last);
}

TEST(Pipeline, EveryScheduleIsProved) {
  for_each_pipeline({}, [](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    const PipelineCheck check = check_pipeline(pipeline);
    ASSERT_FALSE(check.violation) << shown(spec) << ": rank " << check.violation->rank << ", entry "
                                  << check.violation->entry << ": " << check.violation->reason << "\n"
                                  << shown(pipeline);
  });
}

TEST(Pipeline, ProgramsAreTheKnownOnes) {
  EXPECT_EQ(shown(make_pipeline({PipelineSchedule::naive, 2, 2})), "F0 B0 F1 B1 \nF0 B0 F1 B1 \n");
  EXPECT_EQ(shown(make_pipeline({PipelineSchedule::gpipe, 2, 2})), "F0 F1 B0 B1 \nF0 F1 B0 B1 \n");
  EXPECT_EQ(shown(make_pipeline({PipelineSchedule::one_f_one_b, 2, 3})),
            "F0 F1 B0 F2 B1 B2 \nF0 B0 F1 B1 F2 B2 \n");
  EXPECT_EQ(shown(make_pipeline({PipelineSchedule::interleaved, 2, 2, 2})),
            "F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1 \nF0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1 \n");
  EXPECT_EQ(shown(make_pipeline({PipelineSchedule::zbh1, 2, 3})),
            "F0 F1 I0 W0 F2 I1 W1 I2 W2 \nF0 I0 F1 I1 W0 F2 I2 W1 W2 \n");
  EXPECT_EQ(shown(make_pipeline({PipelineSchedule::zbv, 1, 2})),
            "F0 F0.1 I0.1 W0.1 F1 I0 W0 F1.1 I1.1 W1.1 I1 W1 \n");
}

TEST(Pipeline, OneVirtualStageIsOneFOneB) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int micro_batches = 1; micro_batches <= 8; ++micro_batches) {
      EXPECT_EQ(make_pipeline({PipelineSchedule::interleaved, stages, micro_batches, 1}),
                make_pipeline({PipelineSchedule::one_f_one_b, stages, micro_batches}));
    }
  }
}

TEST(Pipeline, RefusesWhatDoesNotFit) {
  const auto refusal = [](const PipelineSpec& spec) -> std::string {
    try {
      make_pipeline(spec);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({PipelineSchedule::gpipe, 0, 1}), "a pipeline with 0 stages: expected from 1 to 1024");
  EXPECT_EQ(refusal({PipelineSchedule::gpipe, 1, 0}),
            "a pipeline with 0 micro-batches: expected from 1 to 65536");
  EXPECT_EQ(refusal({PipelineSchedule::interleaved, 1, 1, 65}),
            "a pipeline with 65 virtual stages: expected from 1 to 64");
  EXPECT_EQ(refusal({PipelineSchedule::one_f_one_b, 2, 2, 2}),
            "schedule 1f1b has one virtual stage per stage, not 2: choose interleaved");
  EXPECT_EQ(refusal({PipelineSchedule::zbv, 2, 2, 3}), "schedule zbv has 2 virtual stages per stage, not 3");
  EXPECT_THAT(refusal({PipelineSchedule::interleaved, 1024, 65536, 64}), HasSubstr("at most 1048576"));
  EXPECT_EQ(refusal({PipelineSchedule::zbv, 2, 2, 2}), "accepted");
  EXPECT_THROW(parse_pipeline_schedule("1b1f"), UsageError);
  for (const PipelineSchedule schedule : kPipelineSchedules) {
    EXPECT_EQ(parse_pipeline_schedule(name_of(schedule)), schedule);
  }
}

TEST(Placement, EveryPartHasOneHolder) {
  for (const PlacementShape shape : {PlacementShape::round_robin, PlacementShape::v_shape}) {
    for (int stages = 1; stages <= 5; ++stages) {
      for (int chunks = 1; chunks <= 3; ++chunks) {
        if (shape == PlacementShape::v_shape && chunks != 2) continue;
        const Placement placement{stages, chunks, shape};
        for (int part = 0; part < placement.parts(); ++part) {
          const auto [rank, chunk] = placement.holder_of(part);
          EXPECT_EQ(placement.part_of(rank, chunk), part);
          EXPECT_TRUE(rank >= 0 && rank < stages && chunk >= 0 && chunk < chunks);
        }
      }
    }
  }
  const Placement v{3, 2, PlacementShape::v_shape};
  EXPECT_EQ(v.holder_of(2), (Placement::Holder{2, 0}));
  EXPECT_EQ(v.holder_of(3), (Placement::Holder{2, 1}));
  EXPECT_EQ(v.holder_of(5), (Placement::Holder{0, 1}));
}

TEST(Placement, MessagesFollowTheModel) {
  const Placement ring{3, 2, PlacementShape::round_robin};
  // The last stage hands the outputs of its chunk 0 to chunk 1 of the first, and gets their gradients back.
  const PipelineMessage wrap{Payload::activation, 4, 2, 3, 2, 0};
  EXPECT_EQ(output_of(ring, 2, {Pass::forward, 4, 0}), wrap);
  EXPECT_EQ(input_of(ring, 0, {Pass::forward, 4, 1}), wrap);
  const PipelineMessage back{Payload::gradient, 4, 3, 2, 0, 2};
  EXPECT_EQ(output_of(ring, 0, {Pass::backward, 4, 1}), back);
  EXPECT_EQ(input_of(ring, 2, {Pass::backward_input, 4, 0}), back);
  // The ends of the model, and weight gradients.
  EXPECT_FALSE(input_of(ring, 0, {Pass::forward, 4, 0}));
  EXPECT_FALSE(output_of(ring, 0, {Pass::backward, 4, 0}));
  EXPECT_FALSE(output_of(ring, 2, {Pass::forward, 4, 1}));
  EXPECT_FALSE(input_of(ring, 2, {Pass::backward, 4, 1}));
  EXPECT_FALSE(input_of(ring, 1, {Pass::backward_weight, 4, 0}));
  EXPECT_FALSE(output_of(ring, 1, {Pass::backward_weight, 4, 0}));
  // At the tip of a V nothing leaves the rank.
  const Placement v{3, 2, PlacementShape::v_shape};
  EXPECT_EQ(output_of(v, 2, {Pass::forward, 0, 0})->to, 2);
}

// --- Time.

TEST(PipelineBubble, NaiveComputesOnOneStageAtATime) {
  for_each_pipeline({}, [](const PipelineSpec& spec) {
    if (spec.schedule != PipelineSchedule::naive) return;
    const Timeline timeline = time_pipeline(make_pipeline(spec), kUnequal);
    ASSERT_EQ(timeline.makespan, spec.micro_batches * spec.stages * 10) << shown(spec);
    ASSERT_DOUBLE_EQ(timeline.bubble, (spec.stages - 1.0) / spec.stages) << shown(spec);
  });
}

TEST(PipelineBubble, GpipeAndOneFOneB) {
  for_each_pipeline({}, [](const PipelineSpec& spec) {
    if (spec.schedule != PipelineSchedule::gpipe && spec.schedule != PipelineSchedule::one_f_one_b) return;
    const int slots = spec.micro_batches + spec.stages - 1;
    const Timeline timeline = time_pipeline(make_pipeline(spec), kUnequal);
    ASSERT_EQ(timeline.makespan, slots * 10) << shown(spec);
    ASSERT_DOUBLE_EQ(timeline.bubble, (spec.stages - 1.0) / slots) << shown(spec);
  });
}

TEST(PipelineBubble, InterleavedDividesByTheVirtualStages) {
  for_each_pipeline({}, [](const PipelineSpec& spec) {
    if (spec.schedule != PipelineSchedule::interleaved) return;
    const auto [_, p, m, v] = spec;
    const Timeline timeline = time_pipeline(make_pipeline(spec), kUnequal);
    const double full = (v * m + p - 1) * 10;
    const int lost = (v - 1) * Groups(spec).missing;
    if (m < p || lost == 0) {
      ASSERT_EQ(timeline.makespan, full + lost * 10) << shown(spec);
    } else if (v == 2) {
      ASSERT_EQ(timeline.makespan, full + lost * kUnequal.backward) << shown(spec);
    } else {
      ASSERT_GE(timeline.makespan, full + lost * kUnequal.backward) << shown(spec);
      ASSERT_LT(timeline.makespan, full + lost * 10) << shown(spec);
    }
    if (m % p != 0) return;
    ASSERT_DOUBLE_EQ(timeline.bubble, (p - 1.0) / (v * m + p - 1)) << shown(spec);
    // Idle over computing time is exactly a v-th of that of 1f1b.
    const double idle = timeline.bubble / (1 - timeline.bubble);
    ASSERT_NEAR(idle, (p - 1.0) / m / v, 1e-12) << shown(spec);
  });
}

TEST(PipelineBubble, Zbh1HasAThirdOfOneFOneB) {
  for_each_pipeline({}, [](const PipelineSpec& spec) {
    if (spec.schedule != PipelineSchedule::zbh1) return;
    const auto [_, p, m, v] = spec;
    const double makespan = makespan_of(spec);
    ASSERT_EQ(makespan, m >= p ? 3 * m + p - 1 : 2 * m + 2 * p - 1) << shown(spec);
    const double plain = makespan_of({PipelineSchedule::one_f_one_b, p, m});
    if (m < p) return;
    ASSERT_EQ(3 * (makespan - 3 * m), plain - 3 * m) << shown(spec);
  });
}

TEST(PipelineBubble, ZbvIsBusyFromItsFirstToItsLastPass) {
  for_each_pipeline({}, [](const PipelineSpec& spec) {
    if (spec.schedule != PipelineSchedule::zbv) return;
    const auto [_, p, m, v] = spec;
    const Timeline timeline = time_pipeline(make_pipeline(spec));
    ASSERT_EQ(timeline.makespan, std::max(6 * m + p - 1, 4 * m + 4 * p - 2)) << shown(spec);
    if (m >= 2 * p - 1) {
      ASSERT_EQ(timeline.inner_bubble, 0) << shown(spec);
      ASSERT_DOUBLE_EQ(timeline.bubble, (p - 1.0) / (6 * m + p - 1)) << shown(spec);
    }
  });
}

TEST(PipelineBubble, TheBetterScheduleIsNeverSlower) {
  for (int p = 1; p <= 12; ++p) {
    for (int m = 1; m <= 24; ++m) {
      const double plain = makespan_of({PipelineSchedule::one_f_one_b, p, m});
      EXPECT_LE(makespan_of({PipelineSchedule::zbh1, p, m}), plain);
      // Passes of zbv are those of half a stage.
      EXPECT_LE(makespan_of({PipelineSchedule::zbv, p, m}), 2 * plain);
      for (int v = 2; v <= 4; ++v) {
        EXPECT_LE(makespan_of({PipelineSchedule::interleaved, p, m, v}), v * plain);
      }
    }
  }
}

TEST(Timeline, LinksDelayWhatOtherRanksNeed) {
  const Pipeline pipeline = make_pipeline({PipelineSchedule::gpipe, 2, 1});
  const Timeline timeline = time_pipeline(pipeline, {.link = 0.5});
  EXPECT_EQ(timeline.spans[1][0].begin, 1.5);
  EXPECT_EQ(timeline.spans[0][1].begin, 5);
  EXPECT_EQ(timeline.makespan, 7);
  EXPECT_DOUBLE_EQ(timeline.bubble, 8.0 / 14);
  EXPECT_DOUBLE_EQ(timeline.inner_bubble, 4.0 / 14);
  // The tip of a V is one rank.
  EXPECT_EQ(time_pipeline(make_pipeline({PipelineSchedule::zbv, 1, 3}), {.link = 9}).makespan, 18);
}

TEST(Timeline, PassesOfARankFollowEachOther) {
  for_each_pipeline({4, 6, 3}, [](const PipelineSpec& spec) {
    for (const auto& spans : time_pipeline(make_pipeline(spec), {.link = 0.25}).spans) {
      for (std::size_t i = 1; i < spans.size(); ++i) {
        ASSERT_GE(spans[i].begin, spans[i - 1].end) << shown(spec);
      }
    }
  });
}

// --- Memory, in activations of chunks.

int expected_peak(const PipelineSpec& spec, Rank rank) {
  const auto [schedule, p, m, v] = spec;
  switch (schedule) {
    case PipelineSchedule::naive:
      return 1;
    case PipelineSchedule::gpipe:
      return m;
    case PipelineSchedule::one_f_one_b:
      return std::min(m, p - rank);
    case PipelineSchedule::interleaved:
      return existing_passes(spec, v == 1 ? p - rank : (v - 1) * p + 2 * (p - 1 - rank) + 1);
    case PipelineSchedule::zbh1:
      return std::min(m, p);
    case PipelineSchedule::zbv:
      return std::min({2 * m, 2 * p, m + rank + 1});
  }
  return -1;
}

TEST(PipelineMemory, IsTheFormulas) {
  for_each_pipeline({}, [](const PipelineSpec& spec) {
    const std::vector<int> peaks = check_pipeline(make_pipeline(spec)).peak_live;
    ASSERT_EQ(peaks.size(), static_cast<std::size_t>(spec.stages));
    for (Rank rank = 0; rank < spec.stages; ++rank) {
      ASSERT_EQ(peaks[static_cast<std::size_t>(rank)], expected_peak(spec, rank))
          << shown(spec) << ", rank " << rank;
    }
  });
}

TEST(PipelineMemory, ZeroBubbleSchedulesNeedNoMoreThanOneFOneB) {
  for (int p = 1; p <= 12; ++p) {
    for (int m = 1; m <= 24; ++m) {
      const int plain = std::min(m, p);  // the largest of 1f1b, on rank 0
      const auto peaks = [&](PipelineSchedule schedule) {
        return check_pipeline(make_pipeline({schedule, p, m})).peak_live;
      };
      EXPECT_THAT(peaks(PipelineSchedule::zbh1), Each(Le(plain)));
      EXPECT_THAT(peaks(PipelineSchedule::zbv), Each(Le(2 * plain)));  // of half a stage each
    }
  }
}

}  // namespace
}  // namespace lockstep::schedule
