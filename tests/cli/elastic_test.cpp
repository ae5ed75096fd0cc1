// SPDX-License-Identifier: Apache-2.0
//
// Runs that lose workers and go on by themselves, as users have them.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/file_lock.h"
#include "lockstep/transport/connect/connection.h"

#include "tests/cli/elastic_program.h"
#include "tests/cli/memory_group.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Neither a checkpoint nor the beginning was needed.
void expect_nothing_lost(const Finished& finished) {
  EXPECT_THAT(finished.output, HasSubstr("went on after step "));
  EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  EXPECT_THAT(finished.output + finished.error_output, Not(HasSubstr("were lost with what nobody else has")));
}

TEST_F(ElasticProgram, EveryWorkerCanBeKilled) {
  train_whole();
  Program program(flags_of("killed", {"--workers", "4"}));
  wait_for_steps("killed", 3);
  // All of the first ones, and some of those that came in their place.
  for (std::size_t i = 0; i < 6; ++i) {
    const std::vector<pid_t> workers = workers_of("killed");
    ASSERT_FALSE(workers.empty());
    ::kill(workers[i % 2 == 0 ? 0 : workers.size() - 1], SIGKILL);
    wait_for_more_steps("killed");
  }
  const Finished finished = program.finish();
  expect_whole("killed", finished);
  EXPECT_THAT(finished.output, HasSubstr("workers went on after step "));
  EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  EXPECT_THAT(finished.error_output, HasSubstr("was killed by signal 9 (Killed)"));
  EXPECT_THAT(finished.error_output, HasSubstr("it starts again"));
}

TEST_F(ElasticProgram, AnyShareOfTheStateSurvives) {
  train_whole();
  const Flags layouts[] = {{"--parallelism.zero_stage", "0"},
                           {"--parallelism.zero_stage", "2"},
                           {"--parallelism.zero_stage", "3"},
                           {"--parallelism.pipeline", "2"},
                           {"--parallelism.pipeline", "2", "--parallelism.zero_stage", "3"}};
  for (std::size_t i = 0; i < std::size(layouts); ++i) {
    SCOPED_TRACE(::testing::PrintToString(layouts[i]));
    const std::string run = "layout" + std::to_string(i);
    Flags flags = layouts[i];
    flags.insert(flags.end(), {"--workers", "4"});
    const Finished finished =
        run_program(flags_of(run, flags), dies_at("train.boundary", static_cast<int>(i) % 4, 3, run));
    expect_whole(run, finished);
    EXPECT_THAT(finished.output, HasSubstr("workers went on after step 3")) << "nobody has lost what it held";
  }
}

// Killed when a part of its share is updated and its journal does not say so: the first one, or a later one.
TEST_F(ElasticProgram, AnUpdateThatWasCutShortIsEndedByTheOthers) {
  train_whole();
  const Flags layouts[] = {{"--parallelism.zero_stage", "1"},
                           {"--parallelism.zero_stage", "2"},
                           {"--parallelism.zero_stage", "3"},
                           {"--parallelism.zero_stage", "1", "--parallelism.pipeline", "2"}};
  for (std::size_t i = 0; i < std::size(layouts); ++i) {
    for (const int hit : {1, 2}) {
      SCOPED_TRACE(::testing::PrintToString(layouts[i]) + ", hit " + std::to_string(hit));
      const std::string run = fmt::format("cut{}-{}", i, hit);
      Flags flags = layouts[i];
      flags.insert(flags.end(), {"--workers", i == 3 ? "4" : "2"});
      const Finished finished = run_program(
          flags_of(run, flags),
          {{"LOCKSTEP_FAILPOINTS", fmt::format("train.update.chunk@rank=1,step=3,hit={},once={}:kill", hit,
                                               folder_.path(run + ".died"))}});
      expect_whole(run, finished);
      EXPECT_THAT(finished.error_output,
                  HasSubstr("was killed by signal 9 (Killed) after step 3 was decided"));
      EXPECT_THAT(finished.output, HasSubstr("went on after step 3"));
      EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
      EXPECT_THAT(finished.error_output,
                  AllOf(Not(HasSubstr("cannot be used")), Not(HasSubstr("has no copy here"))));
    }
  }
}

