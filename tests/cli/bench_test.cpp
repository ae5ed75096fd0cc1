// SPDX-License-Identifier: Apache-2.0
//
// The whole command with ranks as threads; figures are only looked at for being there.
#include "lockstep/cli/bench.h"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/link_model.h"

#include "tests/support/files.h"
#include "tests/support/scoped_variable.h"

namespace lockstep::cli {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

std::string output_of(Arguments arguments) {
  arguments.insert(arguments.begin(),
                   {"collectives", "--transport", "loopback", "--turns", "5", "--turn-ms", "2"});
  std::ostringstream out;
  EXPECT_EQ(run_bench(arguments, out), 0);
  return out.str();
}

std::vector<Json> lines_of(Arguments arguments) {
  arguments.emplace_back("--json");
  std::istringstream in(output_of(std::move(arguments)));
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string refusal_of(Arguments arguments) {
  arguments.insert(arguments.begin(), "collectives");
  std::ostringstream out;
  try {
    run_bench(arguments, out);
  } catch (const UsageError& error) {
    EXPECT_EQ(out.str(), "");
    return error.what();
  }
  return "nothing was refused";
}

TEST(BenchCollectives, PrintsEveryKeyOfEveryLine) {
  const auto lines = lines_of({"--bytes", "4K,100"});
  ASSERT_EQ(lines.size(), 2U);
  const std::set<std::string> expected = {
      "system",     "op",      "algorithm",   "transport",   "ranks",      "bytes",      "dtype",
      "registered", "time_us", "time_min_us", "time_max_us", "algbw_gbps", "busbw_gbps", "correct"};
  for (const Json& line : lines) {
    std::set<std::string> keys;
    for (const auto& [key, value] : line.items()) keys.insert(key);
    EXPECT_EQ(keys, expected);
    EXPECT_EQ(line["system"], "lockstep");
    EXPECT_EQ(line["op"], "all_reduce");
    EXPECT_EQ(line["transport"], "loopback");
    EXPECT_EQ(line["ranks"], 2);
    EXPECT_EQ(line["dtype"], "fp32");
    EXPECT_NE(line["algorithm"], "auto");
    EXPECT_EQ(line["correct"], true);
    EXPECT_GT(line["time_us"], 0.0);
    EXPECT_LE(line["time_min_us"], line["time_us"]);
    EXPECT_GE(line["time_max_us"], line["time_us"]);
    EXPECT_GT(line["busbw_gbps"], 0.0);
  }
  EXPECT_EQ(lines[0]["bytes"], 4096);
  EXPECT_EQ(lines[1]["bytes"], 100);
}

TEST(BenchCollectives, EveryOperationIsCorrectOnThreeRanks) {
  std::set<std::string> ops;
  for (const Json& line : lines_of({"--op", "all", "--ranks", "3", "--bytes", "1200", "--dtype", "bf16"})) {
    EXPECT_EQ(line["correct"], true) << line;
    ops.insert(line["op"]);
  }
  EXPECT_EQ(ops.size(), 7U);
}

TEST(BenchCollectives, SizesAreRoundedToWhatRanksCanShare) {
  const auto lines = lines_of({"--op", "all", "--ranks", "3", "--bytes", "0,1,5,1023,4K"});
  std::map<std::string, std::vector<std::size_t>> bytes;
  for (const Json& line : lines) {
    EXPECT_EQ(line["correct"], true) << line;
    bytes[line["op"]].push_back(line["bytes"]);
  }
  EXPECT_EQ(bytes["all_to_all"], (std::vector<std::size_t>{0, 12, 1020, 4092}));
  EXPECT_EQ(bytes["all_reduce"], (std::vector<std::size_t>{0, 4, 1020, 4096}));
  EXPECT_EQ(bytes["barrier"], (std::vector<std::size_t>{0}));
  EXPECT_EQ(lines_of({"--tune", "--op", "all_to_all", "--ranks", "3", "--bytes", "4K"}).at(1)["bytes"], 4092);
}

TEST(BenchCollectives, AllToAllIsCorrectByEveryAlgorithm) {
  std::set<std::string> seen;
  for (const Json& line : lines_of({"--op", "all_to_all", "--ranks", "5", "--ranks-per-host", "2,3",
                                    "--bytes", "2000", "--algorithm", "all"})) {
    EXPECT_EQ(line["correct"], true) << line;
    seen.insert(line["algorithm"]);
  }
  EXPECT_EQ(seen.size(), 7U);
}

TEST(BenchCollectives, AllAlgorithmsAreThoseThatHaveHostsForTheirParts) {
  for (const Json& line : lines_of({"--ranks", "4", "--bytes", "4K", "--algorithm", "all"})) {
    EXPECT_NE(line["algorithm"], "hierarchical");
  }
}

TEST(BenchCollectives, AlgorithmsBuffersAndOpponentsAreMeasuredTogether) {
  std::set<std::string> seen;
  for (const Json& line : lines_of({"--bytes", "4K", "--algorithm", "direct,ring,lanes", "--registered",
                                    "--unregistered", "--against", "memcpy,sockets"})) {
    EXPECT_EQ(line["correct"], true) << line;
    seen.insert(line["system"].get<std::string>() + "/" + line["algorithm"].get<std::string>() +
                (line["registered"].get<bool>() ? "/registered" : "/plain"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"lockstep/direct/registered", "lockstep/direct/plain",
                                         "lockstep/ring/registered", "lockstep/ring/plain",
                                         "lockstep/lanes/registered", "lockstep/lanes/plain",
                                         "memcpy/copy/registered", "sockets/stream/plain"}));
}

TEST(BenchCollectives, TableComparesWithTheOpponents) {
  const std::string table = output_of({"--bytes", "4K", "--against", "memcpy"});
  EXPECT_NE(table.find("% of memcpy"), std::string::npos) << table;
  EXPECT_NE(table.find("4 KiB"), std::string::npos) << table;
}

TEST(BenchCollectives, TunePrintsTheModelAndItsChoices) {
  const auto lines = lines_of({"--tune", "--bytes", "4K,64K"});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_GT(lines[0]["memory"]["gigabytes_per_second"], 0.0);
  EXPECT_GT(lines[0]["memory"]["message_us"], 0.0);
  EXPECT_GT(lines[0]["add_gigabytes_per_second"], 0.0);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    ASSERT_GE(lines[i]["candidates"].size(), 1U);
    EXPECT_EQ(lines[i]["algorithm"], lines[i]["candidates"][0]["algorithm"]);
    for (const Json& candidate : lines[i]["candidates"]) {
      EXPECT_GT(candidate["predicted_us"], 0.0);
      EXPECT_GT(candidate["time_us"], 0.0);
      EXPECT_EQ(candidate["correct"], true);
    }
  }
}

// `lockstep bench collectives --tune > links.toml` makes a file for LOCKSTEP_LINK_MODEL.
TEST(BenchCollectives, TunePrintsAFileWithTheModel) {
  const test::TemporaryFolder folder;
  const comm::LinkModel model =
      comm::load_link_model(folder.write("links.toml", output_of({"--tune", "--bytes", "4K"})));
  EXPECT_NE(model.memory, comm::LinkModel().memory);
  EXPECT_NE(model.add_gigabytes_per_second, comm::LinkModel().add_gigabytes_per_second);
}

// Where only bytes count and where only depth counts, different algorithms are the fastest.
TEST(BenchCollectives, FollowsTheModelOfTheEnvironment) {
  const std::vector<std::string> arguments = {"--ranks", "4", "--bytes", "64K", "--exact", "false"};
  const test::TemporaryFolder folder;
  std::set<std::string> chosen;
  for (const comm::Link& memory :
       {comm::Link{.latency_us = 0, .message_us = 0, .gigabytes_per_second = 1e-3},
        comm::Link{.latency_us = 1e4, .message_us = 0, .gigabytes_per_second = 1e6}}) {
    const auto file = folder.write("links.toml", comm::to_toml({.memory = memory}));
    const test::ScopedVariable variable("LOCKSTEP_LINK_MODEL", file.c_str());
    chosen.insert(lines_of(arguments).at(0)["algorithm"]);
  }
  EXPECT_EQ(chosen.size(), 2U);
}

// A rank that finds itself with one level of hosts refuses to be measured under such a name.
TEST(BenchCollectives, MeasuresTheHierarchyThatIsNamed) {
  std::set<std::string> seen;
  for (const Json& line : lines_of({"--ranks", "5", "--ranks-per-host", "2,3", "--bytes", "4K", "--algorithm",
                                    "hierarchical(ring,tree),hierarchical,hierarchical(tree,direct)"})) {
    EXPECT_EQ(line["correct"], true) << line;
    seen.insert(line["algorithm"]);
  }
  EXPECT_EQ(seen,
            (std::set<std::string>{"hierarchical", "hierarchical(ring,tree)", "hierarchical(tree,direct)"}));
}

// Compared by bits, as everything that --exact true is about.
TEST(BenchCollectives, HierarchiesAreExactOnHostsOfOnePowerOfTwo) {
  std::set<std::string> seen;
  for (const Json& line : lines_of({"--ranks", "4", "--ranks-per-host", "2,2", "--bytes", "4K", "--exact",
                                    "true", "--algorithm", "all"})) {
    EXPECT_EQ(line["correct"], true) << line;
    seen.insert(line["algorithm"]);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"direct", "one_shot", "halving_doubling", "hierarchical"}));
}

