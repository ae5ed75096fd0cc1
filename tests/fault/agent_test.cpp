// SPDX-License-Identifier: Apache-2.0
//
// A run on two hosts, as network namespaces: `lockstep train --listen` on the first, `lockstep agent` on the
// other, and what can happen to the link and to the agent.
#include <csignal>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/elastic_program.h"
#include "tests/support/two_hosts.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kPort = 29400;
const Environment kSecret = {{"LOCKSTEP_SECRET", "two hosts and one secret"}};

class Agent : public ElasticProgram {
 protected:
  Agent() : ElasticProgram(120) {}

  static std::string listening() { return fmt::format("{}:{}", test::TwoHosts::address(0), kPort); }

  void train_whole() { ElasticProgram::train_whole({"--training.threads", "1"}); }

  // Slow enough for others to come while it trains.
  Program start_run(const std::string& run, int step_ms, const Flags& more = {}, int workers = 2) const {
    Flags flags =
        flags_of(run, {"--workers", std::to_string(workers), "--listen", listening(), "--elastic.max_workers",
                       "4", "--elastic.beat_timeout_seconds", "2", "--training.threads", "1"});
    flags.insert(flags.end(), more.begin(), more.end());
    Environment environment = kSecret;
    environment["LOCKSTEP_FAILPOINTS"] = fmt::format("train.step.begun:sleep({})", step_ms);
    return start_on(0, flags, environment);
  }

  Program start_agent(const std::string& run, const Flags& more = {},
                      const Environment& extra = kSecret) const {
    return start_on(1, agent_flags(run, more), extra);
  }

  Program start_agent_of(int workers, const std::string& run) const {
    return start_on(1, agent_flags(run, {}, workers), kSecret);
  }

  // One that finds no regular file where the others have this one.
  Program start_agent_without(const std::string& file, const std::string& run) const {
    return start_shell(fmt::format("exec unshare --mount sh -c 'mount --bind /dev/null {} && {}'", file,
                                   command_on(1, agent_flags(run, {}))),
                       kSecret);
  }

