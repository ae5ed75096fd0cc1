// SPDX-License-Identifier: Apache-2.0
//
// `lockstep bench collectives` as users run it: ranks as processes, opponents, and what is left when one of
// them dies.
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/deadline.h"

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "collectives", "--turns", "5", "--turn-ms", "2"});
  return arguments;
}

std::vector<Json> lines_of(const Finished& finished) {
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  std::istringstream in(finished.output);
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; in >> child;) children.push_back(child);
  return children;
}

bool exists(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

// The ranks, once all of them run.
std::vector<pid_t> wait_for_children(pid_t pid, std::size_t count) {
  const Deadline limit = Deadline::after(std::chrono::seconds(30));
  while (children_of(pid).size() < count && !limit.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return children_of(pid);
}

bool all_gone(const std::vector<pid_t>& pids) {
  const Deadline limit = Deadline::after(std::chrono::seconds(30));
  for (const pid_t pid : pids) {
    while (exists(pid) && !limit.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (exists(pid)) return false;
  }
  return true;
}

TEST(BenchProcesses, SharedMemoryAndSocketsAreCorrect) {
  for (const std::string transport : {"shm", "tcp"}) {
    const auto lines =
        lines_of(run_program(bench({"--transport", transport, "--ranks", "3", "--op", "all", "--bytes", "96K",
                                    "--registered", "--unregistered", "--json"})));
    EXPECT_EQ(lines.size(), 14U);
    for (const Json& line : lines) {
      EXPECT_EQ(line["correct"], true) << line;
      EXPECT_EQ(line["transport"], transport);
    }
  }
}

TEST(BenchProcesses, HostsThatArePretendedAreSharedMemoryInsideAndSocketsBetween) {
  const auto lines = lines_of(run_program(
      bench({"--ranks", "4", "--ranks-per-host", "3,1", "--op", "all", "--bytes", "96K", "--algorithm",
             "hierarchical(ring,tree)", "--registered", "--unregistered", "--json"})));
  EXPECT_EQ(lines.size(), 14U);
  for (const Json& line : lines) {
    EXPECT_EQ(line["correct"], true) << line;
    EXPECT_EQ(line["transport"], "shm+tcp");
  }
}

TEST(BenchProcesses, LanesAreCorrectHoweverTheyAreOwned) {
  for (const std::string transport : {"shm", "tcp"}) {
    const auto lines = lines_of(run_program(bench(
        {"--transport", transport, "--ranks", "3", "--lanes", "1,3,4", "--op", "all_reduce,reduce_scatter",
         "--bytes", "96K", "--algorithm", "lanes,ring", "--registered", "--unregistered", "--json"})));
    EXPECT_EQ(lines.size(), 8U);
    for (const Json& line : lines) EXPECT_EQ(line["correct"], true) << line;
  }
}

// An opponent that was built in is measured; one that was not is refused in one sentence.
TEST(BenchProcesses, OpponentsAreMeasuredInTheSameRun) {
  const std::vector<std::pair<std::string, bool>> opponents = {{"gloo", LOCKSTEP_TEST_GLOO},
                                                               {"mpi", LOCKSTEP_TEST_MPI}};
  for (const auto& [name, built] : opponents) {
    const Finished finished = run_program(bench({"--bytes", "64K", "--against", name + ",memcpy", "--json"}));
    if (!built) {
      EXPECT_EQ(finished.exit_code, 2);
      EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
      continue;
    }
    std::multiset<std::string> systems;
    for (const Json& line : lines_of(finished)) {
      EXPECT_EQ(line["correct"], true) << line;
      systems.insert(line["system"]);
    }
    EXPECT_EQ(systems, (std::multiset<std::string>{"lockstep", name, "memcpy"}));
  }
}

TEST(BenchProcesses, MissingMpirunIsOneSentence) {
  const Finished finished = run_program(bench({"--against", "mpi"}), {{"PATH", "/nonexistent"}});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("mpi"));
}

TEST(BenchProcesses, BadOptionsEndWithTheCodeForUsage) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--algorithm", "magic"},
                                                    {"--op", "fly"},
                                                    {"--bytes", "1T"},
                                                    {"--ranks", "0"}}) {
    const Finished finished = run_program(bench(arguments));
    EXPECT_EQ(finished.exit_code, 2) << arguments[0];
    EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
    EXPECT_EQ(finished.output, "");
  }
}

