// SPDX-License-Identifier: Apache-2.0
//
// Runs of toy workers that are killed, stopped and disturbed. Whatever happens, what they end with is what
// they would have ended with alone.
#include "lockstep/elastic/supervisor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/elastic/decision_log.h"
#include "lockstep/rendezvous/process.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/connect/socket.h"

#include "tests/support/files.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr int kSteps = 60;
const char* const kFinal = "60 3244937888772059379";  // by the formulas of toy_worker.cpp

bool is_there(pid_t pid) {
  // One that has ended and waits for its parent does no harm.
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string number;
  std::string name;
  std::string state;
  return static_cast<bool>(stat >> number >> name >> state) && state != "Z";
}

// A supervisor in a process of its own, and what its workers tell about themselves.
class ToyRun {
 public:
  ToyRun(int workers, std::vector<std::string> options, std::map<std::string, std::string> variables = {}) {
    rendezvous::SpawnOptions spawn{.program = TOY_SUPERVISOR,
                                   .arguments = {"toy_supervisor", TOY_WORKER, std::to_string(workers)},
                                   .environment = rendezvous::process_environment(),
                                   .capture_output = true,
                                   .signal_mask = {}};
    spawn.arguments.insert(spawn.arguments.end(), options.begin(), options.end());
    spawn.environment["TOY_FOLDER"] = folder_.path().string();
    spawn.environment["TOY_STEPS"] = std::to_string(kSteps);
    spawn.environment["TOY_STEP_MS"] = "10";
    for (const auto& [name, value] : variables) spawn.environment[name] = value;
    process_.emplace(spawn);
    spawn_ = spawn;
  }

  // The same again, over what the one before has left.
  void restart() { process_.emplace(spawn_); }

  std::vector<Record> decisions() const { return parse_log(folder_.read("decisions"), "decisions").records; }

  rendezvous::ChildProcess& process() { return *process_; }

  // Of workers that have been in a step, with the step; those that have ended included.
  std::map<pid_t, int> workers() const { return numbers("at."); }
  std::vector<pid_t> running() const {
    std::vector<pid_t> pids;
    for (const auto& [pid, step] : workers()) {
      if (is_there(pid)) pids.push_back(pid);
    }
    return pids;
  }

  // The workers that run, as soon as there are so many of them and the first is in this step.
  std::vector<pid_t> await(std::size_t count, int step) const {
    for (;;) {
      std::vector<pid_t> pids = running();
      const std::map<pid_t, int> all = workers();
      const bool is_there_yet = std::ranges::any_of(pids, [&](pid_t pid) { return all.at(pid) >= step; });
      if (pids.size() >= count && is_there_yet) return pids;
      std::this_thread::sleep_for(2ms);
    }
  }

  // What it says at its end: "finished 0 reason|first failure".
  std::string result() {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(process_->output().get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    while (!process_->poll()) std::this_thread::sleep_for(2ms);
    return text.substr(0, text.find('\n'));
  }

  // What the workers ended with.
  std::vector<std::string> finals() const {
    std::vector<std::string> texts;
    for (const std::string& name : folder_.names()) {
      if (!name.starts_with("final.") || name.ends_with(".new")) continue;
      std::string text = folder_.read(name);
      texts.push_back(text.substr(0, text.find('\n')));
    }
    return texts;
  }

 private:
  std::map<pid_t, int> numbers(const std::string& prefix) const {
    std::map<pid_t, int> found;
    for (const std::string& name : folder_.names()) {
      if (!name.starts_with(prefix) || name.ends_with(".new")) continue;
      found[std::stoi(name.substr(prefix.size()))] = std::stoi("0" + folder_.read(name));
    }
    return found;
  }

  test::TemporaryFolder folder_;
  rendezvous::SpawnOptions spawn_;
  std::optional<rendezvous::ChildProcess> process_;
};

class Supervisor : public testing::Test {
 protected:
  Supervisor() : shared_memory_before_(test::shared_memory_names()) {}
  ~Supervisor() override { EXPECT_EQ(test::shared_memory_names(), shared_memory_before_); }

  static void expect_undisturbed(ToyRun& run, std::size_t finals) {
    EXPECT_THAT(run.result(), StartsWith("finished 0 "));
    EXPECT_THAT(run.finals(), AllOf(SizeIs(finals), Each(Eq(kFinal))));
    EXPECT_THAT(run.running(), IsEmpty());
  }

