// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/rendezvous/hostfile.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  std::vector<rendezvous::HostSlots> hosts;
  if (!fuzz::accepts<UsageError>([&] { hosts = rendezvous::parse_hostfile(text, "hosts.txt"); })) return 0;
  std::set<std::string> names;
  std::string written;
  for (const rendezvous::HostSlots& host : hosts) {
    fuzz::require(host.slots >= 1, "a host has a slot");
    fuzz::require(names.insert(host.host).second, "no host comes twice");
    written += host.host + " slots=" + std::to_string(host.slots) + "\n";
  }
  const int slots = rendezvous::total_slots(hosts);
  fuzz::require(slots >= 1 && slots <= kMaxWorld, "the slots are within their limit");
  fuzz::require(rendezvous::parse_hostfile(written, "hosts.txt") == hosts, "hosts survive their text");
  return 0;
}
