// SPDX-License-Identifier: Apache-2.0
//
// Two hosts as network namespaces, joined by a link that can be slow or down. Needs root, iproute2.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"

#include "tests/support/processes.h"
#include "tests/support/values.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Communicator;
using testing::AnyOf;
using testing::HasSubstr;

// Zero if the program ran and said so.
int status_of(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    execvp(arguments[0], arguments.data());
    std::_Exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

void run_command(const std::vector<std::string>& words) {
  const int status = status_of(words);
  LOCKSTEP_CHECK(status == 0, fmt::format("{} failed with status {}", fmt::join(words, " "), status));
}

// A network namespace that goes with this object.
class Namespace {
 public:
  explicit Namespace(std::string name) : name_(std::move(name)) {
    run_command({"ip", "netns", "add", name_});
  }
  ~Namespace() { status_of({"ip", "netns", "delete", name_}); }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// Hosts 0 and 1, with the addresses .1 and .2, in namespaces of this test's own.
class TwoHosts {
 public:
  TwoHosts() {
    run_command({"ip", "link", "add", device(0), "netns", space(0), "type", "veth", "peer", "name", device(1),
                 "netns", space(1)});
    for (int host : {0, 1}) {
      run_command({"ip", "-n", space(host), "address", "add", address(host) + "/24", "dev", device(host)});
      run_command({"ip", "-n", space(host), "link", "set", device(host), "up"});
      run_command({"ip", "-n", space(host), "link", "set", "lo", "up"});
    }
  }

  static std::string address(int host) { return fmt::format("10.199.7.{}", host + 1); }

  void limit_rate(const std::string& rate) const {
    for (int host : {0, 1}) {
      run_command({"tc", "-n", space(host), "qdisc", "add", "dev", device(host), "root", "tbf", "rate", rate,
                   "burst", "32k", "latency", "50ms"});
    }
  }
  void cut() const { run_command({"ip", "-n", space(0), "link", "set", device(0), "down"}); }

  // Moves the calling process to the host.
  void enter(int host) const {
    const int fd = open(("/run/netns/" + space(host)).c_str(), O_RDONLY | O_CLOEXEC);
    LOCKSTEP_CHECK(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "cannot enter a network namespace");
    close(fd);
  }

 private:
  const std::string& space(int host) const { return spaces_[static_cast<std::size_t>(host)].name(); }
  static std::string device(int host) { return fmt::format("lstest{}", host); }

  // Members, so that none is left when the rest cannot be set up.
  std::array<Namespace, 2> spaces_{Namespace(fmt::format("lockstep-{}-0", getpid())),
                                   Namespace(fmt::format("lockstep-{}-1", getpid()))};
};

constexpr int kWorld = 4;  // two ranks on each host

class TwoHostsTest : public testing::Test {
 protected:
  // Addresses that others can reach need a secret.
  void SetUp() override { setenv("LOCKSTEP_SECRET", "two hosts and one secret", 1); }
  void TearDown() override { unsetenv("LOCKSTEP_SECRET"); }

  RankProcesses start(const RankProcesses::Body& body, std::chrono::milliseconds timeout) const {
    return RankProcesses(kWorld,
                         {.carrier = comm::Carrier::automatic,
                          .tcp_streams = 0,
                          .group = {.name = "world", .timeout = timeout}},
                         body, TwoHosts::address(0), [this](Rank rank) { hosts_.enter(rank / 2); });
  }

  TwoHosts hosts_;
};

void reduce_often(Communicator& comm, const RankProcesses::Tell& tell, int times, std::size_t count) {
  comm::Buffer buffer = comm.allocate(count * sizeof(float));
  const auto input = values_of(comm.rank(), 1, DType::fp32, count, Values::rough);
  const auto expected = reduced_values(kWorld, 1, DType::fp32, count, Values::rough, comm::ReduceOp::sum);
  for (int i = 0; i < times; ++i) {
    std::copy(input.begin(), input.end(), buffer.bytes().begin());
    comm.all_reduce(buffer.bytes());
    if (first_difference(buffer.bytes(), expected, DType::fp32) != -1) return tell("wrong sum");
    if (i == 0) tell("running");
  }
  tell("right");
}

TEST_F(TwoHostsTest, RanksFindTheFastWayAndTheSumIsExact) {
  RankProcesses ranks = start(
      [](Communicator& comm, const RankProcesses::Tell& tell) {
        for (Rank peer = 0; peer < kWorld; ++peer) {
          if (peer != comm.rank()) tell(std::string(comm.link_to(peer)));
        }
        reduce_often(comm, tell, 20, 50'000);
      },
      60s);
  for (Rank rank = 0; rank < kWorld; ++rank) {
    for (Rank peer = 0; peer < kWorld; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(ranks.next_line(rank), rank / 2 == peer / 2 ? "shm" : "tcp") << rank << " to " << peer;
    }
    EXPECT_EQ(ranks.next_line(rank), "running");
    EXPECT_EQ(ranks.next_line(rank), "right");
  }
}

TEST_F(TwoHostsTest, ASlowLinkOnlyTakesLonger) {
  hosts_.limit_rate("20mbit");
  // The deadline is for silence: a transfer that takes longer than it must not fail.
  RankProcesses ranks = start(
      [](Communicator& comm, const RankProcesses::Tell& tell) { reduce_often(comm, tell, 2, 1'000'000); },
      1s);
  for (Rank rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(ranks.next_line(rank), "running");
    EXPECT_EQ(ranks.next_line(rank), "right");
  }
}

TEST_F(TwoHostsTest, ACutLinkIsNoticedAtTheDeadlineOnBothSides) {
  RankProcesses ranks =
      start([](Communicator& comm,
               const RankProcesses::Tell& tell) { reduce_often(comm, tell, 1'000'000, 50'000); },
            1s);
  for (Rank rank = 0; rank < kWorld; ++rank) ASSERT_EQ(ranks.next_line(rank), "running");
  hosts_.cut();
  for (Rank rank = 0; rank < kWorld; ++rank) {
    EXPECT_THAT(ranks.next_line(rank),
                AnyOf(HasSubstr("silent for"), HasSubstr("has not arrived"), HasSubstr("is gone")))
        << "rank " << rank;
    EXPECT_EQ(WEXITSTATUS(ranks.wait(rank)), 1);
  }
}

}  // namespace
}  // namespace lockstep::test