// There is no moment between: each share is with two of those that are left until all have theirs again.
TEST_F(ElasticProgram, AnotherCanBeLostWhileTheRunComesTogetherAgain) {
  train_whole();
  // What the first one held is read by rank 0, and by rank 1. Other places are train_failpoint_test's.
  const std::string places[] = {"train.kept@rank=0", "train.connected@rank=2,hit=2"};
  for (std::size_t i = 0; i < std::size(places); ++i) {
    SCOPED_TRACE(places[i]);
    const std::string run = fmt::format("again{}", i);
    const std::string first = folder_.path(run + ".first");
    const std::string second = folder_.path(run + ".second");
    const Finished finished = run_program(
        flags_of(run, {"--workers", "4", "--parallelism.zero_stage", "2"}),
        {{"LOCKSTEP_FAILPOINTS", fmt::format("train.step.begun@rank=3,step=3,once={}:kill;{},once={}:kill",
                                             first, places[i], second)}});
    expect_whole(run, finished);
    EXPECT_TRUE(std::filesystem::exists(first) && std::filesystem::exists(second));
    expect_nothing_lost(finished);
  }
}

TEST_F(ElasticProgram, AllButOneCanBeKilledAtTheSameMoment) {
  train_whole();
  Program program(flags_of("one", {"--workers", "4", "--parallelism.zero_stage", "2"}));
  wait_for_steps("one", 3);
  std::vector<pid_t> workers = workers_of("one");
  ASSERT_EQ(workers.size(), 4U);
  workers.erase(workers.begin() + 2);
  // None of them can see another one go.
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const pid_t worker : workers) ::kill(worker, signal);
  }
  const Finished finished = program.finish();
  expect_whole("one", finished);
  expect_nothing_lost(finished);
}

TEST_F(ElasticProgram, AnyRankOfAReplicaCanBeLost) {
  const Flags lanes = {"--parallelism.tensor_lanes", "2"};
  train_whole(lanes);
  for (const std::string axis : {"pipeline", "tensor"}) {
    for (int rank = 0; rank < 4; ++rank) {
      SCOPED_TRACE(::testing::Message() << axis << ", rank " << rank);
      const std::string run = axis + std::to_string(rank);
      Flags flags = {"--workers", "4", "--parallelism." + axis, "2"};
      flags.insert(flags.end(), lanes.begin(), lanes.end());
      const Finished finished = run_program(flags_of(run, flags), dies_at("train.boundary", rank, 3, run));
      expect_whole(run, finished);
      EXPECT_THAT(finished.output, HasSubstr("workers went on after step 3"));
    }
  }
}

TEST_F(ElasticProgram, AFrozenWorkerIsReplaced) {
  train_whole();
  Program program(flags_of("frozen", {"--workers", "3", "--elastic.beat_timeout_seconds", "1"}));
  wait_for_steps("frozen", 3);
  ::kill(workers_of("frozen")[1], SIGSTOP);
  const Finished finished = program.finish();
  expect_whole("frozen", finished);
  EXPECT_THAT(finished.error_output, HasSubstr("nothing was heard of it for 1.0 s"));
}

// The part of a rank takes much longer than a worker may stand still.
TEST_F(ElasticProgram, ALossDoesNotWaitForASlowDisk) {
  train_whole();
  Program program(flags_of("slow", {"--workers", "3", "--checkpoint.interval", "20",
                                    "--elastic.stall_timeout_seconds", "2"}),
                  {{"LOCKSTEP_FAILPOINTS", "checkpoint.shard.block:sleep(100)"}});
  wait_for_steps("slow", 25);
  ::kill(workers_of("slow").back(), SIGKILL);
  const Finished finished = program.finish();
  expect_whole("slow", finished);
  EXPECT_THAT(finished.error_output, HasSubstr("it starts again (restart 1 of "));
  EXPECT_THAT(finished.error_output, Not(HasSubstr("has not moved")));
}

// While training goes on, which is found when the run waits for the disk; and in the last checkpoint, which
// the run waits for.
TEST_F(ElasticProgram, ADiskThatHangsIsFound) {
  train_whole();
  for (const char* interval : {"20", "0"}) {
    SCOPED_TRACE(interval);
    const std::string run = std::string("hangs") + interval;
    const std::string rule =
        fmt::format("checkpoint.shard.block@rank=1,once={}:sleep(1000000)", folder_.path(run + ".reached"));
    Program program(flags_of(run, {"--workers", "2", "--checkpoint.interval", interval,
                                   "--elastic.stall_timeout_seconds", "2"}),
                    {{"LOCKSTEP_FAILPOINTS", rule}});
    const Finished finished = program.finish();
    expect_whole(run, finished);
    EXPECT_THAT(finished.error_output, HasSubstr("it beats, but has not moved for 2."));
  }
}

