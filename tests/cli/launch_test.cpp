// SPDX-License-Identifier: Apache-2.0
//
// `lockstep launch` with real processes, signals and a real meeting.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lockstep/base/deadline.h"

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::vector<std::string> launch(int workers, const std::string& script) {
  return {"launch", "-n", std::to_string(workers), "--grace", "0.3", "sh", "-c", script};
}

// Waits until the file has a whole line.
std::string wait_for_line(const std::string& path) {
  const Deadline limit = Deadline::after(seconds(30));
  while (lines_in(read_file(path)) == 0 && !limit.passed()) std::this_thread::sleep_for(milliseconds(10));
  return read_file(path);
}

TEST(Launch, RanksMeet) {
  const Finished finished =
      run_program({"launch", "-n", "4", LOCKSTEP_PROGRAM, "doctor", "--meet", "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  std::size_t reports = 0;
  for (std::size_t at = 0; (at = finished.output.find("\"peers\"", at)) != std::string::npos; ++at) ++reports;
  EXPECT_EQ(reports, 4u);
}

TEST(Launch, PrefixesLinesWithTheRank) {
  const Finished finished = run_program({"launch", "-n", "2", "--prefix", "sh", "-c", "echo hello"});
  EXPECT_THAT(finished.output, HasSubstr("[0] hello\n"));
  EXPECT_THAT(finished.output, HasSubstr("[1] hello\n"));
}

TEST(Launch, ASlowReaderGetsAllLines) {
  Program program({"launch", "-n", "2", "--prefix", "seq", "100000"});
  std::this_thread::sleep_for(milliseconds(300));
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(lines_in(finished.output), 200'000u);
  EXPECT_THAT(finished.output, HasSubstr("[1] 100000\n"));
}

// Whether the process ends although nobody reads what it writes.
bool ends_unread(pid_t pid) {
  const Deadline limit = Deadline::after(seconds(30));
  siginfo_t info{};
  while (info.si_pid == 0 && !limit.passed()) {
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    std::this_thread::sleep_for(milliseconds(10));
  }
  return info.si_pid == pid;
}

TEST(Launch, CanBeEndedWhileNobodyReadsItsOutput) {
  const TemporaryFolder folder;
  Program program(
      {"launch", "-n", "2", "--prefix", "--grace", "0.3", "sh", "-c", "echo > $F/up$RANK; exec yes"},
      {{"F", folder.path("")}});
  for (const char* name : {"up0", "up1"}) wait_for_line(folder.path(name));
  std::this_thread::sleep_for(milliseconds(300));  // until all pipes are full
  program.signal(SIGTERM);
  EXPECT_TRUE(ends_unread(program.pid()));
  EXPECT_EQ(program.finish().exit_code, 128 + SIGTERM);
}

TEST(Launch, TakesTheProgramsFlagsAsTheyAre) {
  for (const char* dashes : {"--", ""}) {
    std::vector<std::string> arguments = {"launch", "--workers=1"};
    if (*dashes) arguments.emplace_back(dashes);
    for (const char* word : {"sh", "-c", "echo \"$@\"", "-n", "--help", "--", "-n", "5"})
      arguments.emplace_back(word);
    EXPECT_EQ(run_program(arguments).output, "--help -- -n 5\n");
  }
}

TEST(Launch, EndsWithTheCodeOfTheFirstFailure) {
  const Finished finished = run_program(launch(3, "test $RANK = 2 && exit 42; exec sleep 600"));
  EXPECT_EQ(finished.exit_code, 42);
  EXPECT_THAT(finished.error_output, ContainsRegex("lockstep: rank 2 \\([^ ]+, pid "));
  EXPECT_THAT(finished.error_output, HasSubstr("ended with exit code 42"));
}

TEST(Launch, ReportsAKilledRank) {
  const Finished finished = run_program(launch(2, "test $RANK = 1 && kill -9 $$; exec sleep 600"));
  EXPECT_EQ(finished.exit_code, 137);
  EXPECT_THAT(finished.error_output, HasSubstr("was killed by signal 9"));
}

TEST(Launch, ForwardsSignals) {
  TemporaryFolder folder;
  Program program(
      launch(2, "trap 'echo > $F/term$RANK; exit 0' TERM; echo > $F/up$RANK; while :; do sleep 0.05; done"),
      {{"F", folder.path("")}});
  wait_for_line(folder.path("up0"));
  wait_for_line(folder.path("up1"));
  ::kill(program.pid(), SIGTERM);
  EXPECT_EQ(program.finish().exit_code, 0);
  EXPECT_EQ(lines_in(read_file(folder.path("term0"))), 1u);
  EXPECT_EQ(lines_in(read_file(folder.path("term1"))), 1u);
}

// Also those that must be killed because they do not listen.
TEST(Launch, InterruptedRanksGiveTheSignalsCode) {
  for (const std::string script : {"echo > $F/up$RANK; exec sleep 600",
                                   "trap '' INT TERM; echo > $F/up$RANK; while :; do sleep 0.1; done"}) {
    TemporaryFolder folder;
    Program program(launch(2, script), {{"F", folder.path("")}});
    wait_for_line(folder.path("up0"));
    wait_for_line(folder.path("up1"));
    ::kill(program.pid(), SIGINT);
    const Finished finished = program.finish();
    EXPECT_EQ(finished.exit_code, 130) << script;
    EXPECT_EQ(finished.error_output, "lockstep: interrupted by SIGINT\n") << script;
  }
}

TEST(Launch, ASignalThatIsIgnoredAtTheStartStaysIgnored) {
  TemporaryFolder folder;
  Program program = start_shell(
      "trap '' HUP; exec \"$LOCKSTEP\" launch -n 2 --grace 0.1 sh -c "
      "'echo > $F/up$RANK; while ! test -e $F/go; do sleep 0.05; done'",
      {{"F", folder.path("")}});
  wait_for_line(folder.path("up0"));
  wait_for_line(folder.path("up1"));
  ::kill(program.pid(), SIGHUP);
  std::this_thread::sleep_for(milliseconds(500));  // longer than ranks that are to end are left alone
  folder.write("go", "");
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
}

TEST(Launch, SeveralHostsMustBeToldApart) {
  TemporaryFolder folder;
  const std::string hosts = folder.write("hosts", "127.0.0.1 slots=1\nother slots=2\n");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"launch", "--nnodes", "2", "--master-addr", "127.0.0.1", "true"},
        {"launch", "--hostfile", hosts, "true"}}) {
    const Finished finished = run_program(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.error_output, HasSubstr("lockstep: --node-rank is missing"));
  }
}

