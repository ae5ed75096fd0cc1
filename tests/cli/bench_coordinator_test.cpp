// SPDX-License-Identifier: Apache-2.0
//
// What the coordinator makes of replies that are known: agents answer by a script.
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/cli/bench/coordinator.h"
#include "lockstep/rendezvous/signal_inbox.h"

#include "tests/cli/scripted_crew.h"
#include "tests/support/error_of.h"

namespace lockstep::cli {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Verb = Command::Verb;

// 100 us for an operation, and a turn of 10: one run of 1 and one of 10 operations find that out.
constexpr double kUsual = 100;
constexpr double kTurn = 1000;
constexpr int kCalibrationRuns = 2;

// What agents answer to the n-th time (from 0) that they are told to run or to check.
struct Answers {
  std::function<double(Rank rank, int turn)> time_us = [](Rank, int) { return kUsual; };
  std::function<Reply(Rank rank, int check)> check = [](Rank, int) { return Reply{.correct = true}; };
};

class BenchCoordinator : public testing::Test {
 protected:
  std::unique_ptr<Crew> crew_of_two(const std::string& name, const Answers& answers = {}) {
    return std::make_unique<ScriptedCrew>(
        2, signals_, [this, name, answers](Rank rank, const Command& command) {
          const std::lock_guard lock(mutex_);
          if (rank == 0) log_.push_back(name + " " + summary(command));
          int& before = done_[{name, rank, command.slot, command.verb}];
          const int time = before++;
          if (command.verb == Verb::check) return answers.check(rank, time);
          if (command.verb != Verb::run) return Reply{};
          const double one_us =
              time < kCalibrationRuns ? kUsual : answers.time_us(rank, time - kCalibrationRuns);
          return Reply{.elapsed_ns = static_cast<std::int64_t>(one_us * 1e3) *
                                     static_cast<std::int64_t>(command.iterations)};
        });
  }

  // One contestant whose agents answer like this, in five turns.
  Measurement measured(const Answers& answers, schedule::Op op = schedule::Op::all_reduce) {
    const auto crew = crew_of_two("crew", answers);
    Contestant contestant{.crew = crew.get(), .what = {}, .algorithm = {}, .transport = {}};
    contestant.what.op = op;
    return measure({contestant}, {.turns = 5, .turn_us = kTurn}).at(0);
  }

  static std::string summary(const Command& command) {
    const std::string line = format_command(command);
    return line.substr(0, line.find(" op="));
  }

  rendezvous::SignalInbox signals_{SIGUSR2};
  std::mutex mutex_;
  std::vector<std::string> log_;  // what rank 0 of each crew was told
  std::map<std::tuple<std::string, Rank, std::uint32_t, Verb>, int> done_;  // how often
};

TEST_F(BenchCoordinator, GivesEveryContestantItsTurnBeforeTheNextTurn) {
  const auto ours = crew_of_two("ours");
  const auto mpi = crew_of_two("mpi");
  std::vector<Contestant> contestants(3);
  contestants[0].crew = contestants[1].crew = ours.get();
  contestants[1].what.system = "gloo";
  contestants[2].crew = mpi.get();
  contestants[2].what.system = "mpi";
  measure(contestants, {.turns = 2, .turn_us = kTurn});
  const std::vector<std::string> released(log_.end() - 2, log_.end());
  EXPECT_THAT(released, UnorderedElementsAre("ours release", "mpi release"));
  log_.resize(log_.size() - 2);
  EXPECT_THAT(log_, ElementsAre("ours prepare slot=0 system=lockstep",  //
                                "ours prepare slot=1 system=gloo",      //
                                "mpi prepare slot=2 system=mpi",        //
                                "ours check slot=0", "ours run slot=0 iterations=1",
                                "ours run slot=0 iterations=10",  //
                                "ours check slot=1", "ours run slot=1 iterations=1",
                                "ours run slot=1 iterations=10",  //
                                "mpi check slot=2", "mpi run slot=2 iterations=1",
                                "mpi run slot=2 iterations=10",  //
                                "ours run slot=0 iterations=10", "ours run slot=1 iterations=10",
                                "mpi run slot=2 iterations=10",  //
                                "ours run slot=0 iterations=10", "ours run slot=1 iterations=10",
                                "mpi run slot=2 iterations=10",  //
                                "ours check slot=0", "ours check slot=1", "mpi check slot=2"));
}

TEST_F(BenchCoordinator, ATurnIsAsLongAsItsSlowestRank) {
  const std::vector<std::vector<double>> times_us = {{500, 100, 100, 90, 100}, {200, 300, 700, 100, 400}};
  Answers answers;
  answers.time_us = [&](Rank rank, int turn) { return times_us.at(rank).at(turn); };
  const Spread time_us = measured(answers).time_us;
  EXPECT_DOUBLE_EQ(time_us.median, 400);  // of 500, 300, 700, 100, 400
  EXPECT_DOUBLE_EQ(time_us.min, 100);
  EXPECT_DOUBLE_EQ(time_us.max, 700);
}

TEST_F(BenchCoordinator, OneWrongResultOfOneRankIsEnough) {
  EXPECT_TRUE(measured({}).correct);
  for (const int wrong_check : {0, 1}) {
    done_.clear();
    Answers answers;
    answers.check = [&](Rank rank, int check) { return Reply{.correct = check != wrong_check || rank != 1}; };
    EXPECT_FALSE(measured(answers).correct) << wrong_check;
  }
}

TEST_F(BenchCoordinator, ABarrierMustWaitForTheLastRank) {
  Answers answers;
  answers.check = [](Rank rank, int) {
    return Reply{.correct = true, .entered_ns = rank == 0 ? 100 : 200, .left_ns = rank == 0 ? 150 : 250};
  };
  EXPECT_FALSE(measured(answers, schedule::Op::barrier).correct);
  done_.clear();
  EXPECT_TRUE(measured(answers).correct) << "others may leave when they have what they need";
  done_.clear();
  answers.check = [](Rank rank, int) {
    return Reply{.correct = true, .entered_ns = rank == 0 ? 100 : 200, .left_ns = rank == 0 ? 200 : 201};
  };
  EXPECT_TRUE(measured(answers, schedule::Op::barrier).correct);
}

TEST_F(BenchCoordinator, ARefusedCommandLeavesNoReplyForTheNextOne) {
  ScriptedCrew crew(3, signals_, [](Rank rank, const Command& command) {
    if (command.verb == Verb::prepare && rank == 0) throw UsageError("there is no such operation");
    return Reply{.elapsed_ns = command.verb == Verb::run ? 10 + rank : 0};
  });
  const Command prepare{.verb = Verb::prepare, .slot = 0, .what = {}, .iterations = 0};
  EXPECT_EQ(test::error_of<UsageError>([&] { crew.command(prepare); }), "there is no such operation");
  const auto replies = crew.command({.verb = Verb::run, .slot = 0, .what = {}, .iterations = 1});
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(replies.at(rank).elapsed_ns, 10 + rank);
}

}  // namespace
}  // namespace lockstep::cli
