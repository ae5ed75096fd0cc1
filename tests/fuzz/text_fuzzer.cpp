// SPDX-License-Identifier: Apache-2.0
//
// Numbers that users type, and foreign text on its way into our messages.
#include <algorithm>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/text.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto a = input.number<std::uint64_t>();
  const auto b = input.number<std::uint64_t>();
  const std::string text(input.rest());

  const std::string quoted = rendezvous::quote(text);
  fuzz::require(std::ranges::all_of(quoted, [](char c) { return c >= ' ' && c <= '~'; }),
                "quoted text is printable");
  fuzz::require(quoted.size() <= 64 * 4 + 16, "quoted text is short");

  const std::uint64_t least = std::min(a, b);
  const std::uint64_t most = std::max(a, b);
  std::uint64_t number = 0;
  if (fuzz::accepts<UsageError>([&] { number = rendezvous::parse_number({"NAME", text}, least, most); })) {
    fuzz::require(number >= least && number <= most, "a number is within its limits");
    fuzz::require(std::to_string(number) == text || text.starts_with('0'), "a number is what was typed");
  }
  if (rendezvous::is_valid_host_id(text)) {
    fuzz::require(!text.empty() && text.size() <= rendezvous::kMaxHostId, "a host id is within its limit");
  }
  return 0;
}