TEST(BenchCollectives, SumsLanesThatRanksOwnUnevenly) {
  for (const std::string op : {"all_reduce", "reduce_scatter"}) {
    for (const std::string lanes : {"2,1,1", "0,5,3", "4,0,0"}) {
      std::set<std::string> seen;
      for (const Json& line : lines_of({"--op", op, "--ranks", "3", "--lanes", lanes, "--bytes", "2000",
                                        "--algorithm", "lanes,ring,direct,auto"})) {
        EXPECT_EQ(line["correct"], true) << line;
        EXPECT_EQ(line["bytes"], 2000);
        EXPECT_EQ(line["lanes"].size(), 3U);
        seen.insert(line["algorithm"]);
      }
      EXPECT_TRUE(seen.contains("lanes(" + lanes + ")"));
      EXPECT_TRUE(seen.contains("add+ring"));
      EXPECT_TRUE(seen.contains("add+direct"));
    }
  }
}

TEST(BenchCollectives, HelpNamesTheOptions) {
  std::ostringstream out;
  EXPECT_EQ(run_bench({"collectives", "--help"}, out), 0);
  EXPECT_NE(out.str().find("--against"), std::string::npos);
  EXPECT_NE(out.str().find("'hierarchical(ring,tree)'"), std::string::npos);
}

