// SPDX-License-Identifier: Apache-2.0
//
// What is typed behind the name of the program, one argument per line. Nothing of it is done.
#include "lockstep/base/error.h"
#include "lockstep/cli/command_line.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> arguments = fuzz::Input(data, size).lines();
  fuzz::accepts<UsageError>([&] {
    const cli::CommandLine line(arguments);
    fuzz::require(line.answer().empty() || !line.has_action(), "an answer is all that is asked for");
    fuzz::require(!arguments.empty() || !line.has_action(), "who asks for nothing gets nothing");
  });
  return 0;
}
