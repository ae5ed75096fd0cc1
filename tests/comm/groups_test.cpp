// SPDX-License-Identifier: Apache-2.0
//
// Groups that come and go.
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/group_numbers.h"
#include "lockstep/mesh/mesh.h"

#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/worlds.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using testing::HasSubstr;

constexpr int kMostGroups = 31;  // beside the world

template <typename T>
Bytes bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void expect_it_adds(const Communicator& group) {
  float one = 1;
  group.all_reduce(bytes_of(one));
  EXPECT_EQ(one, static_cast<float>(group.size())) << group.name();
}

class Groups : public testing::TestWithParam<std::string> {
 protected:
  static void run(int world, const std::function<void(Communicator&)>& body) {
    run_ranks(make_world(GetParam(), world), {}, body);
  }
};

TEST_P(Groups, AHundredInARow) {
  run(3, [](Communicator& world) {
    for (int i = 0; i < 100; ++i) {
      const int colour = i % 3 == 0 ? 0 : world.rank() % 2;
      const Communicator group = world.split(colour, world.rank(), fmt::format("group {}", i));
      // Groups make different numbers of calls on their streams.
      for (int calls = 0; calls < i % 4 + colour; ++calls) expect_it_adds(group);
      if (group.size() < 2 || group.rank() > 1) continue;
      int word = group.rank() == 0 ? i : 0;
      if (group.rank() == 0) group.send(1, bytes_of(word));
      if (group.rank() == 1) group.recv(0, bytes_of(word));
      EXPECT_EQ(word, i);
    }
    expect_it_adds(world);
  });
}

TEST_P(Groups, OfGroups) {
  run(4, [](Communicator& world) {
    for (int i = 0; i < 50; ++i) {
      const Communicator half = world.split(world.rank() / 2, world.rank(), "half");
      const Communicator pair = half.split(i % 2, -half.rank(), "pair");
      EXPECT_EQ(pair.rank(), 1 - half.rank());
      expect_it_adds(pair);
      expect_it_adds(half);
      const Communicator alone = half.split(-1, 0, "alone");
      EXPECT_EQ(alone.size(), 1);
      expect_it_adds(alone);
    }
  });
}

// Ranks that do so in different orders would otherwise give the same place to two groups.
TEST_P(Groups, ThreadsSplitDifferentOnesAtTheSameTime) {
  run(3, [](Communicator& world) {
    const std::array parents = {world.split(0, world.rank(), "a"), world.split(0, -world.rank(), "b"),
                                world.split(world.rank() / 2, 0, "c")};
    std::array<std::exception_ptr, parents.size()> errors;
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < parents.size(); ++i) {
        threads.emplace_back([&, i] {
          try {
            for (int turn = 0; turn < 30; ++turn) {
              expect_it_adds(parents[i].split(turn % 2, 0, fmt::format("{} {}", parents[i].name(), turn)));
            }
          } catch (...) {
            errors[i] = std::current_exception();
          }
        });
      }
    }
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
    expect_it_adds(world);
  });
}

TEST_P(Groups, TooManyAreRefusedOnAllRanksAlike) {
  std::array<std::string, 2> refusals;
  run(2, [&](Communicator& world) {
    std::vector<Communicator> groups;
    for (int i = 0; i < kMostGroups; ++i) groups.push_back(world.split(0, world.rank(), "kept"));
    try {
      world.split(0, world.rank(), "too many");
    } catch (const UsageError& error) {
      refusals[world.rank()] = error.what();
    }
    expect_it_adds(world);
    expect_it_adds(groups.back());
    groups.erase(groups.begin() + 7);
    expect_it_adds(world.split(0, world.rank(), "in its place"));
  });
  EXPECT_EQ(
      refusals[0],
      "cannot make group 'too many': the 31 that are possible beside the world exist already or have failed; "
      "let go of one first");
  EXPECT_EQ(refusals[1], refusals[0]);
}

// Every rank has a bit of its own, so the sum tells who is in a group.
TEST_P(Groups, AlongAnAxisOfAMeshAddWhatItsRanksHave) {
  for (const MeshShape& shape :
       {MeshShape{.pipeline = 2, .data = 2, .tensor = 2}, MeshShape{.pipeline = 3, .data = 1, .tensor = 2},
        MeshShape{.pipeline = 1, .data = 3, .tensor = 2}, MeshShape{.pipeline = 1, .data = 5, .tensor = 1}}) {
    const Mesh mesh(shape.pipeline * shape.data * shape.tensor, shape);
    run(mesh.world(), [&](Communicator& world) {
      for (const Axis axis : kAllAxes) {
        SCOPED_TRACE(fmt::format("{} of {}x{}x{} on rank {}", name_of(axis), shape.pipeline, shape.data,
                                 shape.tensor, world.rank()));
        const Communicator group = world.split(mesh, axis);
        EXPECT_EQ(group.size(), mesh.size(axis));
        EXPECT_EQ(group.rank(), mesh.place_in_group(world.rank(), axis));
        std::int64_t members = 0;
        for (const Rank rank : mesh.group_of(world.rank(), axis)) members |= std::int64_t{1} << rank;
        std::int64_t sum = std::int64_t{1} << world.rank();
        group.all_reduce(bytes_of(sum), {.dtype = DType::int64});
        EXPECT_EQ(sum, members);
      }
    });
  }
}

