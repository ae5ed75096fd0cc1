// SPDX-License-Identifier: Apache-2.0
//
// What a peer published about its operation, read to explain a disagreement.
#include "lockstep/comm/contract.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const ConstBytes bytes = input.take(transport::kNoticeHeadBytes);
  transport::NoticeHead head = {};
  std::copy(bytes.begin(), bytes.end(), head.begin());
  const comm::Contract contract = comm::from_notice(head);
  fuzz::require(!comm::describe(contract).empty(), "a contract can be shown");
  fuzz::require(!comm::operation_name(contract).empty(), "an operation has a name");
  const comm::Contract again = comm::from_notice(comm::to_notice(contract));
  fuzz::require(again == contract, "a contract survives its notice");
  fuzz::require(comm::digest_of(again) == comm::digest_of(contract), "equal contracts have equal digests");
  return 0;
}
