// SPDX-License-Identifier: Apache-2.0
//
// Why a rank failed, in the words of that rank, which may have passed on those of another: one byte for who
// says it, then the text.
#include <string>

#include "lockstep/comm/diagnose.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const Rank reporter = input.number<std::uint8_t>();
  const std::string why(input.rest());
  const comm::Report first = comm::first_cause(reporter, why);
  fuzz::require(first.rank >= 0, "a failure has a rank");
  fuzz::require(why.ends_with(first.why), "nothing is added to what was said");
  if (first.why == why) fuzz::require(first.rank == reporter, "who says all of it is who failed");
  // As diagnose() passes it on.
  const std::string passed_on =
      "barrier #1 on world: rank " + std::to_string(reporter) + " failed: " + first.why;
  fuzz::require(comm::first_cause(1000, passed_on) == comm::Report{.rank = reporter, .why = first.why},
                "what is passed on stays the same");
  return 0;
}
