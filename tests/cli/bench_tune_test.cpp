// SPDX-License-Identifier: Apache-2.0
//
// What becomes of wrong results while the selector is tuned: agents answer by a script.
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/tune.h"
#include "lockstep/comm/link_model.h"
#include "lockstep/rendezvous/signal_inbox.h"

#include "tests/cli/scripted_crew.h"
#include "tests/support/error_of.h"

namespace lockstep::cli {
namespace {

using testing::HasSubstr;
using Verb = Command::Verb;

class BenchTune : public testing::Test {
 protected:
  // With ranks whose results of one system are wrong.
  void tune(const std::string& wrong_system, const std::string& transport = "loopback") {
    BenchOptions options;
    options.site = {.ranks = 2, .transport = transport};
    options.ops = {schedule::Op::all_reduce};
    options.bytes = {4096};
    options.registered = {true};
    options.turns = 1;
    options.turn_ms = 1;
    const auto start = [&](const Site& site) {
      started_.push_back(site.transport);
      return crew(site.ranks, wrong_system);
    };
    run_tune(options, start, out_);
  }

  std::unique_ptr<Crew> crew(int ranks, const std::string& wrong_system) {
    return std::make_unique<ScriptedCrew>(
        ranks, signals_, [this, wrong_system](Rank, const Command& command) {
          const std::lock_guard lock(mutex_);
          if (command.verb == Verb::prepare) systems_[command.slot] = command.what.system;
          return Reply{.correct = systems_[command.slot] != wrong_system, .elapsed_ns = 1'000'000};
        });
  }

  rendezvous::SignalInbox signals_{SIGUSR2};
  std::mutex mutex_;
  std::map<std::uint32_t, std::string> systems_;  // by slot
  std::vector<std::string> started_;              // transports
  std::ostringstream out_;
};

TEST_F(BenchTune, TakesRightResults) {
  EXPECT_NO_THROW(tune("none"));
  EXPECT_THAT(out_.str(), HasSubstr("all_reduce"));
}

// Two ranks for each kind of link, then those that were asked for.
TEST_F(BenchTune, MeasuresTheLinksOfTheTransportThatIsAskedFor) {
  const std::map<std::string, std::vector<std::string>> expected = {{"loopback", {"loopback", "loopback"}},
                                                                    {"shm", {"shm", "tcp", "shm"}},
                                                                    {"tcp", {"shm", "tcp", "tcp"}},
                                                                    {"mpi", {"mpi", "shm", "tcp", "mpi"}}};
  for (const auto& [transport, started] : expected) {
    started_.clear();
    out_.str("");
    tune("none", transport);
    EXPECT_EQ(started_, started);
    EXPECT_EQ(comm::parse_link_model(out_.str(), "out").mpi.has_value(), transport == "mpi") << out_.str();
  }
}

TEST_F(BenchTune, MakesNoModelOfWrongResults) {
  for (const std::string system : {"ping", "stream", "add"}) {
    EXPECT_EQ(test::error_of<InternalError>([&] { tune(system); }),
              "'" + system + "' gave a wrong result; please report this");
    EXPECT_EQ(out_.str(), "");
  }
}

TEST_F(BenchTune, FailsForAWrongCollectiveAfterItsRow) {
  EXPECT_THAT(test::error_of<InternalError>([&] { tune("lockstep"); }),
              HasSubstr("a collective gave a wrong result: all_reduce by "));
  EXPECT_THAT(out_.str(), HasSubstr("# all_reduce"));
}

}  // namespace
}  // namespace lockstep::cli