TEST_P(Groups, ByAMeshOfOtherRanksAreRefused) {
  run(3, [](Communicator& world) {
    EXPECT_EQ(error_of<UsageError>([&] { world.split(Mesh(4, {}), Axis::data); }),
              "cannot split world by a mesh of 4 ranks: it has 3");
    expect_it_adds(world);
  });
}

TEST_P(Groups, WhatWasNeverReceivedDoesNotReachTheNextGroup) {
  run(2, [](Communicator& world) {
    int word = 1;
    {
      const Communicator careless = world.split(0, world.rank(), "careless");
      if (world.rank() == 0) careless.send_async(1, bytes_of(word)).test();
    }
    for (int i = 0; i < 3; ++i) {
      const Communicator next = world.split(0, world.rank(), "next");
      int other = world.rank() == 0 ? 2 : 0;
      if (world.rank() == 0) next.send(1, bytes_of(other));
      if (world.rank() == 1) next.recv(0, bytes_of(other));
      EXPECT_EQ(other, 2);
    }
  });
}

TEST_P(Groups, AFailedOneLeavesTheOthersAlone) {
  run(2, [](Communicator& world) {
    std::array<float, 2> data{};
    const auto disagree = [&](const Communicator& group) {
      group.all_reduce(std::as_writable_bytes(std::span(data).first(world.rank() == 0 ? 1 : 2)));
    };
    for (int i = 0; i < 5; ++i) {
      const Communicator broken = world.split(0, world.rank(), "broken");
      EXPECT_THROW(disagree(broken), CommError);
    }
    for (int i = 0; i < 50; ++i) expect_it_adds(world.split(0, world.rank(), "good"));
    // Calls are counted by group, whatever its streams were used for before.
    const Communicator late = world.split(0, world.rank(), "late");
    expect_it_adds(late);
    try {
      disagree(late);
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("all_reduce #1 on late"));
    }
  });
}

TEST(GroupHosts, AreThoseOfItsRanks) {
  run_ranks(make_world("loopback", 4), {.hosts = {0, 0, 1, 1}}, [](comm::Communicator& world) {
    EXPECT_EQ(world.hosts(), (std::vector<int>{0, 0, 1, 1}));
    const comm::Communicator part = world.split(world.rank() % 2, world.rank(), "part");
    EXPECT_EQ(part.hosts(), (std::vector<int>{0, 1}));
  });
  EXPECT_EQ(comm::Communicator().hosts(), std::vector<int>{0});
}

std::vector<comm::GroupBid> bids(std::size_t ranks) {
  return std::vector<comm::GroupBid>(ranks);
}

TEST(GroupNumbers, TheSmallestThatIsFreeForAllIsTaken) {
  auto three = bids(3);
  EXPECT_EQ(comm::agreed_number(three), 0u);
  three[0].surplus[0] = comm::GroupBid::kTaken;
  three[2].surplus[1] = comm::GroupBid::kTaken;
  EXPECT_EQ(comm::agreed_number(three), 2u);
  EXPECT_EQ(comm::agreed_number(three, 5), 5u);
  three[1].surplus[comm::kMostGroups - 1] = comm::GroupBid::kTaken;
  EXPECT_EQ(comm::agreed_number(three, comm::kMostGroups - 1), 2u);
  three[1].surplus.fill(comm::GroupBid::kTaken);
  EXPECT_EQ(comm::agreed_number(three), std::nullopt);
}

TEST(GroupNumbers, NumbersWithMessagesUnderWayAreNot) {
  auto two = bids(2);
  two[0].surplus[0] = 5;
  two[1].surplus[0] = -4;
  EXPECT_EQ(comm::agreed_number(two), 1u);
  two[1].surplus[0] = -5;
  EXPECT_EQ(comm::agreed_number(two), 0u);
}

TEST(GroupNumbers, ThoseOfFailedGroupsStayTaken) {
  using State = comm::GroupNumbers::State;
  comm::GroupNumbers numbers;
  numbers.take(0);
  numbers.take(1);
  EXPECT_EQ(numbers.entry(1).state, State::taken);
  const std::vector<Rank> pair = {0, 2};
  const std::vector<Rank> other = {0, 5};
  numbers.give_back(0, {.members = pair, .next_sequence = 10, .failed = true});
  numbers.give_back(1, {.members = pair, .next_sequence = 7});
  EXPECT_EQ(numbers.entry(0).state, State::failed);
  EXPECT_EQ(numbers.entry(1).state, State::ended);
  EXPECT_EQ(numbers.next_sequence(), 10u);
  EXPECT_THROW(numbers.take(0), InternalError);
  EXPECT_NO_THROW(numbers.take(1));
  numbers.give_back(1, {.members = other, .next_sequence = 8});
  EXPECT_THAT(numbers.entry(1).members, testing::ElementsAre(0, 2, 5));
}

TEST(GroupNumbers, AClaimHoldsOnlyWhatHasNotChanged) {
  using State = comm::GroupNumbers::State;
  comm::GroupNumbers numbers;
  const std::uint64_t before = numbers.entry(3).changes;
  EXPECT_TRUE(numbers.try_take(3, before));
  EXPECT_FALSE(numbers.try_take(3, numbers.entry(3).changes));
  numbers.put_back(3);
  EXPECT_EQ(numbers.entry(3).state, State::fresh);
  EXPECT_FALSE(numbers.try_take(3, before)) << "messages may have been sent under it meanwhile";
  EXPECT_TRUE(numbers.try_take(3, numbers.entry(3).changes));
}

INSTANTIATE_TEST_SUITE_P(Transports, Groups, testing::Values("loopback", "shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lockstep::test
