// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/base/failpoint_rule.h"
#include "lockstep/base/failpoint_table.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  fuzz::accepts<UsageError>([&] {
    for (const failpoint::Rule& rule : failpoint::parse_rules(text)) {
      fuzz::require(rule.point < failpoint::kPoints.size(), "the place is known");
      fuzz::require(rule.argument >= 0, "an argument is not negative");
      fuzz::require(rule.rank.value_or(0) >= 0 && rule.step.value_or(0) >= 0, "ranks and steps count from 0");
      fuzz::require(rule.hit.value_or(1) >= 1, "hits count from 1");
      fuzz::require(rule.once.find_first_of(",:;") == std::string::npos, "a file's name ends where it must");
    }
  });
  return 0;
}
