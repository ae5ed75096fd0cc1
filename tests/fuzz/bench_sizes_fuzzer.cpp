// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/sizes.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  std::vector<std::size_t> sizes;
  if (!fuzz::accepts<UsageError>([&] { sizes = cli::parse_sizes(text); })) return 0;
  fuzz::require(!sizes.empty() && sizes.size() <= cli::kMaxBenchSizes, "the number of sizes is limited");
  for (std::size_t bytes : sizes) {
    fuzz::require(bytes <= cli::kMaxBenchBytes, "a size is within its limit");
    fuzz::require(!cli::format_size(bytes).empty(), "a size can be shown");
  }
  return 0;
}
