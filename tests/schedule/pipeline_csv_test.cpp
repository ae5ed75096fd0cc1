// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/pipeline/csv.h"

#include "tests/schedule/pipelines.h"

namespace lockstep::schedule {
namespace {

TEST(PipelineCsv, WritesOneRowPerStageAndEmptyCellsForIdleTime) {
  EXPECT_EQ(to_csv(make_pipeline({PipelineSchedule::one_f_one_b, 2, 2})), "F0,F1,,B0,,B1\n,F0,B0,F1,B1,\n");
  EXPECT_EQ(to_csv(make_pipeline({PipelineSchedule::zbv, 1, 1})), "placement,v\nF0,F0.1,I0.1,W0.1,I0,W0\n");
}

TEST(PipelineCsv, EveryPipelineSurvivesItsText) {
  for_each_pipeline({5, 7, 3}, [](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    ASSERT_EQ(parse_pipeline_csv(to_csv(pipeline), "again"), pipeline) << shown(spec);
  });
}

TEST(PipelineCsv, LeavesIdleCellsOutOfLargeTables) {
  const Pipeline pipeline = make_pipeline({PipelineSchedule::naive, 300, 10});
  const std::string text = to_csv(pipeline);
  EXPECT_EQ(text.find(",,"), std::string::npos);
  EXPECT_EQ(parse_pipeline_csv(text, "again"), pipeline);
}

TEST(PipelineCsv, ReadsWhatPeopleWrite) {
  const Pipeline expected = make_pipeline({PipelineSchedule::one_f_one_b, 2, 2});
  EXPECT_EQ(parse_pipeline_csv("F0,F1,B0,B1\nF0,B0,F1,B1", "x"), expected);
  EXPECT_EQ(parse_pipeline_csv("F0,F1, , , B0,\t,B1,,\r\n , F0 ,B0,F1,B1\r\n", "x"), expected);
  EXPECT_EQ(parse_pipeline_csv("placement, round-robin\nF0.0,F1,B0,B1\nF00,B0,F1,B1\n", "x"), expected);
}

TEST(PipelineCsv, ErrorsNameRowAndColumn) {
  const auto refusal = [](std::string_view text) -> std::string {
    try {
      parse_pipeline_csv(text, "a.csv");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string pass =
      " is no pass: expected F, B, I or W and a micro-batch, as in F3, or W3.1 on chunk 1";
  EXPECT_EQ(refusal("F0,B0\nF0,,X0"), "a.csv: row 2, column 3: 'X0'" + pass);
  EXPECT_EQ(refusal("F"), "a.csv: row 1, column 1: 'F'" + pass);
  EXPECT_EQ(refusal("F-1"), "a.csv: row 1, column 1: 'F-1'" + pass);
  EXPECT_EQ(refusal("F0."), "a.csv: row 1, column 1: 'F0.'" + pass);
  EXPECT_EQ(refusal("F0 B0"), "a.csv: row 1, column 1: 'F0 B0'" + pass);
  EXPECT_EQ(refusal(std::string_view("F0\0", 3)), "a.csv: row 1, column 1: 'F0?'" + pass);
  EXPECT_EQ(refusal(std::string(99, 'F')), "a.csv: row 1, column 1: 'FFFFFFFFFFFFFFFFFFFF...'" + pass);
  EXPECT_EQ(refusal(",F65536"),
            "a.csv: row 1, column 2: the micro-batch of 'F65536' is too large: at most 65535 is possible");
  EXPECT_EQ(
      refusal("F99999999999999999999"),
      "a.csv: row 1, column 1: the micro-batch of 'F9999999999999999999...' is too large: at most 65535 "
      "is possible");
  EXPECT_EQ(refusal("F1.64"),
            "a.csv: row 1, column 1: the chunk of 'F1.64' is too large: at most 63 is possible");
  EXPECT_EQ(refusal("F0,B0\n\nF0"), "a.csv: row 2, column 1: the row has no passes: every stage needs some");
  EXPECT_EQ(refusal("placement,w\nF0"),
            "a.csv: row 1, column 2: the placement is 'w': expected v or round-robin");
  EXPECT_EQ(refusal(""), "a.csv: there is no row with passes");
  EXPECT_EQ(refusal("placement,v\nF0,B0"), "a.csv: a V has the chunks 0 and 1 on every stage, not one only");
}

TEST(PipelineCsv, ReadsNoMoreThanItsLimits) {
  EXPECT_THROW(parse_pipeline_csv(std::string(kMaxPipelineCsvBytes + 1, ','), "x"), UsageError);
  std::string rows;
  for (int row = 0; row < kMaxPipelineStages; ++row) rows += "F0\n";
  EXPECT_EQ(parse_pipeline_csv(rows, "x").placement.stages, kMaxPipelineStages);
  EXPECT_THROW(parse_pipeline_csv(rows + "F0\n", "x"), UsageError);
  EXPECT_THROW(parse_pipeline_csv(rows.substr(3) + "F65535\n", "x"), UsageError);
}

}  // namespace
}  // namespace lockstep::schedule
