// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/nodelist.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const rendezvous::NodelistLimits limits = {.max_hosts = 1000, .max_name = 40};
  const std::string_view text = input.rest();
  std::vector<std::string> hosts;
  if (!fuzz::accepts<UsageError>([&] { hosts = rendezvous::expand_nodelist(text, limits); })) return 0;
  fuzz::require(!hosts.empty() && hosts.size() <= limits.max_hosts,
                "the number of hosts is within its limit");
  for (const std::string& host : hosts) {
    fuzz::require(!host.empty() && host.size() <= limits.max_name, "a name is within its limit");
    fuzz::require(host.find_first_of("[],") == std::string::npos, "brackets are expanded");
    fuzz::require(rendezvous::expand_nodelist(host) == std::vector{host}, "a host is a list of itself");
  }
  return 0;
}
