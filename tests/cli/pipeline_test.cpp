// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train` on the stages of a pipeline, as users call it.
#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/layout_program.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using PipelineProgram = LayoutProgram;

TEST_F(PipelineProgram, StagesTrainAsOneProcessDoes) {
  const Flags common = {"--training.dtype", "bf16", "--model.dropout", "0.1"};
  const std::map<std::string, Flags> layouts = {
      {"alone", {}},
      {"stages", {"--workers", "2", "--parallelism.pipeline", "2"}},
      {"both", {"--workers", "4", "--parallelism.pipeline", "2", "--parallelism.schedule", "zbv"}}};
  for (const auto& [run, layout] : layouts) {
    Flags flags = common;
    flags.insert(flags.end(), layout.begin(), layout.end());
    const Finished finished = train_as(run, flags);
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
    EXPECT_TRUE(steps_of(run).at(1).contains("validation/loss"));
    expect_same_runs(run, "alone");
    EXPECT_EQ(finished.output.find("4 workers (2 data-parallel x 2 stages of zbv)") != std::string::npos,
              run == "both");
  }
  expect_same_words("stages", "alone");
}

// The same flags on any number of workers; elastic ones are told what the first of them have settled.
TEST_F(PipelineProgram, StagesThatAreLeftToTheWorkersMayBeOne) {
  ASSERT_EQ(train_as("alone", {}).exit_code, 0);
  const Flags stages = {"--parallelism.pipeline", "-1", "--parallelism.schedule", "zbv"};
  for (const auto& [run, more] : {std::pair{"one", Flags{}},
                                  {"elastic", Flags{"--workers", "2", "--parallelism.data", "2"}},
                                  {"two", Flags{"--workers", "2"}}}) {
    Flags flags = stages;
    flags.insert(flags.end(), more.begin(), more.end());
    const Finished finished = train_as(run, flags);
    ASSERT_EQ(finished.exit_code, 0) << run << ": " << finished.error_output;
    expect_same_runs(run, "alone");
  }
}

TEST_F(PipelineProgram, StagesBeginWithASavedModel) {
  ASSERT_EQ(train_as("first", {"--training.steps", "2"}).exit_code, 0);
  const Flags further = {"--checkpoint.initial_load_path", folder_.path("first") + "/model",
                         "--training.steps", "2"};
  ASSERT_EQ(train_as("alone", further).exit_code, 0);
  EXPECT_NE(steps_of("alone").front().at("loss"), steps_of("first").front().at("loss"));
  Flags on_stages = further;
  on_stages.insert(on_stages.end(), {"--workers", "2", "--parallelism.pipeline", "2"});
  const Finished finished = train_as("stages", on_stages);
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  expect_same_runs("stages", "alone");
}

// The head is tied: a stage that would update its copy, or wait for one that is not sent, would show.
TEST_F(PipelineProgram, StagesSkipTheStepsThatOneProcessSkips) {
  const Flags large_scale = {
      "--training.dtype",  "fp16", "--training.initial_loss_scale", "1e8", "--training.steps", "8",
      "--validation.freq", "0"};
  ASSERT_EQ(train_as("alone", large_scale).exit_code, 0);
  const std::vector<nlohmann::json> steps = steps_of("alone");
  EXPECT_TRUE(steps.front().contains("skipped"));
  EXPECT_FALSE(steps.back().contains("skipped"));
  Flags flags = large_scale;
  flags.insert(flags.end(),
               {"--workers", "2", "--parallelism.pipeline", "2", "--parallelism.schedule", "zbh1"});
  const Finished finished = train_as("stages", flags);
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("step 1 skipped: the gradient of "));
  expect_same_runs("stages", "alone");
}

