// SPDX-License-Identifier: Apache-2.0
//
// Calls in a process that has no memory left at all.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/transport/loopback/endpoint.h"
#include "lockstep/transport/shm/arena.h"
#include "lockstep/transport/tcp/limits.h"

#include "tests/comm/failures.h"
#include "tests/support/ranks.h"
#include "tests/support/starving.h"
#include "tests/transport/tcp_world.h"

namespace lockstep::test {
namespace {

using comm::Communicator;

using Call = std::function<void(Communicator&, Bytes)>;

constexpr std::size_t kElements = 1000;

// Both ranks make one call, rank 0 with memory for so many allocations. If it fails, either nobody has
// noticed and it can be made again, or the group is broken on both sides. A rank that had got all it wanted
// learns that from its next call.
Starved call_with(std::size_t allocations, const Call& call, bool was_made_before) {
  Starved starved;
  std::array<std::string, 2> failures;
  run_ranks(transport::make_loopback(2), {.name = "dp", .timeout = std::chrono::seconds(20)},
            [&](Communicator& comm) {
              std::vector<float> ones(kElements, 1.0F);
              std::vector<float> others(kElements);
              const Bytes data = std::as_writable_bytes(std::span(ones));
              if (was_made_before) call(comm, std::as_writable_bytes(std::span(others)));
              const bool starves = comm.rank() == 0;
              if (starves) starved = with_memory_for(allocations, [&] { call(comm, data); });
              std::string& failure = failures[static_cast<std::size_t>(comm.rank())];
              failure = !starves || starved.threw ? failure_of([&] { call(comm, data); }) : "nothing";
              if (failure != "nothing") return;
              EXPECT_EQ(ones, std::vector<float>(kElements, 2.0F)) << "rank " << comm.rank();
              failure = failure_of([&] { comm.barrier(); });
            });
  EXPECT_EQ(failures[0] != "nothing", failures[1] != "nothing") << failures[0] << " / " << failures[1];
  EXPECT_THAT(failures, testing::Each(testing::Not(testing::HasSubstr("Timeout")))) << "they are told";
  return starved;
}

// However much memory there is. The first hundreds of allocations, of which most are for the plan, are tried
// one by one, more of them in larger and larger steps.
void expect_consistent_ends(const Call& call, bool was_made_before = false) {
  for (std::size_t allocations = 0; allocations < 1'000'000; allocations += 1 + allocations / 64) {
    SCOPED_TRACE(allocations);
    if (!call_with(allocations, call, was_made_before).ran_out || testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "a call makes no million allocations";
}

TEST(Starved, ACollectiveFailsOnAllRanksOrOnNone) {
  for (const comm::Algorithm algorithm :
       {comm::Algorithm::direct, comm::Algorithm::ring, comm::Algorithm::one_shot}) {
    expect_consistent_ends(
        [algorithm](Communicator& comm, Bytes data) { comm.all_reduce(data, {.algorithm = algorithm}); });
  }
}

// Its plan is known, and what it runs with is there.
TEST(Starved, SoDoesOneThatWasMadeBefore) {
  expect_consistent_ends([](Communicator& comm, Bytes data) { comm.all_reduce(data); }, true);
}

TEST(Starved, SoDoesOneInTheBackground) {
  expect_consistent_ends([](Communicator& comm, Bytes data) { comm.all_reduce_async(data).wait(); });
}

TEST(Starved, SoDoMessages) {
  expect_consistent_ends([](Communicator& comm, Bytes data) {
    std::vector<float> two(kElements, 2.0F);
    if (comm.rank() == 0) {
      comm.recv(1, data);
    } else {
      comm.send(0, std::as_writable_bytes(std::span(two)));
      std::copy(two.begin(), two.end(), reinterpret_cast<float*>(data.data()));
    }
  });
}

// With what is under way, and its groups.
TEST(Starved, ACommunicatorCanAlwaysGo) {
  std::array<std::byte, 8> data{};  // outlives all ranks
  run_ranks(2, [&](Communicator& comm) {
    std::vector<Communicator> mine = {comm.split(0, comm.rank(), "part"), std::move(comm)};
    if (mine[0].rank() == 1) {
      EXPECT_NE(failure_of([&] { mine[1].barrier(); }), "nothing");
      return;
    }
    mine[1].recv_async(1, data);
    EXPECT_FALSE(with_memory_for(0, [&] { mine.clear(); }).threw);
  });
}

// What is half written needs a copy. Without memory for one the connection ends: nothing may read later what
// the caller has freed. Messages that were not given up learn why.
TEST(Starved, MessagesUnderWayCanAlwaysBeGivenUp) {
  const std::vector<std::byte> payload(transport::tcp::kEagerBytes);
  auto world = transport::make_tcp_world(2, 1);
  fill_socket(*world[0], 1, payload);
  const Starved starved = with_memory_for(0, [&] {
    for (transport::StreamId stream = 1; stream < transport::kMaxStreams; ++stream) {
      world[0]->channel(1, stream).abandon();
    }
  });
  EXPECT_FALSE(starved.threw);
  EXPECT_FALSE(world[0]->alive(1));
  EXPECT_THROW(world[0]->channel(1, 0).pump(), std::bad_alloc);
}

// Half of it has been taken, and what follows would look like frames that break the format.
TEST(Starved, AFrameThatFindsNoMemoryIsNotBlamedOnItsSender) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  auto world = transport::make_tcp_world(2, 1);
  const std::vector<std::byte> unasked(1000);
  transport::Channel& sender = world[1]->channel(0, 0);
  sender.send({1, 1}, unasked);
  while (sender.sends_done() == 0 && !deadline.passed()) sender.pump();
  transport::Channel& receiver = world[0]->channel(1, 0);
  const Starved starved = with_memory_for(0, [&] {
    while (world[0]->alive(1) && !deadline.passed()) {
    }
  });
  EXPECT_FALSE(starved.threw);
  EXPECT_THROW(receiver.pump(), std::bad_alloc);
  EXPECT_THROW(receiver.pump(), std::bad_alloc) << "nor later";
}

// While it passes on what it has sent, there is something to take.
TEST(Starved, ARankCanAlwaysLeave) {
  const std::vector<std::byte> payload(transport::tcp::kEagerBytes);
  auto world = transport::make_tcp_world(2, 1);
  fill_socket(*world[0], 1, payload);
  for (transport::StreamId stream = 0; stream < transport::kMaxStreams; ++stream) {
    world[0]->channel(1, stream).abandon();  // what is half written is copied now
  }
  world[1]->publish(0, 0, {});
  world[1]->push_notice(0, 0);
  EXPECT_FALSE(with_memory_for(0, [&] { world[0].reset(); }).threw);
}

// The first segment of an arena holds this.
constexpr std::size_t kFirstSegment = std::size_t{1} << 20;

TEST(Starved, AnArenaForgetsASegmentThatItCannotKeep) {
  bool ran_out = true;
  for (std::size_t allocations = 0; ran_out; ++allocations) {
    SCOPED_TRACE(allocations);
    transport::Arena arena;
    const Starved starved = with_memory_for(allocations, [&] { arena.allocate(100); });
    ran_out = starved.ran_out;
    if (!starved.threw) continue;
    const Bytes block = arena.allocate(kFirstSegment);
    ASSERT_EQ(arena.segments(), 1U);
    EXPECT_EQ(arena.locate(block).value().offset, 0U);
    std::ranges::fill(block, std::byte{1});
  }
}

TEST(Starved, AnArenaLosesNoBlockThatItCannotGive) {
  bool ran_out = true;
  for (std::size_t allocations = 0; ran_out; ++allocations) {
    SCOPED_TRACE(allocations);
    transport::Arena arena;
    arena.release(arena.allocate(100));
    Bytes block;
    const Starved starved = with_memory_for(allocations, [&] { block = arena.allocate(kFirstSegment / 2); });
    ran_out = starved.ran_out;
    if (!starved.threw) arena.release(block);
    arena.allocate(kFirstSegment);
    EXPECT_EQ(arena.segments(), 1U) << "all of the first is free";
  }
}

TEST(Starved, AnArenaTakesBackWithoutMemory) {
  transport::Arena arena;
  const Bytes first = arena.allocate(100);
  const Bytes second = arena.allocate(100);
  const Bytes third = arena.allocate(100);
  EXPECT_FALSE(with_memory_for(0, [&] { arena.release(second); }).threw);
  EXPECT_EQ(arena.allocate(100).data(), second.data());
  for (const Bytes block : {first, third, second}) {
    EXPECT_FALSE(with_memory_for(0, [&] { arena.release(block); }).threw);
  }
  arena.allocate(kFirstSegment);
  EXPECT_EQ(arena.segments(), 1U);
}

}  // namespace
}  // namespace lockstep::test