 private:
  std::vector<std::string> shared_memory_before_;
};

TEST_F(Supervisor, ARunThatNothingHappensTo) {
  for (const int workers : {1, 3, 4}) {
    ToyRun run(workers, {});
    expect_undisturbed(run, static_cast<std::size_t>(workers));
  }
}

class Kills : public Supervisor, public testing::WithParamInterface<std::size_t> {};

TEST_P(Kills, SomeAtOnceAreReplaced) {
  std::minstd_rand random(7);
  for (const int step : {0, 3, 17, 40}) {
    ToyRun run(4, {});
    std::vector<pid_t> workers = run.await(4, step);
    std::shuffle(workers.begin(), workers.end(), random);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
    for (std::size_t i = 0; i < GetParam(); ++i) ::kill(workers[i], SIGKILL);
    expect_undisturbed(run, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(OneTwoThree, Kills, testing::Values(1U, 2U, 3U));

TEST_F(Supervisor, KillsOneAfterAnother) {
  std::minstd_rand random(11);
  ToyRun run(4, {"max_restarts=100"}, {{"TOY_STEP_MS", "30"}});
  for (int kill = 0; kill < 12; ++kill) {
    const std::vector<pid_t> workers = run.await(1, 0);
    ::kill(workers[random() % workers.size()], SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
  }
  expect_undisturbed(run, 4);
}

TEST_F(Supervisor, AWorkerThatIsKilledWhenItHasLeftIsNotMissed) {
  ToyRun run(3, {}, {{"TOY_END", "9"}, {"TOY_END_SLOT", "1"}, {"TOY_END_STEP", "left"}});
  expect_undisturbed(run, 3);
}

TEST_F(Supervisor, WithoutRestartsTheOthersGoOn) {
  ToyRun run(4, {"restart_workers=0"});
  const std::vector<pid_t> workers = run.await(4, 10);
  ::kill(workers[1], SIGKILL);
  ::kill(workers[2], SIGKILL);
  expect_undisturbed(run, 2);
}

TEST_F(Supervisor, AFrozenWorkerIsKilledAndReplaced) {
  ToyRun run(4, {"beat_timeout_ms=700"});
  const pid_t frozen = run.await(4, 10)[2];
  ::kill(frozen, SIGSTOP);
  const std::string result = run.result();
  EXPECT_THAT(result, AllOf(StartsWith("finished 0 "),
                            HasSubstr(fmt::format("pid {}) was ended after step", frozen))));
  EXPECT_THAT(run.finals(), AllOf(SizeIs(4), Each(Eq(kFinal))));
  EXPECT_FALSE(is_there(frozen));
}

TEST_F(Supervisor, TooFewForTooLongIsResumable) {
  ToyRun run(3, {"restart_workers=0", "min_workers=3", "join_timeout_ms=500"}, {{"TOY_STEP_MS", "30"}});
  const pid_t killed = run.await(3, 5)[0];
  ::kill(killed, SIGKILL);
  EXPECT_THAT(run.result(), AllOf(StartsWith("stopped 75 "), HasSubstr("fewer than the 3"),
                                  HasSubstr(fmt::format("pid {}) was killed by signal 9", killed))));
  EXPECT_THAT(run.finals(), IsEmpty());
  EXPECT_THAT(run.running(), IsEmpty());
}

TEST_F(Supervisor, WorkersThatAlwaysDieAreGivenUp) {
  ToyRun run(2, {"max_restarts=3", "first_wait_ms=10"}, {{"TOY_END", "1"}});
  EXPECT_THAT(run.result(), AllOf(StartsWith("stopped 75 "), HasSubstr("ended with exit code 1"),
                                  HasSubstr("given up after 3 restarts")));
}

TEST_F(Supervisor, AMistakeEndsTheRunWithItsCode) {
  ToyRun run(2, {}, {{"TOY_END", "65"}});
  EXPECT_THAT(run.result(), AllOf(StartsWith("stopped 65 "), HasSubstr("ended with exit code 65")));
}

TEST_F(Supervisor, AMistakeOfOneLeavesTheOthersTheTimeToFinish) {
  ToyRun run(3, {"grace_ms=100"},
             {{"TOY_END", "65"}, {"TOY_END_SLOT", "1"}, {"TOY_END_STEP", "3"}, {"TOY_STEP_MS", "500"}});
  EXPECT_THAT(run.result(), AllOf(StartsWith("stopped 65 "), HasSubstr("ended with exit code 65")));
  EXPECT_THAT(run.finals(), AllOf(SizeIs(2), Each(StartsWith("4 "))));
  EXPECT_THAT(run.running(), IsEmpty());
}

// They would wait for longer than this test may take.
TEST_F(Supervisor, AMistakeOfOneIsNotWaitedForByOthersThatAreTooFew) {
  ToyRun run(3, {"min_workers=3", "join_timeout_ms=3600000", "grace_ms=3600000"},
             {{"TOY_END", "70"}, {"TOY_END_SLOT", "1"}, {"TOY_END_STEP", "3"}});
  EXPECT_THAT(run.result(), StartsWith("stopped 70 "));
}

TEST_F(Supervisor, AMistakeOfOneIsNotWaitedForByOthersThatHaveNotBegun) {
  ToyRun run(3, {"join_timeout_ms=3600000", "grace_ms=3600000"}, {{"TOY_END", "2"}, {"TOY_END_SLOT", "1"}});
  EXPECT_THAT(run.result(), StartsWith("stopped 2 "));
  EXPECT_THAT(run.finals(), IsEmpty());
}

TEST_F(Supervisor, ASignalEndsAllAfterTheSameStep) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    ToyRun run(3, {}, {{"TOY_STEP_MS", "30"}});
    run.await(3, 5);
    ::kill(run.process().pid(), number);
    EXPECT_THAT(run.result(), StartsWith(fmt::format("stopped 75 stopped by signal {}", number)));
    const std::vector<std::string> finals = run.finals();
    ASSERT_THAT(finals, SizeIs(3));
    EXPECT_THAT(finals, Each(Eq(finals.front())));
    EXPECT_THAT(run.running(), IsEmpty());
  }
}

TEST_F(Supervisor, ASignalAfterTheLastStepChangesNothing) {
  ToyRun run(2, {fmt::format("last_step={}", kSteps)}, {{"TOY_STEP_MS", "0"}, {"TOY_LINGER_MS", "1500"}});
  while (run.finals().size() < 2) std::this_thread::sleep_for(2ms);
  ::kill(run.process().pid(), SIGINT);
  EXPECT_EQ(run.result(), "finished 0 |");
  EXPECT_THAT(run.finals(), Each(Eq(kFinal)));
}

// Who is dismissed then has done nothing wrong, and ends with 0.
TEST_F(Supervisor, ASignalWhileTooFewAreThereLeavesTheRunUnfinished) {
  ToyRun run(2, {fmt::format("last_step={}", kSteps), "min_workers=2", "restart_workers=0",
                 "join_timeout_ms=3600000"});
  ::kill(run.await(2, 5).front(), SIGKILL);
  while (run.decisions().back().members.size() == 2 && run.running().size() == 2)
    std::this_thread::sleep_for(2ms);
  std::this_thread::sleep_for(200ms);  // until the other has asked for a place
  ::kill(run.process().pid(), SIGTERM);
  EXPECT_THAT(run.result(), StartsWith("stopped 75 stopped by signal 15"));
  EXPECT_THAT(run.finals(), IsEmpty());
}

TEST_F(Supervisor, ASecondSignalEndsAllAtOnce) {
  ToyRun run(2, {}, {{"TOY_STEP_MS", "600000"}});
  run.await(2, 0);
  ::kill(run.process().pid(), SIGTERM);
  std::this_thread::sleep_for(2500ms);  // not the same wish any more
  ::kill(run.process().pid(), SIGINT);
  EXPECT_THAT(run.result(), StartsWith(fmt::format("stopped {} ", 128 + SIGINT)));
  EXPECT_THAT(run.running(), IsEmpty());
}

TEST_F(Supervisor, WorkersDieWithTheSupervisor) {
  ToyRun run(3, {});
  run.await(3, 5);
  ::kill(run.process().pid(), SIGKILL);
  run.result();
  while (!run.running().empty()) std::this_thread::sleep_for(2ms);
}

// Numbers of generations are not used twice, and nobody waits for those that are dead.
TEST_F(Supervisor, ANewSupervisorGoesOnAfterOneThatWasKilled) {
  ToyRun run(3, {"beat_timeout_ms=600000"});
  run.await(3, 5);
  ::kill(run.process().pid(), SIGKILL);
  run.result();
  while (!run.running().empty()) std::this_thread::sleep_for(2ms);
  run.restart();
  expect_undisturbed(run, 3);
  const std::vector<Record> records = run.decisions();
  ASSERT_GE(records.size(), 2U);
  EXPECT_EQ(records[0].generation, 1U);
  EXPECT_EQ(records[1].generation, 2U);
  EXPECT_THAT(records[1].members, SizeIs(3));
}

// What it held is gone with it.
TEST_F(Supervisor, AWorkerThatWasKilledWhileItWasOneOfOneBeginsAgain) {
  ToyRun run(1, {});
  ::kill(run.await(1, 10)[0], SIGKILL);
  EXPECT_THAT(run.result(), StartsWith("finished 0 "));
}

class Strangers : public Supervisor {
 protected:
  static std::uint16_t free_port() {
    const transport::Descriptor socket = transport::open_listening_socket({"127.0.0.1", 0, {}});
    return transport::bound_address(socket.get(), {"127.0.0.1", 0, {}}).port;
  }

  static transport::Descriptor knock(std::uint16_t port) {
    const transport::Address address{"127.0.0.1", port, {}};
    return transport::connect_socket(transport::resolve(address, Deadline::after(5s)).front(),
                                     Deadline::after(5s));
  }
};

const std::map<std::string, std::string> kSecret = {{"LOCKSTEP_SECRET", "a secret of this test only"}};

TEST_F(Strangers, DoNotDisturbTheRun) {
  const std::uint16_t port = free_port();
  std::map<std::string, std::string> variables = kSecret;
  variables["TOY_STEP_MS"] = "100";  // long enough for all of them
  ToyRun run(3, {fmt::format("port={}", port)}, variables);
  run.await(3, 2);
  // Thousands that say nothing or nonsense, hundreds of them at a time.
  std::deque<transport::Descriptor> open;
  for (int i = 0; i < 3000 && !run.process().poll(); ++i) {
    open.push_back(knock(port));
    if (i % 3 == 0) {
      [[maybe_unused]] const auto put = ::write(open.back().get(), "GET / HTTP/1.1\r\n\r\n", 18);
    }
    if (open.size() > 400) open.pop_front();
  }
  const transport::Credentials wrong{.me = {.role = "elastic", .rank = -1, .run = "toy", .generation = 0},
                                     .secret = transport::Secret::from_value("not the secret of the test"),
                                     .tls = nullptr};
  EXPECT_THROW(transport::dial({"127.0.0.1", port, {}}, wrong, Deadline::after(5s)), AuthenticationError);
  expect_undisturbed(run, 3);
}

// One that knows the secret, but not the protocol.
TEST_F(Strangers, WithTheSecretButNonsenseDoNotEither) {
  const std::uint16_t port = free_port();
  ToyRun run(3, {fmt::format("port={}", port)}, kSecret);
  run.await(3, 2);
  const transport::Credentials right{.me = {.role = "elastic", .rank = -1, .run = "toy", .generation = 0},
                                     .secret = transport::Secret::from_value(kSecret.at("LOCKSTEP_SECRET")),
                                     .tls = nullptr};
  for (int i = 0; i < 20; ++i) {
    const auto [connection, peer] = transport::dial({"127.0.0.1", port, {}}, right, Deadline::after(5s));
    std::vector<std::byte> frame(64, std::byte{0xff});
    connection->write_all(frame, Deadline::after(5s));
    EXPECT_THROW(connection->read_all(frame, Deadline::after(5s)), PeerLost);
  }
  expect_undisturbed(run, 3);
}

class Agents : public Strangers {};

TEST_F(Agents, KeepWorkersOfAFurtherHost) {
  const std::uint16_t port = free_port();
  ToyRun run(2, {fmt::format("port={}", port), "expected=4", "beat_timeout_ms=1000"}, kSecret);
  ToyRun agent(2, {fmt::format("agent_of_port={}", port), "first_wait_ms=10"}, kSecret);
  run.await(2, 10);
  const std::vector<pid_t> remote = agent.await(2, 10);
  ::kill(remote[0], SIGKILL);
  ::kill(remote[1], SIGSTOP);
  EXPECT_THAT(agent.result(), StartsWith("finished 0 "));
  EXPECT_THAT(run.result(), StartsWith("finished 0 "));
  EXPECT_THAT(run.finals(), AllOf(SizeIs(2), Each(Eq(kFinal))));
  EXPECT_THAT(agent.finals(), AllOf(SizeIs(2), Each(Eq(kFinal))));
  EXPECT_FALSE(is_there(remote[1]));
}

TEST_F(Agents, TellTheCoordinatorOfAWishToEndWhileItWaitsForMoreWorkers) {
  const std::uint16_t port = free_port();
  std::map<std::string, std::string> variables = kSecret;
  variables["TOY_STEP_MS"] = "30";
  ToyRun run(1, {fmt::format("port={}", port), "expected=3", "min_workers=3", "join_timeout_ms=3600000"},
             variables);
  ToyRun agent(2, {fmt::format("agent_of_port={}", port), "restart_workers=0"}, variables);
  run.await(1, 3);
  ::kill(agent.await(2, 3)[0], SIGKILL);
  while (agent.running().size() > 1) std::this_thread::sleep_for(2ms);
  ::kill(agent.process().pid(), SIGTERM);
  EXPECT_THAT(agent.result(), StartsWith("stopped 75 stopped by signal 15"));
  EXPECT_THAT(run.result(), StartsWith("stopped 75 only 2 workers there, fewer than the 3"));
}

}  // namespace
}  // namespace lockstep::elastic
