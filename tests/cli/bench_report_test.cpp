// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/cli/bench/report.h"
#include "lockstep/rendezvous/signal_inbox.h"

#include "tests/cli/scripted_crew.h"

namespace lockstep::cli {
namespace {

class BenchReport : public testing::Test {
 protected:
  Measurement measurement(const std::string& system, const std::string& algorithm, double median_us) {
    Measurement made;
    made.contestant.crew = &crew_;
    made.contestant.what.system = system;
    made.contestant.what.bytes = 1 << 20;
    made.contestant.what.registered = system == "lockstep";
    made.contestant.algorithm = algorithm;
    made.contestant.transport = "shm";
    made.time_us = {.median = median_us, .min = median_us - 10, .max = median_us + 20};
    made.correct = true;
    return made;
  }

  rendezvous::SignalInbox signals_{SIGUSR2};
  ScriptedCrew crew_{4, signals_, [](Rank, const Command&) { return Reply{}; }};
};

TEST_F(BenchReport, SaysHowManyTimesAsFastAndWhatShareOfALimit) {
  const std::vector<Measurement> all = {
      measurement("lockstep", "direct", 100), measurement("lockstep", "ring", 200),
      measurement("gloo", "ring", 1000),      measurement("mpi", "auto", 50),
      measurement("memcpy", "copy", 80),      measurement("sockets", "stream", 400)};
  EXPECT_EQ(comparison(all[0], all),
            "10.00x as fast as gloo, 0.50x as fast as mpi, 80% of memcpy, 400% of sockets");
  EXPECT_EQ(comparison(all[1], all),
            "5.00x as fast as gloo, 0.25x as fast as mpi, 40% of memcpy, 200% of sockets");
  EXPECT_EQ(comparison(all[2], all), "");
}

TEST_F(BenchReport, RowsAreTheseToTheLetter) {
  std::vector<Measurement> all = {measurement("lockstep", "direct", 100), measurement("gloo", "ring", 250)};
  all[1].correct = false;
  EXPECT_EQ(table_head() + table_rows(all),
            "system    op              algorithm         transport      bytes  dtype buffer     time us"
            "              min..max    algbw    busbw correct  comparison\n"
            "lockstep  all_reduce      direct            shm            1 MiB   fp32 reg         100.00"
            "         90.00..120.00   10.486   15.729 yes      2.50x as fast as gloo\n"
            "gloo      all_reduce      ring              shm            1 MiB   fp32 plain       250.00"
            "        240.00..270.00    4.194    6.291 NO       \n");
}

// 64 MiB shared by three ranks.
TEST_F(BenchReport, SizesThatFillNoUnitLeaveTheColumnsInPlace) {
  std::vector<Measurement> all = {measurement("lockstep", "direct", 100),
                                  measurement("lockstep", "direct", 100)};
  all[1].contestant.what.bytes = 67'108'860;
  const std::string rows = table_rows(all);
  const std::size_t second = rows.find('\n') + 1;
  EXPECT_EQ(rows.find("fp32"), rows.find("fp32", second) - second) << rows;
}

TEST_F(BenchReport, LinesAreTheseToTheLetter) {
  Measurement ours = measurement("lockstep", "add+ring", 131.072);
  EXPECT_EQ(json_line(ours),
            R"({"system":"lockstep","op":"all_reduce","algorithm":"add+ring","transport":"shm","ranks":4,)"
            R"("bytes":1048576,"dtype":"fp32","registered":true,"time_us":131.072,"time_min_us":121.072,)"
            R"("time_max_us":151.072,"algbw_gbps":8.0,"busbw_gbps":12.0,"correct":true})");
  ours.contestant.what.lanes = {1, 3, 0, 4};
  EXPECT_NE(json_line(ours).find(R"("registered":true,"lanes":[1,3,0,4],"time_us")"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::cli
