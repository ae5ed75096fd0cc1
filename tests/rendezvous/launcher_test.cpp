// SPDX-License-Identifier: Apache-2.0
//
// Workers are real processes: shells with one short script each.
#include "lockstep/rendezvous/launcher.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/line_prefix.h"
#include "lockstep/rendezvous/worker_environment.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::error_of;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Launcher : public ::testing::Test {
 protected:
  LaunchOptions script(int workers, std::string text, std::vector<std::string> arguments = {}) const {
    LaunchOptions options;
    options.command = {"sh", "-c", std::move(text), "worker"};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    options.workers = workers;
    options.environment = process_environment();
    options.environment["FOLDER"] = folder_.path().string();
    options.grace = milliseconds(300);
    return options;
  }

  std::string read(const std::string& name) const { return folder_.read(name); }

  test::TemporaryFolder folder_;
};

TEST_F(Launcher, GivesEveryWorkerItsPlace) {
  LaunchOptions options =
      script(3,
             "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR "
             "$LOCKSTEP_RENDEZVOUS_SERVER ${LOCKSTEP_RANK:-none} > $FOLDER/$RANK; "
             "test $MASTER_PORT -gt 0 && test ${#LOCKSTEP_SECRET} -eq 64");
  options.environment["LOCKSTEP_RANK"] = "7";
  const LaunchResult result = launch(options);
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(read("0"), "0 0 3 3 0 127.0.0.1 launcher none\n");
  EXPECT_EQ(read("1"), "1 1 3 3 0 127.0.0.1 launcher none\n");
  EXPECT_EQ(read("2"), "2 2 3 3 0 127.0.0.1 launcher none\n");
}

TEST_F(Launcher, PassesArgumentsWithoutAShell) {
  const LaunchResult result = launch(
      script(1, "for a in \"$@\"; do echo \"<$a>\"; done > $FOLDER/args", {"two words", "$HOME;*", ""}));
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(read("args"), "<two words>\n<$HOME;*>\n<>\n");
}

TEST_F(Launcher, ReportsTheFirstFailureAndEndsTheOthers) {
  const LaunchResult result = launch(script(3, "test $RANK = 1 && exit 3; exec sleep 600"));
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->rank, 1);
  EXPECT_EQ(result.exit_code(), 3);
  EXPECT_THAT(result.first_failure->to_string(), HasSubstr("ended with exit code 3"));
}

TEST_F(Launcher, SaysWhatBecameOfTheOthers) {
  const auto sentence_of = [this](int workers, const std::string& text,
                                  milliseconds grace = milliseconds(300)) {
    LaunchOptions options = script(workers, text);
    options.grace = grace;
    const LaunchResult result = launch(options);
    return result.first_failure ? result.describe_failure() : "no failure";
  };
  EXPECT_THAT(sentence_of(1, "exit 3"), EndsWith("exit code 3"));
  EXPECT_THAT(sentence_of(3, "test $RANK = 1 && exit 3; exec sleep 600"),
              EndsWith("exit code 3; it was the first to fail, and the others were ended"));
  // Until rank 0 is gone, and the launcher has taken note of it.
  const std::string after_rank_0 =
      "until test -s $FOLDER/pid && ! kill -0 $(cat $FOLDER/pid) 2>/dev/null; do sleep 0.01; done; ";
  const auto rank_0_ends_with = [](int code) {
    return "test $RANK = 0 && { echo $$ > $FOLDER/pid; exit " + std::to_string(code) + "; }; ";
  };
  const milliseconds long_grace(60'000);
  EXPECT_THAT(sentence_of(2, rank_0_ends_with(0) + after_rank_0 + "exit 3", long_grace),
              EndsWith("exit code 3"));
  std::filesystem::remove(folder_.path("pid"));
  EXPECT_THAT(sentence_of(3, rank_0_ends_with(0) + after_rank_0 + "test $RANK = 1 && exit 3; exec sleep 600"),
              EndsWith("exit code 3; it was the first to fail, and those that still ran were ended"));
  std::filesystem::remove(folder_.path("pid"));
  EXPECT_THAT(sentence_of(2, rank_0_ends_with(3) + after_rank_0 + "exit 75", long_grace),
              EndsWith("exit code 3; it was the first to fail"));
  std::filesystem::remove(folder_.path("pid"));
  EXPECT_THAT(sentence_of(2, rank_0_ends_with(75) + after_rank_0 + "exit 3", long_grace),
              EndsWith("exit code 3; others had ended before it, having lost a peer"));
}

TEST_F(Launcher, ReportsASignal) {
  const LaunchResult result = launch(script(2, "test $RANK = 1 && kill -9 $$; exec sleep 600"));
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.exit_code(), 137);
  EXPECT_THAT(result.first_failure->to_string(), HasSubstr("was killed by signal 9 (Killed)"));
}