TEST(BenchProcesses, AnAgentStartedByHandSaysWhoStartsIt) {
  const Finished finished = run_program({"bench", "agent", "shm"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.error_output, HasSubstr("lockstep bench collectives"));
}

TEST(BenchProcesses, ARankThatIsKilledEndsTheRunAndItsRanks) {
  Program program({"bench", "collectives", "--bytes", "1M", "--turns", "1000", "--json"});
  const std::vector<pid_t> ranks = wait_for_children(program.pid(), 2);
  ASSERT_EQ(ranks.size(), 2U);
  ASSERT_EQ(::kill(ranks[1], SIGKILL), 0);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("rank"));
  EXPECT_TRUE(all_gone(ranks));
}

// Ranks end, MPI's files go, and the sentence is ours alone.
TEST(BenchProcesses, ASignalEndsTheRunInOrder) {
  std::vector<std::pair<int, std::vector<std::string>>> cases = {{SIGINT, {"--transport", "shm"}},
                                                                 {SIGTERM, {"--transport", "loopback"}}};
  if (LOCKSTEP_TEST_MPI) cases.push_back({SIGTERM, {"--against", "mpi"}});
  if (LOCKSTEP_TEST_GLOO) cases.push_back({SIGINT, {"--against", "gloo"}});
  for (auto& [signal, arguments] : cases) {
    const TemporaryFolder folder;
    arguments.insert(arguments.begin(),
                     {"bench", "collectives", "--bytes", "1M", "--turns", "1000", "--json"});
    const auto before = test::shared_memory_names();
    // Under the address sanitizer, what Open MPI leaves when it is interrupted is not ours to tell.
    Program program(arguments, {{"TMPDIR", folder.path("")}, {"ASAN_OPTIONS", "detect_leaks=0"}});
    // The MPI opponent is started first, as one process; its ranks make their files a little later.
    const auto children = wait_for_children(program.pid(), arguments.back() == "loopback" ? 0 : 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ASSERT_EQ(::kill(program.pid(), signal), 0);
    const Finished finished = program.finish();
    EXPECT_EQ(finished.exit_code, 128 + signal) << finished.error_output;
    EXPECT_EQ(finished.error_output,
              signal == SIGINT ? "lockstep: interrupted by SIGINT\n" : "lockstep: interrupted by SIGTERM\n");
    EXPECT_TRUE(all_gone(children));
    EXPECT_EQ(test::shared_memory_names(), before);
    EXPECT_TRUE(test::names_in(folder.path("")).empty()) << arguments.back();
  }
}

TEST(BenchProcesses, RanksThatCannotStartGiveTheFirstCauseAlone) {
  const Finished finished =
      run_program(bench({"--bytes", "4K"}), {{"LOCKSTEP_TLS_CERT", "/nonexistent/cert"}});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
}

TEST(BenchProcesses, RanksConnectOverMpi) {
  const Finished finished = run_program(bench({"--transport", "mpi", "--bytes", "64K", "--json"}));
  if (!LOCKSTEP_TEST_MPI) {
    EXPECT_NE(finished.exit_code, 0);
    return;
  }
  const auto lines = lines_of(finished);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["transport"], "mpi");
  EXPECT_EQ(lines[0]["correct"], true);
}

TEST(BenchProcesses, TuneMeasuresTheLinksOfMpi) {
  const Finished finished = run_program(bench({"--tune", "--transport", "mpi", "--bytes", "64K", "--json"}));
  if (!LOCKSTEP_TEST_MPI) {
    EXPECT_EQ(finished.exit_code, 2);
    return;
  }
  const auto lines = lines_of(finished);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_GT(lines[0]["mpi"]["message_us"], 0.0);
  EXPECT_NE(lines[0]["mpi"], lines[0]["network"]);
  EXPECT_EQ(lines[1]["candidates"][0]["correct"], true);
}