TEST(BenchCollectives, RefusesBadOptionsInOneSentence) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--algorithm", "magic"}, "magic"},
      {{"--algorithm", "direct,"}, "--algorithm"},
      {{"--algorithm", "hierarchical(ring"},
       "--algorithm is 'hierarchical(ring': only hierarchical has parts"},
      {{"--algorithm", "hierarchical(ring,trea)"}, "unknown algorithm 'trea': did you mean 'tree'?"},
      {{"--algorithm", "hierarchical(ring,one_shot)", "--op", "reduce_scatter"}, "cannot do reduce_scatter"},
      {{"--algorithm", "one_shot", "--op", "reduce_scatter"}, "cannot do reduce_scatter"},
      {{"--op", "all_reduc"}, "--op is 'all_reduc': did you mean 'all_reduce'?"},
      {{"--op", "all_reduce,all"}, "write all alone"},
      {{"--op", "fly"}, "--op is 'fly': expected one of all_reduce, "},
      {{"--bytes", "oops"}, "oops"},
      {{"--bytes", "1T"}, "--bytes is '1T': expected sizes such as 4096, 4K or 1M, at most 64G"},
      {{"--ranks", "0"}, "--ranks"},
      {{"--ranks", "-3"}, "--ranks"},
      {{"--ranks", "two"}, "two"},
      {{"--turns", "4"}, "--turns"},
      {{"--turn-ms", "0"}, "--turn-ms"},
      {{"--turn-ms", "nan"}, "--turn-ms"},
      {{"--transport", "pigeon"}, "pigeon"},
      {{"--dtype", "fp8"}, "fp8"},
      {{"--exact", "maybe"}, "maybe"},
      {{"--against", "nccl"}, "nccl"},
      {{"--algorithm", "lanes", "--op", "broadcast"}, "broadcast"},
      {{"--algorithm", "ring", "--exact", "true"}, "--exact true"},
      {{"--algorithm", "hierarchical", "--exact", "true", "--ranks", "6", "--ranks-per-host", "3,3"},
       "--exact true asks for on these hosts"},
      {{"--algorithm", "lanes", "--ranks", "3"}, "as in --lanes 2,1,1"},
      {{"--lanes", "1,2"}, "--lanes 1,2 are 3 lanes together: the lane tree needs a power of two"},
      {{"--lanes", "0,0"}, "are 0 lanes together"},
      {{"--lanes", "1024,1024"}, "at most 1024"},
      {{"--lanes", "1,1,2"}, "--lanes 1,1,2 is for 3 ranks, but --ranks is 2"},
      {{"--lanes", "1,-1"}, "--lanes is '1,-1': expected whole numbers from 0 to 1024"},
      {{"--lanes", "1,3", "--op", "all"}, "leave out other operations"},
      {{"--lanes", "1,3", "--against", "memcpy"}, "leave out --against"},
      {{"--lanes", "1,3", "--tune"}, "--tune"},
      {{"--lanes", "1,3", "--exact", "true", "--algorithm", "direct"}, "only --algorithm lanes"},
      {{"--algorithm", "hierarchical(ring,tree)", "--ranks", "4"},
       "--algorithm hierarchical(ring,tree) has nothing to compose, because all ranks are on one host"},
      {{"--algorithm", "hierarchical", "--transport", "tcp"}, "every rank is alone on its host"},
      {{"--algorithm", "hierarchical", "--ranks-per-host", "1,1"}, "every rank is alone on its host"},
      {{"--ranks-per-host", "2,2"}, "--ranks-per-host 2,2 places 4 ranks, but --ranks is 2"},
      {{"--ranks-per-host", "2,0"}, "--ranks-per-host is '2,0': expected whole numbers from 1"},
      {{"--ranks-per-host", "1,1", "--transport", "shm"}, "leave out --transport shm"},
      {{"--tune", "--against", "memcpy"}, "--tune chooses"},
      {{"--against", "gloo", "--op", "reduce"}, "all_reduce only"},
      {{"--ranks", "2", "--ranks", "3"}, "--ranks is given twice"},
      {{"--nonsense"}, "unknown flag of lockstep bench collectives '--nonsense'"},
      {{"more"}, "more"},
  };
  for (const auto& [arguments, named] : cases) {
    const std::string refusal = refusal_of(arguments);
    EXPECT_NE(refusal.find(named), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  std::ostringstream out;
  EXPECT_THROW(run_bench({}, out), UsageError);
  EXPECT_THROW(run_bench({"kernels"}, out), UsageError);
}

// Not even the head of the table stands before such a refusal.
TEST(BenchCollectives, RefusesWhatOnlyTheRanksCanSee) {
  std::ostringstream out;
  EXPECT_THROW(
      run_bench({"collectives", "--transport", "loopback", "--against", "gloo", "--dtype", "bf16"}, out),
      UsageError);
  EXPECT_EQ(out.str(), "");
}

TEST(BenchCollectives, OneRankHasNoBus) {
  const auto lines = lines_of({"--ranks", "1", "--bytes", "4K"});
  EXPECT_TRUE(lines.at(0)["busbw_gbps"].is_null());
}

}  // namespace
}  // namespace lockstep::cli
