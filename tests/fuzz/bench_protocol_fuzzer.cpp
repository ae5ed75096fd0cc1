// SPDX-License-Identifier: Apache-2.0
//
// Lines between the coordinator of a benchmark and its agents.
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/protocol.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::cli;

namespace {

void take_reply(std::string_view line) {
  std::optional<Failure> failure;
  const Reply reply = parse_reply(line, failure);
  std::optional<Failure> again;
  if (failure) {
    parse_reply(format_failure(*failure), again);
    fuzz::require(again == failure, "a failure survives its line");
  } else {
    fuzz::require(parse_reply(format_reply(reply), again) == reply, "a reply survives its line");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view line = input.line();
  fuzz::accepts<DataError>([&] {
    const Rank rank = parse_hello(line);
    fuzz::require(rank >= 0 && rank < kMaxBenchRanks, "a rank is within its limits");
    fuzz::require(parse_hello(format_hello(rank)) == rank, "a hello survives its line");
  });
  fuzz::accepts<DataError>([&] {
    const Command command = parse_command(line);
    fuzz::require(command.slot < kMaxBenchSlots, "a slot is within its limit");
    fuzz::require(parse_command(format_command(command)) == command, "a command survives its line");
  });
  fuzz::accepts<DataError>([&] { take_reply(line); });
  return 0;
}