  Flags agent_flags(const std::string& run, const Flags& more, int workers = 2) const {
    Flags flags = flags_of(run, {"--training.threads", "1"});
    flags.front() = "agent";
    flags.insert(flags.end(), {"--workers", std::to_string(workers), "--join", listening()});
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  // The launcher is killed with its workers as soon as those of the agent take part, and started again.
  void expect_to_outlive_the_launcher(const std::string& run, const Environment& of_agent) {
    train_whole();
    Program program = start_run(run, 100);
    Program agent = start_agent(run, {}, of_agent);
    wait_for(run, "4 workers went on after step");
    program.kill_alone();
    program.finish();
    Program another = start_run(run, 20, {"--resume", "auto"});
    const Finished finished = agent.finish();
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    expect_whole(run, another.finish());
    EXPECT_THAT(read_file(folder_.path(run) + "/log.txt"), Not(HasSubstr("begins anew")));
  }

  void expect_to_lose_nobody(const std::string& run, const Flags& more) {
    train_whole();
    Program program = start_run(run, 20, more);
    Program agent = start_agent(run);
    wait_for(run, "4 workers went on after step");
    const Finished finished = program.finish();
    expect_whole(run, finished);
    EXPECT_THAT(finished.output, Not(HasSubstr("2 workers went on"))) << finished.error_output;
    EXPECT_THAT(finished.error_output, Not(HasSubstr("nothing was heard of it")));
    EXPECT_EQ(agent.finish().exit_code, 0);
  }

  test::TwoHosts hosts_;

 private:
  std::string command_on(int host, const Flags& flags) const {
    return fmt::format("exec nsenter --net=/run/netns/{} \"$LOCKSTEP\" {}", hosts_.space(host),
                       fmt::join(flags, " "));
  }
  Program start_on(int host, const Flags& flags, const Environment& extra) const {
    return start_shell(command_on(host, flags), extra);
  }
};

TEST_F(Agent, AddsWorkersAndMayDieAndBeReplaced) {
  train_whole();
  Program program = start_run("agent", 100);
  {
    Program agent = start_agent("agent");
    wait_for("agent", "4 workers went on after step");
    agent.kill_alone();
  }
  wait_for("agent", "2 workers went on after step");
  Program another = start_agent("agent");
  wait_for("agent", "4 workers went on after step", 2);
  expect_whole("agent", program.finish());
  const Finished of_agent = another.finish();
  EXPECT_EQ(of_agent.exit_code, 0) << of_agent.error_output;
  for (const char* told : {"waiting for the run at {}, up to 60 s\n",
                           "found the run at {}, which tells of its steps there; workers of this host: 2\n",
                           "the run at {} has ended\n"}) {
    EXPECT_THAT(of_agent.error_output, HasSubstr(fmt::format(fmt::runtime(told), listening())));
  }
}

TEST_F(Agent, OfAKilledWorkerTellsTheRunHowItEnded) {
  train_whole();
  Program program = start_run("named", 100);
  Program agent = start_agent("named");
  wait_for("named", "4 workers went on after step");
  wait_for_more_steps("named");
  run_shell(fmt::format("kill -9 $(pgrep -P {} | head -n 1)", agent.pid()));
  const Finished finished = program.finish();
  expect_whole("named", finished);
  EXPECT_THAT(finished.error_output,
              ContainsRegex("rank [0-3] was lost (in|after) [a-z ]*step [0-9]+[a-z ]*: worker [01] "
                            "\\([^ ]+, pid [0-9]+\\) was killed by signal 9 \\(Killed\\)"));
}

// What each worker of the other host has is also here, though there is only one.
TEST_F(Agent, OfAnotherNumberOfWorkersMayDie) {
  train_whole();
  Program program = start_run("uneven", 100, {}, 1);
  Program agent = start_agent_of(3, "uneven");
  wait_for("uneven", "4 workers went on after step");
  wait_for_more_steps("uneven");
  agent.kill_alone();
  wait_for("uneven", "1 worker went on after step");
  const Finished finished = program.finish();
  EXPECT_THAT(finished.output + finished.error_output, Not(HasSubstr("begins anew")));
  expect_whole("uneven", finished);
}

// Its workers hold everything; no checkpoint was made.
TEST_F(Agent, WaitsForALauncherThatIsStartedAgain) {
  expect_to_outlive_the_launcher("again", kSecret);
}

// They have everything, and have not begun.
TEST_F(Agent, KeepsWhatItGotBeforeTheFirstStepTogether) {
  Environment slow = kSecret;
  slow["LOCKSTEP_FAILPOINTS"] = "train.healed:sleep(2000)";
  expect_to_outlive_the_launcher("before", slow);
}

TEST_F(Agent, IsLostWithTheLinkAndComesBackWithIt) {
  train_whole();
  Program program = start_run("cut", 200);
  Program agent = start_agent("cut");
  wait_for("cut", "4 workers went on after step");
  hosts_.cut();
  wait_for("cut", "2 workers went on after step");
  wait_for_more_steps("cut");
  hosts_.mend();
  wait_for("cut", "4 workers went on after step", 2);
  const Finished finished = program.finish();
  expect_whole("cut", finished);
  EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  const Finished of_agent = agent.finish();
  EXPECT_EQ(of_agent.exit_code, 0) << of_agent.error_output;
  EXPECT_THAT(of_agent.error_output, HasSubstr("it starts again"));
}

TEST_F(Agent, OverASlowLinkNobodyIsLost) {
  hosts_.limit_rate("20mbit");
  expect_to_lose_nobody("rate", {});
}

// Beats that are sent again by TCP come late: 200 ms at least, and twice as late each time.
TEST_F(Agent, OverALossyLinkNobodyIsLost) {
  hosts_.lose(5);
  expect_to_lose_nobody("lossy", {"--elastic.beat_timeout_seconds", "20"});
  EXPECT_TRUE(hosts_.has_lost_some());
}

// What nobody at the run notices.
TEST_F(Agent, SaysWhatIsWrong) {
  train_whole();
  Program program = start_run("wrong", 50);
  wait_for_steps("wrong", 1);
  const Finished other_run = start_agent("wrong", {"--training.seed", "7"}).finish();
  EXPECT_EQ(other_run.exit_code, 2);
  EXPECT_THAT(other_run.error_output, HasSubstr("is not the run of the coordinator"));
  Environment older_processor = kSecret;
  older_processor["DNNL_MAX_CPU_ISA"] = "SSE41";
  const Finished other_bits = start_agent("wrong", {}, older_processor).finish();
  EXPECT_EQ(other_bits.exit_code, 2);
  EXPECT_THAT(other_bits.error_output,
              ContainsRegex("this host computes with .* for sse41, which gives other last bits"));
  const Finished other_secret =
      start_agent("wrong", {}, {{"LOCKSTEP_SECRET", "another secret, as long"}}).finish();
  EXPECT_EQ(other_secret.exit_code, 75);
  EXPECT_THAT(other_secret.error_output, HasSubstr("secret"));
  const Finished no_secret = start_agent("wrong", {}, {}).finish();
  EXPECT_EQ(no_secret.exit_code, 2);
  EXPECT_THAT(no_secret.error_output, HasSubstr("secret"));
  expect_whole("wrong", program.finish());
}

TEST_F(Agent, WithoutTheDataEndsAlone) {
  train_whole();
  Program program = start_run("data", 50);
  wait_for_steps("data", 1);
  const Finished agent = start_agent_without(folder_.path("corpus") + ".bin", "data").finish();
  EXPECT_EQ(agent.exit_code, 2) << agent.error_output;
  EXPECT_THAT(agent.error_output, HasSubstr("corpus.bin: it is not a regular file"));
  const Finished finished = program.finish();
  expect_whole("data", finished);
  EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  EXPECT_THAT(finished.error_output, HasSubstr("another worker could not begin"));
}

}  // namespace
}  // namespace lockstep::testing