TEST_F(PipelineProgram, TracesHaveTheActionsOfTheirStage) {
  ASSERT_EQ(train_as("traced", {"--workers", "2", "--parallelism.pipeline", "2", "--parallelism.part_blocks",
                                "[3, 1]", "--metrics.enable_trace", "true", "--validation.freq", "0"})
                .exit_code,
            0);
  std::map<int, std::map<std::string, int>> seen;  // by rank
  for (const nlohmann::json& event : trace_of("traced")) {
    if (event.at("ph") != "X" || event.at("cat") == "pass") continue;
    const std::string name = event.at("name");
    ++seen[event.at("pid")][name.substr(0, name.find_first_of(" ,"))];
  }
  const int passes = 4 * 4 * 2;  // steps, lanes, micro-batches
  std::map<std::string, int>& first = seen[0];
  EXPECT_EQ(first["forward"], 3 * passes);
  EXPECT_EQ(first["backward"], 3 * passes);
  EXPECT_EQ(first["send_activation"], passes);
  EXPECT_EQ(first["receive_gradient"], passes);
  EXPECT_EQ(first["loss"], 0);
  std::map<std::string, int>& last = seen[1];
  EXPECT_EQ(last["forward"], passes);
  EXPECT_EQ(last["receive_activation"], passes);
  EXPECT_EQ(last["loss"], passes);
  EXPECT_EQ(last["send_gradient"], passes);
  EXPECT_EQ(last["send_head_gradient"], 4 * 4) << "steps, lanes";
}

// When something began and ended, in microseconds.
using Span = std::pair<double, double>;
constexpr double kRounding = 0.001;

// What a viewer shows of a trace.
struct ShownTrace {
  explicit ShownTrace(const nlohmann::json& events) {
    for (const nlohmann::json& event : events) {
      const int rank = event.at("pid");
      if (event.at("name") == "process_name") names[rank] = event.at("args").at("name");
      if (event.at("name") == "process_sort_index") places[rank] = event.at("args").at("sort_index");
      if (event.at("ph") != "X") continue;
      const double begin = event.at("ts");
      threads[{rank, event.at("tid")}].emplace_back(begin, begin + event.at("dur").get<double>());
      if (event.at("cat") == "pass") passes.push_back(event);
    }
  }

  std::map<int, std::string> names;  // of ranks
  std::map<int, int> places;         // likewise
  std::map<std::pair<int, int>, std::vector<Span>> threads;
  std::vector<nlohmann::json> passes;
};

void expect_one_thing_at_a_time(std::vector<Span> spans) {
  std::ranges::sort(spans);
  for (std::size_t i = 1; i < spans.size(); ++i) {
    EXPECT_GE(spans[i].first, spans[i - 1].second - kRounding);
  }
}

// In two pipelines, of even and of odd ranks.
void expect_parts_after_each_other(const std::vector<nlohmann::json>& passes) {
  std::map<std::tuple<int, int, int, int>, Span> forward;  // by pipeline, step, micro-batch, part
  for (const nlohmann::json& pass : passes) {
    if (!pass.at("name").get<std::string>().starts_with("forward")) continue;
    const nlohmann::json& details = pass.at("args");
    const double begin = pass.at("ts");
    forward[{pass.at("pid").get<int>() % 2, details.at("step"), details.at("micro_batch"),
             details.at("part")}] = {begin, begin + pass.at("dur").get<double>()};
  }
  for (const auto& [place, span] : forward) {
    const auto& [pipeline, step, micro_batch, part] = place;
    if (part == 0) continue;
    const auto before = forward.find({pipeline, step, micro_batch, part - 1});
    ASSERT_NE(before, forward.end());
    EXPECT_GE(span.first, before->second.second - kRounding)
        << "step " << step << ", micro-batch " << micro_batch << ", part " << part;
  }
}