TEST_F(Launcher, KillsWorkersThatIgnoreTheRequestToEnd) {
  const LaunchResult result =
      launch(script(2, "test $RANK = 0 && exit 5; trap '' TERM; while :; do sleep 1; done"));
  EXPECT_EQ(result.exit_code(), 5);
}

TEST_F(Launcher, WhoeverLostAPeerIsNotTheCause) {
  LaunchOptions options = script(2, "test $RANK = 0 && exit 75; sleep 0.3; exit 65");
  options.grace = std::chrono::seconds(20);
  const LaunchResult result = launch(options);
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->rank, 1);
  EXPECT_EQ(result.exit_code(), 65);
}

TEST_F(Launcher, AFailureIsNotGivenTheTimeOfASignal) {
  LaunchOptions options = script(2, "test $RANK = 0 && exit 5; exec sleep 600");
  options.grace_after_signal = std::chrono::minutes(5);
  EXPECT_EQ(launch(options).exit_code(), 5);
}

TEST_F(Launcher, WorkersThatEndInTheGracePeriodAreNotSignalled) {
  LaunchOptions options = script(
      2, "test $RANK = 0 && exit 5; trap 'echo > $FOLDER/signalled' TERM; sleep 0.3; echo > $FOLDER/done");
  options.grace = std::chrono::seconds(20);
  EXPECT_EQ(launch(options).exit_code(), 5);
  EXPECT_TRUE(std::filesystem::exists(folder_.path("done")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("signalled")));
}

TEST(LikeliestCause, IsNotWhoeverNoticedItFirst) {
  const LaunchResult::Failure noticed{0, 10, {.code = 75, .signal = 0}};
  const LaunchResult::Failure failed{1, 11, {.code = 1, .signal = 0}};
  const LaunchResult::Failure killed{2, 12, {.code = 0, .signal = 11}};
  EXPECT_EQ(likeliest_cause(std::vector{noticed}).rank, 0);
  EXPECT_EQ(likeliest_cause(std::vector{noticed, failed}).rank, 1);
  EXPECT_EQ(likeliest_cause(std::vector{noticed, failed, killed}).rank, 2);
  EXPECT_EQ(likeliest_cause(std::vector{killed, noticed}).rank, 2);
}

TEST_F(Launcher, WorkersStartWithOrdinarySignalsAndNoInput) {
  const LaunchResult result = launch(script(
      1,
      "cat > $FOLDER/input; grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\t\\n' > $FOLDER/signals"));
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(read("input"), "");
  EXPECT_THAT(read("signals"), HasSubstr("SigBlk:0000000000000000"));
}

TEST_F(Launcher, PrefixesWholeLinesOfBothStreams) {
  LaunchOptions options = script(2, "echo out; echo err >&2; printf 'no newline'");
  options.prefix_output = true;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const LaunchResult result = launch(options);
  const std::string output = ::testing::internal::GetCapturedStdout();
  const std::string error_output = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.exit_code(), 0);
  for (const char* line : {"[0] out\n", "[1] out\n", "[0] no newline\n", "[1] no newline\n"}) {
    EXPECT_THAT(output, HasSubstr(line));
  }
  EXPECT_THAT(error_output, HasSubstr("[1] err\n"));
}

TEST_F(Launcher, AProcessLeftBehindDoesNotHoldTheOutputOpen) {
  LaunchOptions options = script(1, "sleep 30 & echo $! > $FOLDER/pid; echo done");
  options.prefix_output = true;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(launch(options).exit_code(), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "[0] done\n");
  ::kill(std::stoi(read("pid")), SIGKILL);
}

TEST_F(Launcher, SaysWhyAProgramCannotStart) {
  LaunchOptions options = script(2, "");
  options.command = {"no-such-program-anywhere"};
  EXPECT_THAT(error_of<UsageError>([&] { launch(options); }),
              HasSubstr("cannot start 'no-such-program-anywhere': it is in no folder of PATH"));
  options.command = {"./no-such-file"};
  EXPECT_EQ(error_of<UsageError>([&] { launch(options); }),
            "cannot start './no-such-file': there is no such file");
  options.command = {folder_.path().string()};
  EXPECT_THAT(error_of<UsageError>([&] { launch(options); }), HasSubstr("it is not an executable file"));
  options.command = {folder_.write("broken", "not a program", 0700)};
  EXPECT_THAT(error_of<UsageError>([&] { launch(options); }), HasSubstr("Exec format error"));
  options.command = {};
  EXPECT_EQ(error_of<UsageError>([&] { launch(options); }), "no program to launch");
}