// Where only depth counts and where only bytes count, different algorithms are the fastest.
TEST(BenchProcesses, RanksOverMpiChooseByItsLinks) {
  const std::string rest =
      "[comm.model]\nadd_gigabytes_per_second = 1e6\n"
      "[comm.model.memory]\nlatency_us = 0\nmessage_us = 0\ngigabytes_per_second = 1e6\n"
      "[comm.model.network]\nlatency_us = 1e6\nmessage_us = 0\ngigabytes_per_second = 1e6\n";
  const std::string mpi = "[comm.model.mpi]\nlatency_us = 0\nmessage_us = 0\ngigabytes_per_second = 1e-3\n";
  const TemporaryFolder folder;
  for (const auto& [model, chosen] :
       {std::pair(rest, std::string("one_shot")), std::pair(rest + mpi, std::string("direct"))}) {
    const Finished finished =
        run_program(bench({"--transport", "mpi", "--ranks", "3", "--bytes", "48K", "--json"}),
                    {{"LOCKSTEP_LINK_MODEL", folder.write("links.toml", model)}});
    if (!LOCKSTEP_TEST_MPI) {
      EXPECT_EQ(finished.exit_code, 2);
      continue;
    }
    const auto lines = lines_of(finished);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0]["algorithm"], chosen);
    EXPECT_EQ(lines[0]["correct"], true);
  }
}

// In a namespace of its own, where the shared-memory filesystem has the size given. What Open MPI leaks is
// not ours to tell.
Finished run_with_shared_memory_of(const std::string& size, const std::string& arguments,
                                   Environment extra = {}) {
  extra["ASAN_OPTIONS"] = "detect_leaks=0";
  return run_shell("exec unshare --mount sh -c 'mount -t tmpfs -o size=" + size +
                       " tmpfs /dev/shm && exec \"$LOCKSTEP\" " + arguments + "'",
                   extra);
}

TEST(BenchProcesses, OpenMpiIsNotStartedWhereItHasNoRoom) {
  for (const std::string mpi : {"--against mpi", "--transport mpi"}) {
    const Finished finished =
        run_with_shared_memory_of("64k", "bench collectives --bytes 64K --turns 5 --turn-ms 2 " + mpi);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
    EXPECT_EQ(finished.output, "");
    if (!LOCKSTEP_TEST_MPI) continue;
    EXPECT_THAT(
        finished.error_output,
        StartsWith("lockstep: Open MPI needs 8.1 MiB in /dev/shm for 2 ranks of one host, but 0.1 MiB"));
  }
}

// Our own transports need nothing there.
TEST(BenchProcesses, TheDoctorNamesWhatOpenMpiLacks) {
  for (const bool under_mpirun : {false, true}) {
    const Environment by_mpirun = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
    const Finished finished =
        run_with_shared_memory_of("64k", "doctor --json", under_mpirun ? by_mpirun : Environment());
    EXPECT_EQ(finished.exit_code, LOCKSTEP_TEST_MPI && under_mpirun ? 2 : 0) << finished.output;
    const std::string listed = Json::parse(finished.output)[under_mpirun ? "problems" : "advice"].dump();
    EXPECT_EQ(listed.find("Open MPI needs 8.1 MiB in /dev/shm") != std::string::npos, LOCKSTEP_TEST_MPI)
        << listed;
  }
}

TEST(BenchProcesses, WhatIsAskedForIsEnoughForOpenMpi) {
  const Finished finished =
      run_with_shared_memory_of("8400k", "bench collectives --bytes 4M --turns 5 --turn-ms 2 --against mpi");
  EXPECT_EQ(finished.exit_code, LOCKSTEP_TEST_MPI ? 0 : 2);
  EXPECT_EQ(finished.error_output.empty(), LOCKSTEP_TEST_MPI) << finished.error_output;
}

TEST(BenchProcesses, KillingTheCoordinatorEndsItsRanks) {
  // Killed while its ranks call in, it cannot remove the socket they call.
  const TemporaryFolder folder;
  Program program({"bench", "collectives", "--bytes", "1M", "--turns", "1000", "--json"},
                  {{"TMPDIR", folder.path(".")}});
  const std::vector<pid_t> ranks = wait_for_children(program.pid(), 2);
  ASSERT_EQ(ranks.size(), 2U);
  program.kill_alone();
  EXPECT_EQ(program.finish().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(all_gone(ranks));
}

}  // namespace
}  // namespace lockstep::testing
