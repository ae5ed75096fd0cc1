// SPDX-License-Identifier: Apache-2.0
//
// What the coordinator of a benchmark and its agents say to each other: one line of text each way. Pure.
//
//   hello rank=1                                          agent, once
//   prepare slot=0 system=lockstep op=all_reduce ...      coordinator
//   check slot=0 | run slot=0 iterations=100 | release | quit
//   ok correct=1 entered_ns=5 left_ns=9 elapsed_ns=7      agent
//   error usage all_reduce: there is no ...               agent, also instead of hello
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/base/rank.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::cli {

inline constexpr std::size_t kMaxBenchLine = 4096;  // bytes, without the newline
inline constexpr std::uint32_t kMaxBenchSlots = 64;
inline constexpr int kMaxBenchRanks = 1024;
inline constexpr int kMaxBenchLanes = 1024;  // of all ranks together

// How the order of addition is asked for; `automatic` leaves it to the communicator.
enum class Exactness : std::uint8_t { automatic, exact, inexact };

// One thing to measure, the same on all ranks.
struct Case {
  std::string system = "lockstep";  // see system.h
  schedule::Op op = schedule::Op::all_reduce;
  std::string algorithm = "auto";  // or "lanes", or a comm::AlgorithmName
  DType dtype = DType::fp32;
  std::size_t bytes = 0;  // of one rank's buffer
  Exactness exactness = Exactness::automatic;
  bool registered = true;
  std::vector<int> lanes = {};  // that each rank owns; empty: every rank brings one buffer

  bool operator==(const Case&) const = default;
};

struct Command {
  enum class Verb : std::uint8_t {
    prepare,  // allocate and fill what `what` needs, in a slot that stays until release
    check,    // do it once on values that differ on every rank, and compare the result
    run,      // do it `iterations` times
    release,  // forget all slots
    quit
  };
  Verb verb = Verb::quit;
  std::uint32_t slot = 0;
  Case what;
  std::size_t iterations = 0;

  bool operator==(const Command&) const = default;
};

struct Reply {
  bool correct = false;         // check
  std::int64_t entered_ns = 0;  // check: when the operation was called and returned, on the host's clock
  std::int64_t left_ns = 0;
  std::int64_t elapsed_ns = 0;  // run: all iterations together

  bool operator==(const Reply&) const = default;
};

// The kinds decide which error the coordinator raises.
struct Failure {
  enum class Kind : std::uint8_t { usage, comm, internal };
  Kind kind = Kind::internal;
  std::string text;

  bool operator==(const Failure&) const = default;
};

// Lines without the newline, at most kMaxBenchLine bytes: longer texts of failures are cut.
std::string format_hello(Rank rank);
std::string format_command(const Command& command);
std::string format_reply(const Reply& reply);
std::string format_failure(const Failure& failure);

// What an agent says instead of a hello or a reply when it cannot; none when the line is something else.
std::optional<Failure> parse_failure(std::string_view line);

// DataError naming what is wrong with the line. A reply that is a failure fills `failure`.
Rank parse_hello(std::string_view line);
Command parse_command(std::string_view line);
Reply parse_reply(std::string_view line, std::optional<Failure>& failure);

}  // namespace lockstep::cli