TEST_F(ElasticProgram, AWorkerThatStopsForAMomentIsWaitedFor) {
  train_whole();
  Program program(flags_of("paused", {"--workers", "3"}));
  wait_for_steps("paused", 3);
  const pid_t worker = workers_of("paused")[1];
  ::kill(worker, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // much less than it may be silent
  ::kill(worker, SIGCONT);
  const Finished finished = program.finish();
  expect_whole("paused", finished);
  EXPECT_THAT(finished.error_output, Not(HasSubstr("starts again")));
}

TEST_F(ElasticProgram, MemoryThatRunsOutIsNamed) {
  train_whole();
  const MemoryGroup group;
  Program program(flags_of("starved", {"--workers", "3", "--checkpoint.interval", "5"}));
  wait_for_steps("starved", 3);
  group.take(workers_of("starved").back());
  const Finished finished = program.finish();
  expect_whole("starved", finished);
  EXPECT_THAT(finished.error_output, HasSubstr("killed by the kernel for memory"));
  EXPECT_THAT(finished.error_output, HasSubstr("it starts again"));
}

// While workers read the run file, as long as that takes.
TEST_F(ElasticProgram, ASignalBeforeThereAreWorkersIsAnswered) {
  const std::string pipe = folder_.path("pipe.toml");
  for (const char* saves : {"true", "false"}) {
    std::filesystem::remove(pipe);
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    Flags flags = flags_of("early", {"--workers", "2", "--checkpoint.enabled", saves});
    flags[1] = pipe;
    Program program(flags);
    std::ofstream(pipe) << read_file(run_);  // for the launcher
    for (int i = 0; i < 3000 && workers_of("early").size() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    program.signal(SIGINT);
    expect_refusal(program.finish(), std::string(saves) == "true" ? 75 : 130,
                   "lockstep: interrupted by SIGINT: the run was stopped before its first step; the same "
                   "command starts it again\n");
    EXPECT_TRUE(workers_of("early").empty());
    EXPECT_FALSE(std::filesystem::exists(folder_.path("early"))) << "nothing is left behind";
  }
}

TEST_F(ElasticProgram, ASignalBeforeTheFirstStepIsAnswered) {
  train_whole();
  const std::string reached = folder_.path("reached");
  Program program(flags_of("first", {"--workers", "2"}),
                  {{"LOCKSTEP_FAILPOINTS", "train.connected@rank=1,once=" + reached + ":stop"}});
  const auto stopped = [&] { return run_shell("pgrep -r T -f '[l]ockstep-trainer train.*first'").output; };
  for (int i = 0; i < 600 && stopped().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_NE(stopped(), "");
  program.signal(SIGINT);
  for (const pid_t worker : workers_of("first")) ::kill(worker, SIGINT);  // waits in the one that is stopped
  for (const pid_t worker : workers_of("first")) ::kill(worker, SIGCONT);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_THAT(finished.output,
              HasSubstr("stopped before the first step; the same command starts the run again\n"));
  EXPECT_EQ(steps_told("first"), 0U);
  EXPECT_EQ(newest_step("first"), -1);
  expect_whole("first", run_program(flags_of("first", {"--workers", "2"})));
}

TEST_F(ElasticProgram, ASecondSignalEndsAllAtOnce) {
  Program program(flags_of("twice", {"--workers", "2", "--checkpoint.interval", "5", "--training.steps",
                                     "1000000", "--elastic.beat_timeout_seconds", "600"}));
  wait_for_steps("twice", 8);
  ::kill(workers_of("twice").back(), SIGSTOP);  // there is no step that all could end after
  program.signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::seconds(1));  // not the same wish any more
  program.signal(SIGINT);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 128 + SIGINT) << finished.error_output;
  EXPECT_TRUE(workers_of("twice").empty());
}

TEST_F(ElasticProgram, WhoeverCannotEndInTimeIsKilled) {
  Program program(
      flags_of("late", {"--workers", "2", "--checkpoint.interval", "5", "--training.steps", "1000000",
                        "--elastic.beat_timeout_seconds", "600", "--elastic.grace_seconds", "1"}));
  wait_for_steps("late", 8);
  for (int i = 0; i < 300 && newest_step("late") < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(workers_of("late").back(), SIGSTOP);  // there is no step that all could end after
  program.signal(SIGTERM);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_TRUE(workers_of("late").empty());
  EXPECT_GE(newest_step("late"), 5);
}

// One that programs can write to until it hangs up.
class Terminal {
 public:
  Terminal() : keeper_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (keeper_) ::unlockpt(keeper_.get());
  }
  bool is_there() const { return static_cast<bool>(keeper_); }
  std::string path() const { return ::ptsname(keeper_.get()); }
  void hang_up() { keeper_ = {}; }

 private:
  transport::Descriptor keeper_;
};

TEST_F(ElasticProgram, ItSavesWhenItsTerminalHangsUp) {
  Terminal terminal;
  ASSERT_TRUE(terminal.is_there()) << "no terminal can be made here";
  train_whole();
  const Flags flags = flags_of("hung", {"--workers", "2"});
  Program program =
      start_shell(fmt::format("exec \"$LOCKSTEP\" {} > {} 2>&1", fmt::join(flags, " "), terminal.path()));
  wait_for_steps("hung", 3);
  terminal.hang_up();
  program.signal(SIGHUP);
  EXPECT_EQ(program.finish().exit_code, 75);
  EXPECT_GE(newest_step("hung"), 3) << "what it had is saved";
  expect_whole("hung", run_program(flags_of("hung", {"--resume", "auto"})));
}

TEST_F(ElasticProgram, ItOutlivesItsTerminalUnderNohup) {
  train_whole();
  const Flags flags = flags_of("nohup", {"--workers", "2"});
  Program program = start_shell(fmt::format("exec nohup \"$LOCKSTEP\" {}", fmt::join(flags, " ")));
  wait_for_steps("nohup", 3);
  program.signal(SIGHUP);
  for (const pid_t worker : workers_of("nohup")) ::kill(worker, SIGHUP);
  expect_whole("nohup", program.finish());
}

TEST_F(ElasticProgram, ASignalWithoutMeaningChangesNothing) {
  train_whole();
  for (const char* enabled : {"true", "false"}) {
    const std::string run = std::string("elastic_") + enabled;
    Program program(flags_of(run, {"--workers", "2", "--elastic.enabled", enabled}));
    wait_for_steps(run, 3);
    program.signal(SIGUSR2);
    for (const pid_t worker : workers_of(run)) ::kill(worker, SIGUSR2);
    const Finished finished = program.finish();
    expect_whole(run, finished);
    EXPECT_THAT(finished.error_output, Not(HasSubstr("starts again")));
  }
}

TEST_F(ElasticProgram, ManyAtOnceComeFromACheckpoint) {
  train_whole();
  Program program(flags_of("many", {"--workers", "4", "--checkpoint.interval", "5"}));
  wait_for_steps("many", 12);
  wait_for("many", "wrote ");  // one, however slow the disk is
  for (const pid_t worker : workers_of("many")) ::kill(worker, SIGKILL);
  const Finished finished = program.finish();
  expect_whole("many", finished);
  EXPECT_THAT(finished.output, HasSubstr("resumed "));
}

TEST_F(ElasticProgram, TooFewWorkersWaitAndEnd) {
  train_whole();
  Program program(flags_of("few", {"--workers", "2", "--elastic.min_workers", "2", "--elastic.max_restarts",
                                   "0", "--elastic.join_timeout_seconds", "5"}));
  wait_for_steps("few", 8);
  ::kill(workers_of("few").back(), SIGKILL);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_THAT(finished.error_output,
              AllOf(HasSubstr("was killed by signal 9 (Killed)"), HasSubstr("they wait up to 5 s for others"),
                    HasSubstr("only 1 worker there, fewer than the 2")));
  EXPECT_TRUE(workers_of("few").empty());
  EXPECT_GE(newest_step("few"), 8) << "what it held is saved";
  expect_whole("few", run_program(flags_of("few", {"--resume", "auto"})));
}

TEST_F(ElasticProgram, AWishToEndIsHeardWhileOthersAreWaitedFor) {
  train_whole();
  Program program(flags_of("wish", {"--workers", "2", "--elastic.min_workers", "2", "--elastic.max_restarts",
                                    "0", "--elastic.join_timeout_seconds", "600"}));
  wait_for_steps("wish", 8);
  ::kill(workers_of("wish").back(), SIGKILL);
  const auto is_lost = [&] { return read_file(folder_.path("wish") + "/generations.jsonl").find("lost"); };
  for (int i = 0; i < 3000 && is_lost() == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  program.signal(SIGTERM);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_GE(newest_step("wish"), 8);
  expect_whole("wish", run_program(flags_of("wish", {"--resume", "auto"})));
}

TEST_F(ElasticProgram, ASecondLauncherIsRefusedBeforeItTouchesAnything) {
  train_whole();
  Program program(flags_of("busy", {"--workers", "2"}));
  wait_for_steps("busy", 3);
  ::kill(program.pid(), SIGSTOP);  // so that the run waits for the others
  const std::string log = folder_.path("busy") + "/decisions.log";
  const std::string history = folder_.path("busy") + "/generations.jsonl";
  const auto content = [&] { return read_file(log) + read_file(history); };
  const std::string before = content();
  EXPECT_FALSE(before.empty());
  for (const Flags& more : {Flags{}, Flags{"--resume", "auto"}, Flags{"--job.overwrite", "true"}}) {
    Flags flags = {"--workers", "3"};
    flags.insert(flags.end(), more.begin(), more.end());
    expect_refusal(run_program(flags_of("busy", flags)), 73, "is writing here");
    EXPECT_EQ(content(), before);
  }
  ::kill(program.pid(), SIGCONT);
  expect_whole("busy", program.finish());
  EXPECT_FALSE(std::filesystem::exists(folder_.path("busy") + "/launcher.lock"));
}

// While its workers wait for others, none of them has the folder.
TEST_F(ElasticProgram, ARankWithoutALauncherIsRefusedWhereThereIsOne) {
  std::filesystem::create_directories(folder_.path("busy"));
  const FileLock launcher(folder_.path("busy") + "/launcher.lock");
  expect_refusal(run_program(flags_of("busy", {"--resume", "auto"})), 73, "is writing here");
}

// By a rank of its own, which has no launcher.
TEST_F(ElasticProgram, ALauncherIsRefusedWhereARunIsUnderWay) {
  ASSERT_EQ(run_program(flags_of("busy", {"--workers", "2", "--training.steps", "2"})).exit_code, 0);
  const std::string log = folder_.path("busy") + "/decisions.log";
  const std::string before = read_file(log);
  EXPECT_FALSE(before.empty());
  const FileLock rank(folder_.path("busy") + "/lock");
  expect_refusal(run_program(flags_of("busy", {"--workers", "2", "--job.overwrite", "true"})), 73,
                 "is writing here");
  EXPECT_EQ(read_file(log), before);
}

TEST_F(ElasticProgram, WhatIsNowhereElseIsComputedAnew) {
  train_whole();
  const Finished finished = run_program(flags_of("stage", {"--workers", "2", "--parallelism.pipeline", "2"}),
                                        dies_at("train.boundary", 1, 3, "stage"));
  expect_whole("stage", finished);
  EXPECT_THAT(finished.output, HasSubstr("there is no checkpoint: the run begins anew"));
}

TEST_F(ElasticProgram, AMistakeIsNotTriedAgain) {
  expect_refusal(run_program(flags_of("few", {"--workers", "2", "--elastic.min_workers", "3"})), 2,
                 "elastic.min_workers is 3, but there are at most 2 workers");
  const Finished finished =
      run_program(flags_of("wrong", {"--workers", "2", "--data.train", folder_.path("no")}));
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.error_output, Not(HasSubstr("it starts again")));
  EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
}

TEST_F(ElasticProgram, WithoutElasticityTheFirstFailureEndsTheRun) {
  Program program(flags_of("plain", {"--workers", "2", "--elastic.enabled", "false"}));
  wait_for_steps("plain", 3);
  ::kill(workers_of("plain").back(), SIGKILL);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 137) << finished.error_output;
}

}  // namespace
}  // namespace lockstep::testing