TEST(Launch, KillingTheLauncherLeavesNoOrphan) {
  // Orphans become our children, so that their end can be seen.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  TemporaryFolder folder;
  Program program(launch(3, "echo $$ > $F/pid$RANK; exec sleep 600"), {{"F", folder.path("")}});
  std::vector<pid_t> workers;
  for (int rank = 0; rank < 3; ++rank) {
    workers.push_back(std::stoi(wait_for_line(folder.path("pid" + std::to_string(rank)))));
  }
  program.kill_alone();
  EXPECT_EQ(program.finish().exit_code, 137);
  for (pid_t worker : workers) {
    int status = 0;
    const Deadline limit = Deadline::after(seconds(30));
    pid_t gone = 0;
    while ((gone = ::waitpid(worker, &status, WNOHANG)) == 0 && !limit.passed()) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_EQ(gone, worker);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(Launch, SaysWhyAProgramCannotStart) {
  const Finished finished = run_program({"launch", "-n", "2", "./no-such-program"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.error_output, "lockstep: cannot start './no-such-program': there is no such file\n");
}

// Two launchers stand for two hosts.
TEST(Launch, SeveralHostsMeetAtTheFirst) {
  TemporaryFolder folder;
  const std::string hosts = folder.write("hosts", "127.0.0.1 slots=1\nother slots=2\n");
  const std::string port = std::to_string(free_port());
  const auto host = [&](const char* node_rank) {
    return Program({"launch", "--hostfile", hosts, "--node-rank", node_rank, "--master-port", port,
                    LOCKSTEP_PROGRAM, "doctor", "--meet", "--json"},
                   {{"LOCKSTEP_SECRET", "a secret for two launchers"}});
  };
  Program second = host("1");
  Program first = host("0");
  const Finished finished = first.finish();
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(second.finish().exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(finished.output)["peers"].size(), 3u);
}

TEST(Launch, RanksOfAHostFileAreNotTakenForOne) {
  TemporaryFolder folder;
  const std::string hosts = folder.write("hosts", "127.0.0.1 slots=3\n");
  const Finished finished = run_program({"launch", "--hostfile", hosts, "--node-rank", "0", "--master-port",
                                         std::to_string(free_port()), "--grace", "0.3", "sh", "-c",
                                         "test $RANK = 1 && exit 3; exec sleep 600"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.error_output, HasSubstr("; it was the first to fail, and the others were ended\n"));
}

TEST(Launch, HostsCountFromZero) {
  const Finished finished =
      run_program({"launch", "--nnodes", "2", "--node-rank", "2", "--master-addr", "n1", "-n", "1", "true"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.error_output, HasSubstr("--node-rank is 2, but there are 2 hosts"));
}

TEST(Launch, APlaceIsOneAmongHosts) {
  TemporaryFolder folder;
  const std::string hosts = folder.write("hosts", "127.0.0.1 slots=1\n");
  expect_refusal(run_program({"launch", "--node-rank", "0", "-n", "1", "true"}), 2,
                 "--node-rank 0 says which of several hosts this is: give their number with --nnodes, or "
                 "their list with --hostfile, or leave it out");
  expect_refusal(run_program({"launch", "--nnodes", "1", "--node-rank", "1", "true"}), 2,
                 "--node-rank is 1, but there is 1 host: they count from 0");
  expect_refusal(run_program({"launch", "--nnodes", "1", "--hostfile", hosts, "true"}), 2,
                 "give either --nnodes or --hostfile");
  // As scripts write it that also start several.
  EXPECT_EQ(run_program({"launch", "--nnodes", "1", "--node-rank", "0", "-n", "2", "true"}).exit_code, 0);
}

TEST(Launch, AWorldThatNoCollectiveServesIsNotStarted) {
  const Finished finished = run_program(
      {"launch", "--nnodes", "3", "--node-rank", "0", "--master-addr", "n1", "-n", "2000", "true"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.error_output,
              HasSubstr("3 hosts with 2000 ranks each are 6000 ranks, but a world has at most 4096"));
}

}  // namespace
}  // namespace lockstep::testing