TEST_F(Launcher, SeveralHostsNeedASecretAndShareOneMaster) {
  LaunchOptions options =
      script(2, "echo $RANK $WORLD_SIZE $GROUP_RANK $MASTER_ADDR:$MASTER_PORT > $FOLDER/$RANK");
  options.hosts = {.world = 6, .first_rank = 4, .node_rank = 2, .master = {"192.0.2.1", 777, {}}, .run = "r"};
  EXPECT_EQ(launch(options).exit_code(), 0);
  EXPECT_EQ(read("5"), "5 6 2 192.0.2.1:777\n");
  options.hosts->node_rank = 0;
  EXPECT_THAT(error_of<UsageError>([&] { launch(options); }), HasSubstr("without a secret"));
}

TEST(WorkerEnvironment, SharesCoresUnlessTold) {
  WorkerGroup group;
  group.local_world = 4;
  group.cores = 10;
  EXPECT_EQ(worker_environment({}, group, 0).at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(worker_environment({{"OMP_NUM_THREADS", "7"}}, group, 0).at("OMP_NUM_THREADS"), "7");
  group.cores = 2;
  EXPECT_EQ(worker_environment({}, group, 0).at("OMP_NUM_THREADS"), "1");
}

TEST(WorkerEnvironment, PretendsHostsWithAsManyWorkersEach) {
  WorkerGroup group;
  group.local_world = 6;
  EXPECT_FALSE(worker_environment({}, group, 5).contains("LOCKSTEP_HOST_ID"));
  group.pretended_hosts = 2;
  EXPECT_EQ(worker_environment({}, group, 2), worker_environment({{"LOCKSTEP_HOST_ID", "h"}}, group, 2));
  std::vector<std::string> hosts;
  for (int rank = 0; rank < 6; ++rank) {
    hosts.push_back(worker_environment({}, group, rank).at("LOCKSTEP_HOST_ID"));
  }
  EXPECT_EQ(hosts[0], hosts[2]);
  EXPECT_NE(hosts[2], hosts[3]);
  EXPECT_EQ(hosts[3], hosts[5]);
}

TEST(WorkerEnvironment, HandsOnASecretOnlyOnce) {
  WorkerGroup group;
  const Environment base = {{"LOCKSTEP_SECRET_FILE", "/f"}};
  EXPECT_EQ(worker_environment(base, group, 0).at("LOCKSTEP_SECRET_FILE"), "/f");
  group.secret = transport::Secret::from_value("sixteen characters and more");
  const Environment with = worker_environment(base, group, 0);
  EXPECT_FALSE(with.contains("LOCKSTEP_SECRET_FILE"));
  EXPECT_EQ(with.at("LOCKSTEP_SECRET"), "sixteen characters and more");
}

TEST(WorkerEnvironment, ResolvesToThePlaceItDescribes) {
  WorkerGroup group{.world = 8,
                    .first_rank = 4,
                    .local_world = 4,
                    .node_rank = 1,
                    .master = {"node0", 4321, {}},
                    .run = "run7",
                    .secret = {},
                    .cores = 8};
  const Environment stale = {{"LOCKSTEP_RANK", "9"}, {"LOCKSTEP_MASTER_PORT", "1"},
                             {"SLURM_PROCID", "0"},  {"SLURM_NTASKS", "1"},
                             {"SLURM_JOB_ID", "12"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"SLURM_LOCALID", "0"}, {"TORCHELASTIC_RESTART_COUNT", "3"}};
  PlacementInputs inputs;
  inputs.environment = worker_environment(stale, group, 2);
  const Placement p = resolve_placement(inputs);
  EXPECT_EQ(p.rank.value, 6);
  EXPECT_EQ(p.world.value, 8);
  EXPECT_EQ(p.local_rank.value, 2);
  EXPECT_EQ(p.local_world.value, 4);
  EXPECT_EQ(p.node_rank.value, 1);
  EXPECT_EQ(p.master(), (transport::Address{"node0", 4321, {}}));
  EXPECT_EQ(p.run.value, "run7");
  EXPECT_EQ(p.generation.value, 0u);
  EXPECT_FALSE(p.served_by_rank0.value);
}

TEST(LinePrefix, JoinsPiecesAndBreaksLongLines) {
  LinePrefix lines("[3] ");
  EXPECT_EQ(lines.feed("ab"), "");
  EXPECT_EQ(lines.feed("c\n\nd"), "[3] abc\n[3] \n");
  EXPECT_EQ(lines.finish(), "[3] d\n");
  EXPECT_EQ(lines.finish(), "");
  const std::string broken = lines.feed(std::string(LinePrefix::kMaxLine + 1, 'x'));
  EXPECT_EQ(broken, "[3] " + std::string(LinePrefix::kMaxLine, 'x') + "\n");
}

}  // namespace
}  // namespace lockstep::rendezvous
