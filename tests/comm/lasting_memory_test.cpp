// SPDX-License-Identifier: Apache-2.0
//
// Registered memory that peers read after its rank is gone. Processes that are killed: ShmProcesses.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"

#include "tests/support/error_of.h"
#include "tests/support/worlds.h"

namespace lockstep::comm {
namespace {

using transport::Place;

// The place of a buffer goes from rank 0 to rank 1.
ConstBytes shown(const Communicator& world, ConstBytes memory, std::size_t bytes) {
  Place place = world.rank() == 0 ? world.place_for(1, memory).value() : Place();
  world.broadcast(std::as_writable_bytes(std::span(&place, 1)), {.dtype = DType::uint8});
  return world.rank() == 0 ? memory : world.memory_of(0, place, bytes);
}

TEST(LastingMemory, IsReadInPlaceAndAfterItsRankHasGone) {
  for (const char* transport : {"shm", "routed"}) {
    SCOPED_TRACE(transport);
    constexpr std::size_t kCount = 100'000;
    const std::vector<int> hosts = test::hosts_of_routed(4);
    test::run_ranks(test::make_world(transport, 4), {.hosts = hosts}, [&](const Communicator& world) {
      const Communicator pair =
          world.split(hosts[static_cast<std::size_t>(world.rank())], world.rank(), "host");
      ASSERT_EQ(pair.size(), 2);
      EXPECT_TRUE(pair.memory_lasts(1 - pair.rank()));
      EXPECT_FALSE(pair.memory_lasts(pair.rank()));
      const Buffer other = pair.allocate(12);  // what is shown need not be the begin of a segment
      const Buffer buffer = pair.allocate(kCount * sizeof(std::uint32_t));
      const std::span<std::uint32_t> values = buffer.as<std::uint32_t>();
      const ConstBytes seen = shown(pair, buffer.bytes(), buffer.bytes().size());
      for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<std::uint32_t>(i * 7 + 1);
      EXPECT_TRUE(pair.is_there(1 - pair.rank()));
      pair.barrier();
      if (pair.rank() == 0) return;  // and its endpoint with it
      while (pair.is_there(0)) std::this_thread::yield();
      const std::span<const std::uint32_t> left(reinterpret_cast<const std::uint32_t*>(seen.data()), kCount);
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(left[i], i * 7 + 1);
    });
  }
}

TEST(LastingMemory, IsNotThatOfThreadsNorOfOtherHosts) {
  test::run_ranks(test::make_world("loopback", 2), {}, [](const Communicator& world) {
    EXPECT_FALSE(world.memory_lasts(1 - world.rank()));
    const Buffer buffer = world.allocate(8);
    EXPECT_EQ(test::error_of<UsageError>([&] { (void)world.place_for(1 - world.rank(), buffer.bytes()); }),
              "place_for: memory of rank " + std::to_string(1 - world.rank()) +
                  " of world does not outlive it here");
  });
  test::run_ranks(test::make_world("tcp", 2), {},
                  [](const Communicator& world) { EXPECT_FALSE(world.memory_lasts(1 - world.rank())); });
  const std::vector<int> hosts = test::hosts_of_routed(3);
  test::run_ranks(test::make_world("routed", 3), {.hosts = hosts}, [&](const Communicator& world) {
    for (Rank peer = 0; peer < 3; ++peer) {
      const bool is_near = peer != world.rank() && hosts[static_cast<std::size_t>(peer)] ==
                                                       hosts[static_cast<std::size_t>(world.rank())];
      EXPECT_EQ(world.memory_lasts(peer), is_near) << peer;
    }
  });
}

TEST(LastingMemory, IsWhatWasShownAndNothingElse) {
  test::run_ranks(test::make_world("shm", 2), {}, [](const Communicator& world) {
    std::vector<std::byte> own(64);
    const Buffer buffer = world.allocate(64);
    const Rank peer = 1 - world.rank();
    EXPECT_FALSE(world.place_for(peer, own));
    EXPECT_THROW((void)world.place_for(2, buffer.bytes()), UsageError);
    world.barrier();
    EXPECT_THROW((void)world.memory_of(peer, {.segment = 7, .offset = 0}, 8), DataError);
    EXPECT_THROW((void)world.memory_of(peer, {.segment = 0, .offset = std::uint64_t{1} << 60}, 8), DataError);
    EXPECT_THROW((void)world.memory_of(peer, {.segment = 0, .offset = 0}, std::size_t{1} << 60), DataError);
    world.barrier();
  });
}

// The peer hears of so many segments only when it looks, as it does while it waits for others.
TEST(LastingMemory, IsShownWhenThePeerHasHeardOfWhatCameBefore) {
  std::atomic<bool> there_is_no_room = false;
  test::run_ranks(test::make_world("shm", 2), {}, [&](const Communicator& world) {
    constexpr std::size_t kSegment = std::size_t{4} << 20;
    std::vector<Buffer> buffers;
    if (world.rank() == 0) {
      while (buffers.size() < 2000 && (buffers.empty() || world.place_for(1, buffers.back().bytes()))) {
        buffers.push_back(world.allocate(kSegment));
      }
      there_is_no_room = true;
      ASSERT_LT(buffers.size(), 2000U) << "there was always room";
    }
    Place place;
    if (world.rank() == 1) {
      there_is_no_room.wait(false);
      EXPECT_TRUE(world.is_there(0));
      world.barrier();
    } else {
      there_is_no_room.notify_all();
      world.barrier();
      buffers.back().as<int>().front() = 17;
      const std::optional<Place> told = world.place_for(1, buffers.back().bytes());
      ASSERT_TRUE(told);
      place = *told;
    }
    world.broadcast(std::as_writable_bytes(std::span(&place, 1)), {.dtype = DType::uint8});
    if (world.rank() == 1) {
      const ConstBytes seen = world.memory_of(0, place, kSegment);
      EXPECT_EQ(*reinterpret_cast<const int*>(seen.data()), 17);
    }
    world.barrier();
  });
}

}  // namespace
}  // namespace lockstep::comm
