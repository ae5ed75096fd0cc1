// SPDX-License-Identifier: Apache-2.0
//
// A rank of the same host that has proved itself and then greets us, announces memory and names places in it,
// in any way at all. Every message is what an honest one would be, changed as the input says: a count of
// changes, each a place and what is added there; and which descriptors come with it.
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/shm/layout.h"
#include "lockstep/transport/shm/passing.h"
#include "lockstep/transport/shm/peer.h"
#include "lockstep/transport/shm/segment.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::transport;

namespace {

using Message = std::vector<std::byte>;

constexpr int kWorld = 2;
constexpr Rank kMe = 0;
constexpr Rank kPeer = 1;
constexpr std::size_t kGreetingBytes = 24;
constexpr std::size_t kAnnouncementBytes = 16;
constexpr std::size_t kMaxActions = 16;

// Only what carries descriptors is used of it.
class SocketConnection final : public Connection {
 public:
  explicit SocketConnection(Descriptor socket) : socket_(std::move(socket)) {}

  std::ptrdiff_t try_read(Bytes) override { return kClosed; }
  std::ptrdiff_t try_write(std::span<const ConstBytes>) override { return kClosed; }
  Readiness awaits() const override { return Readiness::read; }
  int fd() const override { return socket_.get(); }
  std::string close_reason() const override { return "it was never open"; }

 private:
  Descriptor socket_;
};

struct SocketPair {
  Descriptor ours;
  Descriptor theirs;
};

SocketPair socket_pair() {
  std::array<int, 2> ends{-1, -1};
  fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0,
                "a pair of sockets can be made");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// What the two ranks show, and what else a descriptor can be.
struct Shown {
  Descriptor control = make_segment(control_segment_bytes(kWorld), Reserve::when_touched);
  Descriptor bell{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  Arena arena;
  Descriptor nothing = make_segment(0, Reserve::when_touched);
  Descriptor unsealed{::memfd_create("unsealed", MFD_CLOEXEC)};
  Message greeting;
  Message announcement;

  // The honest messages are heard from an honest peer.
  Shown() {
    arena.allocate(4096);
    greeting = greeting_of_peer();
    announcement = announcement_of_peer();
  }

  Greeting of(Rank rank) const {
    return {.rank = rank, .world = kWorld, .control_fd = control.get(), .bell_fd = bell.get()};
  }

  int descriptor(std::uint8_t kind) const {
    const std::array all = {control.get(), bell.get(), arena.segment_fd(0), nothing.get(), unsealed.get()};
    return all[kind % all.size()];
  }

 private:
  Message greeting_of_peer() {
    SocketPair pair = socket_pair();
    ::shutdown(pair.ours.get(), SHUT_WR);
    const bool answered = fuzz::accepts<PeerLost>([&] {
      ShmPeer(std::make_unique<SocketConnection>(std::move(pair.theirs)), of(kPeer), kMe, arena,
              Deadline::after({}));
    });
    fuzz::require(!answered, "nobody answers the one that is listened to");
    return heard(pair.ours, kGreetingBytes, 2);
  }

  Message announcement_of_peer() {
    SocketPair pair = socket_pair();
    Message answer = greeting;
    answer[kGreetingBytes - 8] = static_cast<std::byte>(kMe);
    pass(pair.ours.get(), answer, std::array{control.get(), bell.get()});
    ShmPeer peer(std::make_unique<SocketConnection>(std::move(pair.theirs)), of(kPeer), kMe, arena,
                 Deadline::after({}));
    peer.announce();
    heard(pair.ours, kGreetingBytes, 2);
    return heard(pair.ours, kAnnouncementBytes, 1);
  }

  static Message heard(const Descriptor& socket, std::size_t bytes, std::size_t descriptors) {
    Message message(bytes);
    std::vector<Descriptor> passed;
    fuzz::require(receive_passed(socket.get(), message, descriptors, passed) == Passing::done,
                  "an honest peer speaks");
    return message;
  }
};

Message changed(Message message, fuzz::Input& input) {
  const int changes = input.number<std::uint8_t>() % 4;
  for (int i = 0; i < changes; ++i) {
    std::byte& byte = message[input.number<std::uint8_t>() % message.size()];
    byte = static_cast<std::byte>(static_cast<unsigned>(byte) + input.number<std::uint8_t>());
  }
  if (input.number<std::uint8_t>() % 16 == 15) message.resize(1 + input.number<std::uint8_t>() % 64);
  return message;
}

void say(const Descriptor& socket, const Message& message, std::vector<int> honest, const Shown& shown,
         fuzz::Input& input) {
  if (input.number<std::uint8_t>() % 4 == 3) {
    honest.resize(1 + input.number<std::uint8_t>() % kMaxPassed);
    for (int& fd : honest) fd = shown.descriptor(input.number<std::uint8_t>());
  }
  pass(socket.get(), message, honest);
}

void name_a_place(ShmPeer& peer, fuzz::Input& input) {
  const Place place{.segment = input.number<std::uint8_t>(), .offset = input.number<std::uint64_t>()};
  const auto bytes = input.number<std::uint64_t>();
  std::byte* memory = nullptr;
  if (!fuzz::accepts<DataError>([&] { memory = peer.resolve(place, bytes); }) || bytes == 0) return;
  fuzz::require(memory[0] == std::byte{} && memory[bytes - 1] == std::byte{}, "all of a place can be read");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Shown shown;
  fuzz::Input input(data, size);
  SocketPair pair = socket_pair();
  say(pair.theirs, changed(shown.greeting, input), {shown.control.get(), shown.bell.get()}, shown, input);
  std::optional<ShmPeer> peer;
  const bool met = fuzz::accepts<DataError, PeerLost, Timeout>([&] {
    peer.emplace(std::make_unique<SocketConnection>(std::move(pair.ours)), shown.of(kMe), kPeer, shown.arena,
                 Deadline::after({}));
  });
  if (!met) return 0;
  for (std::size_t action = 0; action < kMaxActions && !input.empty(); ++action) {
    Message next = shown.announcement;
    next[4] = static_cast<std::byte>(action);
    say(pair.theirs, changed(std::move(next), input), {shown.arena.segment_fd(0)}, shown, input);
    name_a_place(*peer, input);
  }
  return 0;
}
