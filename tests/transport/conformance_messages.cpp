// SPDX-License-Identifier: Apache-2.0
//
// Messages arrive whole, in order, and where they belong.
#include <cstring>
#include <deque>

#include "tests/transport/conformance.h"

namespace lockstep::transport {
namespace {

constexpr Envelope envelope_of(std::uint64_t sequence) {
  return {.contract = 77, .sequence = sequence};
}

const std::vector<std::size_t> kSizes = {1,     2,     7,       64,      65,        4096,         16 * 1024,
                                         16385, 32768, 100'003, 1 << 20, 3'333'337, (4 << 20) + 5};

// A buffer in registered or ordinary memory.
class TestBuffer {
 public:
  TestBuffer(Endpoint& endpoint, std::size_t bytes, bool registered)
      : endpoint_(endpoint),
        plain_(registered ? 0 : bytes),
        registered_(registered ? endpoint.allocate(bytes) : Bytes{}) {}
  TestBuffer(const TestBuffer&) = delete;
  TestBuffer& operator=(const TestBuffer&) = delete;
  ~TestBuffer() {
    if (!registered_.empty()) endpoint_.release(registered_);
  }
  Bytes bytes() { return registered_.empty() ? Bytes(plain_) : registered_; }
  void fill(ConstBytes values) { std::memcpy(bytes().data(), values.data(), values.size()); }

 private:
  Endpoint& endpoint_;
  std::vector<std::byte> plain_;
  Bytes registered_;
};

void send_one(Participant& me, Rank to, std::uint64_t number, std::size_t bytes, bool registered) {
  Channel& channel = me.endpoint.channel(to, 0);
  TestBuffer buffer(me.endpoint, bytes, registered);
  buffer.fill(distinct_bytes(me.rank(), to, number, bytes));
  channel.send(envelope_of(number), buffer.bytes());
  me.drive(channel, [&] { return channel.sends_done() == number + 1; });
}

void receive_one(Participant& me, Rank from, std::uint64_t number, std::size_t bytes, bool registered) {
  Channel& channel = me.endpoint.channel(from, 0);
  TestBuffer buffer(me.endpoint, bytes, registered);
  channel.receive(envelope_of(number), buffer.bytes());
  me.drive(channel, [&] { return channel.receives_done() == number + 1; });
  expect_same_bytes(buffer.bytes(), distinct_bytes(from, me.rank(), number, bytes),
                    std::to_string(bytes) + " bytes");
}

TEST_P(Conformance, CarriesEverySizeBetweenRegisteredAndOrdinaryMemory) {
  run(2, [](Participant& me) {
    std::uint64_t number = 0;
    for (std::size_t bytes : kSizes) {
      for (bool from_registered : {false, true}) {
        for (bool to_registered : {false, true}) {
          if (me.rank() == 0) send_one(me, 1, number, bytes, from_registered);
          if (me.rank() == 1) receive_one(me, 0, number, bytes, to_registered);
          ++number;
        }
      }
    }
  });
}

TEST_P(Conformance, RegisteredMemoryIsZeroFilledAlignedAndReusable) {
  run(1, [](Participant& me) {
    for (int round = 0; round < 3; ++round) {
      std::vector<Bytes> held;
      for (std::size_t bytes :
           {std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{100000}, std::size_t{5000000}}) {
        const Bytes memory = me.endpoint.allocate(bytes);
        ASSERT_EQ(memory.size(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0u);
        std::memset(memory.data(), round + 1, bytes);
        held.push_back(memory);
      }
      for (Bytes memory : held) {
        EXPECT_EQ(memory.front(), std::byte(round + 1));
        EXPECT_EQ(memory.back(), std::byte(round + 1));
        me.endpoint.release(memory);
      }
    }
  });
}

// What one rank sends to and receives from one peer on one stream, all posted at once.
struct Exchange {
  Channel* channel;
  Rank peer;
  StreamId stream;
  std::vector<std::vector<std::byte>> outgoing;
  std::vector<std::vector<std::byte>> incoming;
};

std::size_t mixed_size(std::uint64_t message) {
  constexpr std::size_t kCycle[] = {3, 40'000, 512, 70'001, 16, 5000};
  return kCycle[message % std::size(kCycle)] + message;
}

void exchange_with_all(Participant& me, StreamId streams, std::uint64_t messages) {
  std::deque<Exchange> exchanges;
  std::vector<Channel*> channels;
  for (Rank peer = 0; peer < me.world(); ++peer) {
    if (peer == me.rank()) continue;
    for (StreamId stream = 0; stream < streams; ++stream) {
      Exchange& exchange =
          exchanges.emplace_back(Exchange{&me.endpoint.channel(peer, stream), peer, stream, {}, {}});
      channels.push_back(exchange.channel);
      for (std::uint64_t message = 0; message < messages; ++message) {
        exchange.outgoing.push_back(
            distinct_bytes(me.rank(), peer, message + 100 * stream, mixed_size(message)));
        exchange.incoming.emplace_back(mixed_size(message));
      }
      for (std::uint64_t message = 0; message < messages; ++message) {
        exchange.channel->send(envelope_of(message), exchange.outgoing[message]);
        exchange.channel->receive(envelope_of(message), exchange.incoming[message]);
      }
    }
  }
  me.drive(channels, [&] {
    for (Channel* channel : channels) {
      if (channel->receives_done() < messages || channel->sends_done() < messages) return false;
    }
    return true;
  });
  for (const Exchange& exchange : exchanges) {
    for (std::uint64_t message = 0; message < messages; ++message) {
      expect_same_bytes(
          exchange.incoming[message],
          distinct_bytes(exchange.peer, me.rank(), message + 100 * exchange.stream, mixed_size(message)),
          "message " + std::to_string(message) + " of rank " + std::to_string(exchange.peer));
    }
  }
}

TEST_P(Conformance, KeepsMoreMessagesInOrderThanAnyRingHolds) {
  run(2, [](Participant& me) { exchange_with_all(me, 1, 300); });
}

TEST_P(Conformance, KeepsStreamsApartInBothDirections) {
  run(3, [](Participant& me) { exchange_with_all(me, 4, 20); });
}

TEST_P(Conformance, ServesFiveRanksAtOnce) {
  run(5, [](Participant& me) { exchange_with_all(me, 2, 12); });
}

TEST_P(Conformance, TheHighestStreamWorks) {
  run(2, [](Participant& me) {
    Channel& channel = me.endpoint.channel(1 - me.rank(), kMaxStreams - 1);
    const std::vector<std::byte> mine = distinct_bytes(me.rank(), 1 - me.rank(), 0, 1000);
    std::vector<std::byte> theirs(1000);
    channel.send(envelope_of(0), mine);
    channel.receive(envelope_of(0), theirs);
    me.drive(channel, [&] { return channel.receives_done() == 1 && channel.sends_done() == 1; });
    expect_same_bytes(theirs, distinct_bytes(1 - me.rank(), me.rank(), 0, 1000), "stream 255");
  });
}

TEST_P(Conformance, MessagesSentBeforeTheReceiveIsPostedAreKept) {
  run(2, [](Participant& me) {
    Channel& channel = me.endpoint.channel(1 - me.rank(), 0);
    const std::vector<std::byte> token(1);
    if (me.rank() == 0) {
      const std::vector<std::byte> early = distinct_bytes(0, 1, 0, 50'000);
      channel.send(envelope_of(0), early);
      std::vector<std::byte> answer(1);
      channel.receive(envelope_of(0), answer);
      me.drive(channel, [&] { return channel.receives_done() == 1 && channel.sends_done() == 1; });
      return;
    }
    channel.send(envelope_of(0), token);
    me.drive(channel, [&] { return channel.sends_done() == 1; });
    std::vector<std::byte> late(50'000);
    channel.receive(envelope_of(0), late);
    me.drive(channel, [&] { return channel.receives_done() == 1; });
    expect_same_bytes(late, distinct_bytes(0, 1, 0, 50'000), "early message");
  });
}

}  // namespace
}  // namespace lockstep::transport