TEST_F(PipelineProgram, TheTraceIsAGanttOfTheStages) {
  using Case = std::tuple<const char*, int, std::string>;
  for (const auto& [schedule, chunks, predicted] : {Case{"1f1b", 1, "20.0"}, {"zbv", 2, "4.0"}}) {
    const Finished finished =
        train_as(schedule, {"--workers", "4", "--parallelism.pipeline", "2", "--parallelism.schedule",
                            schedule, "--metrics.enable_trace", "true", "--validation.freq", "0"});
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
    EXPECT_THAT(finished.output,
                HasSubstr("wrote " + trace_file_of(schedule) + ": ui.perfetto.dev shows it\n"));
    const ShownTrace trace(trace_of(schedule));
    EXPECT_EQ(
        trace.names,
        (std::map<int, std::string>{
            {0, "stage 0, rank 0"}, {1, "stage 0, rank 1"}, {2, "stage 1, rank 2"}, {3, "stage 1, rank 3"}}));
    EXPECT_EQ(trace.places, (std::map<int, int>{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
    std::map<std::string, int> passes;
    for (const nlohmann::json& pass : trace.passes) {
      const std::string name = pass.at("name");
      const std::string kind = name.substr(0, name.find(' '));
      const nlohmann::json& details = pass.at("args");
      EXPECT_EQ(name, kind + " micro-batch " + details.at("micro_batch").dump() +
                          (chunks > 1 ? ", chunk " + details.at("chunk").dump() : ""));
      EXPECT_EQ(details.at("stage"), pass.at("pid").get<int>() / 2);
      ++passes[kind];
    }
    const int all = 4 * 8 * 2 * chunks;  // steps, micro-batches, stages, chunks
    EXPECT_EQ(passes["forward"], all);
    EXPECT_EQ(passes["backward"] + passes["weight-gradient"], all);
    EXPECT_EQ(passes["input-gradient"], passes["weight-gradient"]);
    EXPECT_EQ(passes["weight-gradient"] > 0, chunks > 1);
    EXPECT_EQ(trace.threads.size(), 2 * 4U);
    for (const auto& [thread, spans] : trace.threads) expect_one_thing_at_a_time(spans);
    expect_parts_after_each_other(trace.passes);
    const Finished told = run_program({"trace", trace_file_of(schedule)});
    EXPECT_THAT(told.output, HasSubstr("2 stages, 4 micro-batches, 3 steps\n")) << told.error_output;
    EXPECT_THAT(told.output, ContainsRegex("bubble [0-9.]+ % \\(predicted " + predicted + " %\\)\n$"));
  }
}

TEST_F(PipelineProgram, MistakesGetOneSentenceBeforeAnythingIsStarted) {
  const std::string two = folder_.write("two.csv", "F0,F1,B0,B1\nF0,B0,F1,B1\n");
  const std::string stuck = folder_.write("stuck.csv", "F0,B0,F1,B1\nF0,F1,B0,B1\n");
  const std::string missing = folder_.path("missing.csv");
  struct Mistake {
    std::string workers;
    std::string stages;
    std::string key;
    std::string value;
    std::string sentence;
  };
  const std::string blocks = "blocks (embedding and last norm are two of them)";
  for (const Mistake& mistake : {
           Mistake{"5", "5", "schedule", "1f1b",
                   "parallelism.pipeline = 5 with 1f1b makes 5 parts, but the model has only 4 " + blocks +
                       " to share out; use at most 4 stages"},
           {"3", "2", "schedule", "1f1b",
            "flag --parallelism.pipeline: a mesh of pipeline 2 x data -1 x tensor 1 cannot be filled by 3 "
            "workers; start 2 or 4 workers, "
            "or "
            "set pipeline to 3, or set pipeline to 1"},
           {"2", "2", "part_blocks", "[1, 2]",
            "parallelism.part_blocks gives 3 blocks to 2 parts, but the model has 4 " + blocks +
                " and the pipeline 2 parts"},
           {"2", "2", "virtual_stages", "2",
            "schedule 1f1b has one virtual stage per stage, not 2: choose interleaved"},
           {"2", "2", "schedule", "1fb1", "unknown pipeline schedule '1fb1': did you mean '1f1b'?"},
           {"2", "2", "schedule", stuck,
            stuck +
                ": stage 0, pass 2 (B0): deadlock: waits for the gradient of micro-batch 0 for part 0 from "
                "rank 1, which itself waits before F1"},
           {"4", "4", "schedule", two, two + " is a schedule of 2 stages, but parallelism.pipeline = 4"},
           {"2", "2", "schedule", two,
            two + " is a schedule of 2 micro-batches, but a worker has 8 in a step (its lanes x "
                  "training.global_batch_size / (lanes x training.micro_batch_size))"},
           {"2", "2", "schedule", missing,
            "parallelism.schedule names the file " + missing +
                ", which is not there; `lockstep schedule show --csv` writes one"},
       }) {
    expect_refusal(train_as("refused", {"--workers", mistake.workers, "--parallelism.pipeline",
                                        mistake.stages, "--parallelism." + mistake.key, mistake.value}),
                   2, "lockstep: " + mistake.sentence + "\n");
    EXPECT_FALSE(std::filesystem::exists(folder_.path("refused"))) << mistake.sentence;
  }
}

TEST_F(PipelineProgram, AScheduleThatDiffersBetweenHostsIsTold) {
  const std::map<std::string, std::string> schedules = {{"0", "F0,F1,B0,B1\nF0,F1,B0,B1\n"},
                                                        {"1", "F0,F1,B0,B1\nF0,B0,F1,B1\n"}};
  for (const auto& [rank, schedule] : schedules) {
    std::filesystem::create_directory(folder_.path("host" + rank));
    folder_.write("host" + rank + "/mine.csv", schedule);
  }
  const Finished finished =
      run_shell("\"$LOCKSTEP\" launch -n 2 -- sh -c 'cd " + folder_.path("host") +
                "$RANK && exec \"$LOCKSTEP\" train " + run_ +
                " --parallelism.pipeline 2 --parallelism.schedule mine.csv --training.global_batch_size 4 "
                "--parallelism.lanes 2 --job.dump_folder " +
                folder_.path("apart") + "'");
  EXPECT_EQ(finished.exit_code, 2) << finished.error_output;
  EXPECT_THAT(finished.error_output,
              HasSubstr("lockstep: rank 1 reads another schedule than rank 0: mine.csv must have the same "
                        "contents on all hosts\n"));
}

TEST_F(PipelineProgram, AWorkerThatIsKilledEndsTheRun) {
  const Finished finished = signal_the_last_worker(
      {"--workers", "4", "--parallelism.pipeline", "2", "--metrics.enable_trace", "true"}, "killed", "KILL");
  EXPECT_EQ(finished.exit_code, 137) << finished.error_output;
  EXPECT_THAT(finished.error_output, ContainsRegex("rank 3 \\([^ ]+, pid "));
  EXPECT_THAT(finished.error_output, HasSubstr("was killed by signal 9"));
  Flags join = {"trace"};
  for (const int rank : {0, 1, 2, 3}) {
    join.push_back(folder_.path("killed") + "/trace/from_step_1.rank_" + std::to_string(rank) + ".json");
  }
  join.insert(join.end(), {"--output", folder_.path("joined.json")});
  EXPECT_EQ(run_program(join).exit_code, 0);
  const ShownTrace joined(nlohmann::json::parse(read_file(folder_.path("joined.json"))));
  EXPECT_EQ(joined.names.size(), 4U);
  EXPECT_EQ(joined.threads.size(), 2 * 4U);
}

// Others wait for ranks that are well and wait for the frozen one themselves, in other groups too.
TEST_F(PipelineProgram, AWorkerThatFreezesIsNamedAtTheDeadline) {
  for (const auto& [workers, stages, last] : {std::tuple{"3", "3", "2"}, {"4", "2", "3"}}) {
    const std::string run = std::string("frozen") + workers;
    const Finished finished = signal_the_last_worker(
        {"--workers", workers, "--parallelism.pipeline", stages, "--comm.train_timeout_seconds", "2"}, run,
        "STOP");
    EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
    const std::string name = std::string("rank ") + last;
    EXPECT_THAT(finished.error_output, ContainsRegex(name + " (silent|has not arrived)|waits for " + name));
    EXPECT_THAT(finished.error_output, Not(ContainsRegex(std::string("rank [^") + last + "] silent")));
  }
}

TEST_F(PipelineProgram, ACorpusThatIsCutMeanwhileIsBadData) {
  Program program({"train", run_, "--workers", "2", "--parallelism.pipeline", "2", "--training.threads", "1",
                   "--training.steps", "1000000", "--validation.freq", "0", "--job.dump_folder",
                   folder_.path("cut")});
  wait_for_a_step("cut");
  std::filesystem::resize_file(folder_.path("corpus.bin"), 10);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 65) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("corpus.bin at byte 10: the file ends here"));
  EXPECT_EQ(run_shell(workers_of("cut")).output, "");
}

}  // namespace
}  // namespace lockstep::testing
