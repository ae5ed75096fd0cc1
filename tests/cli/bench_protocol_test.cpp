// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/protocol.h"

namespace lockstep::cli {
namespace {

using Verb = Command::Verb;

const Case kCase{.system = "gloo",
                 .op = schedule::Op::all_to_all,
                 .algorithm = "halving_doubling",
                 .dtype = DType::bf16,
                 .bytes = 123456,
                 .exactness = Exactness::inexact,
                 .registered = false,
                 .lanes = {1, 0, 1023}};

TEST(BenchProtocol, CommandsSurviveTheWire) {
  for (const Command& command : {Command{Verb::prepare, 3, kCase, 0}, Command{Verb::check, 63, {}, 0},
                                 Command{Verb::run, 0, {}, 1'000'000}, Command{Verb::release, 0, {}, 0},
                                 Command{Verb::quit, 0, {}, 0}}) {
    EXPECT_EQ(parse_command(format_command(command)), command) << format_command(command);
  }
}

// As many ranks and lanes as there may be, in the longest way.
TEST(BenchProtocol, TheLongestCommandIsShortEnough) {
  Command command{Verb::prepare, kMaxBenchSlots - 1, kCase, 0};
  command.what.algorithm = "hierarchical(halving_doubling,halving_doubling)";
  command.what.lanes.assign(kMaxBenchRanks, 1);
  EXPECT_EQ(parse_command(format_command(command)), command);
}

TEST(BenchProtocol, RepliesSurviveTheWire) {
  const Reply reply{.correct = true, .entered_ns = 5, .left_ns = 1'000'000'000'000, .elapsed_ns = 7};
  std::optional<Failure> failure;
  EXPECT_EQ(parse_reply(format_reply(reply), failure), reply);
  EXPECT_FALSE(failure);
  EXPECT_EQ(parse_hello(format_hello(17)), 17);
}

TEST(BenchProtocol, FailuresSurviveTheWireOnOneLine) {
  const Failure sent{.kind = Failure::Kind::comm, .text = "all_reduce #1:\nrank 1 is gone"};
  std::optional<Failure> got;
  parse_reply(format_failure(sent), got);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, Failure::Kind::comm);
  EXPECT_EQ(got->text, "all_reduce #1: rank 1 is gone");
  EXPECT_EQ(format_failure({.kind = Failure::Kind::usage, .text = std::string(5000, 'x')}).size(),
            kMaxBenchLine);
}

TEST(BenchProtocol, RefusesBrokenCommands) {
  const std::string prepare = format_command({Verb::prepare, 3, kCase, 0});
  const auto list = [](const std::string& lanes) {
    return "prepare slot=1 system=lockstep op=reduce algorithm=auto dtype=fp32 bytes=1 exact=auto "
           "registered=1 "
           "lanes=" +
           lanes;
  };
  ASSERT_NO_THROW(parse_command(list("")));
  for (const std::string& line : {std::string(),
                                  std::string("jump"),
                                  std::string("check"),
                                  std::string("check slot=64"),
                                  std::string("check slot=-1"),
                                  std::string("check slot=1 slot=1"),
                                  std::string("check slot=1 more=2"),
                                  std::string("check slot"),
                                  std::string("check slot="),
                                  std::string("quit slot=1"),
                                  std::string("run slot=1"),
                                  std::string("run slot=1 iterations=1000001"),
                                  std::string("run slot=1 iterations=99999999999999999999"),
                                  prepare + " bytes=1",
                                  prepare + "x",
                                  std::string("prepare slot=1 system=lockstep op=fly algorithm=auto "
                                              "dtype=fp32 bytes=1 exact=auto registered=1 lanes="),
                                  std::string("prepare slot=1 system=lockstep op=reduce algorithm=auto "
                                              "dtype=fp31 bytes=1 exact=auto registered=1 lanes="),
                                  std::string("prepare slot=1 system=lockstep op=reduce algorithm=auto "
                                              "dtype=fp32 bytes=1 exact=maybe registered=1 lanes="),
                                  std::string("prepare slot=1 system=lockstep op=reduce algorithm=auto "
                                              "dtype=fp32 bytes=1 exact=auto registered=2 lanes="),
                                  std::string("prepare slot=1 system=lockstep op=reduce algorithm=auto "
                                              "dtype=fp32 bytes=1 exact=auto registered=1"),
                                  list("1,"),
                                  list(",1"),
                                  list("1,,1"),
                                  list("1,x"),
                                  list("-1"),
                                  list("1025"),
                                  std::string(5000, 'x')}) {
    EXPECT_THROW(parse_command(line), DataError) << line.substr(0, 100);
  }
}

TEST(BenchProtocol, RefusesBrokenReplies) {
  std::optional<Failure> failure;
  for (const char* line :
       {"", "ok", "yes", "ok correct=2 entered_ns=1 left_ns=1 elapsed_ns=1", "error", "error bad text",
        "ok correct=1 entered_ns=1 left_ns=1 elapsed_ns=9223372036854775808"}) {
    EXPECT_THROW(parse_reply(line, failure), DataError) << line;
  }
  for (const char* line :
       {"", "hello", "hello rank=1024", "hello rank=-1", "hi rank=1", "hello rank=1 x=1"}) {
    EXPECT_THROW(parse_hello(line), DataError) << line;
  }
}

}  // namespace
}  // namespace lockstep::cli
