// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a stranger who does not know the secret, in pieces: byte 0 chooses the side, then each piece is
// one byte of length and the bytes.
#include "lockstep/base/error.h"
#include "lockstep/transport/connect/handshake.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::transport;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Secret secret = Secret::from_value("nobody in this file knows it");
  fuzz::Input input(data, size);
  const Side side = input.number<std::uint8_t>() % 2 == 0 ? Side::listener : Side::dialer;
  Nonce nonce;
  nonce.fill(std::byte{9});
  Handshake handshake(side, {.role = "tcp", .rank = 0, .run = "run-1", .generation = 3}, secret, nonce);
  std::size_t total = 0;
  while (!input.empty()) {
    const ConstBytes piece = input.take(1 + input.number<std::uint8_t>());
    std::size_t used = 0;
    if (!fuzz::accepts<AuthenticationError>([&] { used = handshake.feed(piece); })) break;
    fuzz::require(used <= piece.size(), "no more is used than was given");
    total += used;
    fuzz::require(total <= Handshake::kMaxBytes, "a stranger is read only so far");
    handshake.take_output();
  }
  fuzz::require(!handshake.done(), "a stranger proves nothing");
  handshake.take_output();
  return 0;
}
