// SPDX-License-Identifier: Apache-2.0
//
// Two handshakes that share a secret, and between them somebody who splits what they say as he likes and
// changes, adds and drops bytes. Byte 0 chooses; then pairs of (how many bytes to pass on, what to do).
#include <array>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/handshake.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::transport;

namespace {

Nonce nonce_of(std::uint8_t fill) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(fill));
  return nonce;
}

struct Talker {
  Handshake handshake;
  Identity truth;
  std::vector<std::byte> incoming = {};  // what the one in the middle lets through
  bool refused = false;
};

// The bytes on their way to a talker, changed or not.
bool pass_on(fuzz::Input& input, std::vector<std::byte>& on_the_way, Talker& to) {
  const std::size_t count = std::min<std::size_t>(1 + input.number<std::uint8_t>(), on_the_way.size());
  std::vector<std::byte> piece(on_the_way.begin(), on_the_way.begin() + static_cast<std::ptrdiff_t>(count));
  on_the_way.erase(on_the_way.begin(), on_the_way.begin() + static_cast<std::ptrdiff_t>(count));
  bool changed = false;
  const std::uint8_t action = input.number<std::uint8_t>();
  if (action % 8 == 1 && !piece.empty()) {
    const std::uint8_t flip = input.number<std::uint8_t>();
    piece[action / 8 % piece.size()] ^= static_cast<std::byte>(flip);
    changed = flip != 0;
  } else if (action % 8 == 2) {
    const ConstBytes extra = input.take(action / 8);
    piece.insert(piece.end(), extra.begin(), extra.end());
    changed = !extra.empty();
  } else if (action % 8 == 3 && !piece.empty()) {
    piece.clear();
    changed = true;
  }
  to.incoming.insert(to.incoming.end(), piece.begin(), piece.end());
  return changed;
}

void listen(Talker& talker, const Identity& other) {
  if (talker.refused || talker.handshake.done()) return;
  const std::size_t wanted = talker.handshake.wanted();
  fuzz::require(wanted > 0 && wanted <= Handshake::kMaxBytes, "a handshake under way wants something");
  std::size_t used = 0;
  talker.refused =
      !fuzz::accepts<AuthenticationError>([&] { used = talker.handshake.feed(talker.incoming); });
  fuzz::require(used <= talker.incoming.size(), "no more is used than was given");
  talker.incoming.erase(talker.incoming.begin(), talker.incoming.begin() + static_cast<std::ptrdiff_t>(used));
  fuzz::require(!talker.refused || !talker.handshake.done(), "who is refused has proved nothing");
  if (talker.handshake.done()) {
    fuzz::require(*talker.handshake.peer() == other, "who has proved itself is who it says");
    fuzz::require(talker.handshake.wanted() == 0, "a finished handshake wants nothing");
  }
}

void speak(Talker& talker, std::vector<std::byte>& on_the_way) {
  const std::vector<std::byte> output = talker.handshake.take_output();
  on_the_way.insert(on_the_way.end(), output.begin(), output.end());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Secret secret = Secret::from_value("a secret that is long enough");
  fuzz::Input input(data, size);
  const std::uint8_t choice = input.number<std::uint8_t>();
  const Identity of_dialer = {.role = "tcp", .rank = 1, .run = "run-1", .generation = 3};
  const Identity of_listener = {.role = "tcp", .rank = 0, .run = "run-1", .generation = 3};
  Talker dialer = {Handshake(Side::dialer, of_dialer, secret, nonce_of(1)), of_dialer};
  Talker listener = {Handshake(Side::listener, of_listener, secret, nonce_of(choice % 4 == 3 ? 1 : 2)),
                     of_listener};
  const bool same_nonce = choice % 4 == 3;

  bool changed = same_nonce;
  std::vector<std::byte> to_listener;
  std::vector<std::byte> to_dialer;
  // Every turn moves at least one byte unless all is said.
  for (int turn = 0; turn < 2 * static_cast<int>(Handshake::kMaxBytes); ++turn) {
    speak(dialer, to_listener);
    speak(listener, to_dialer);
    if (to_listener.empty() && to_dialer.empty()) break;
    changed |= pass_on(input, to_listener, listener);
    listen(listener, of_dialer);
    changed |= pass_on(input, to_dialer, dialer);
    listen(dialer, of_listener);
  }
  if (!changed) {
    fuzz::require(dialer.handshake.done() && listener.handshake.done(), "honest talkers agree");
  }
  return 0;
}
