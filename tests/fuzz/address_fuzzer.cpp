// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/transport/connect/address.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  transport::Address address;
  if (!fuzz::accepts<UsageError>([&] { address = transport::parse_address(text); })) return 0;
  fuzz::require(address.is_unix() == address.host.empty(), "an address is a host or a Unix socket");
  fuzz::require(transport::parse_address(address.to_string()) == address, "an address survives its text");
  transport::is_loopback(address);
  return 0;
}
