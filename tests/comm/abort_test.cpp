// SPDX-License-Identifier: Apache-2.0
//
// What a rank that gives up does to everybody who waits, in whatever group.
#include <barrier>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/comm/communicator.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/comm/failures.h"
#include "tests/comm/scripted_endpoint.h"
#include "tests/support/ranks.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Communicator;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Abort : public OverTransport {
 protected:
  // Rank 1 gives up while one of the two waits in `wait`; both must be told. Without that the wait would end
  // at the deadline, and say so.
  static void expect_both_told(
      const std::function<void(const Communicator& world, const Communicator& half)>& wait,
      int waiting_rank) {
    std::latch waits(1);
    run(2, [&](Communicator& world) {
      const Communicator part = world.split(0, world.rank(), "part");
      const Communicator other = world.split(0, world.rank(), "other");
      if (world.rank() == waiting_rank) {
        std::jthread later([&] {
          waits.wait();
          std::this_thread::sleep_for(20ms);
          if (waiting_rank == 1) world.abort("the generation has ended");
        });
        waits.count_down();
        EXPECT_THAT(failure_of([&] { wait(world, part); }),
                    AllOf(StartsWith("Aborted: "), HasSubstr("the generation has ended")));
      } else if (world.rank() == 1) {
        waits.wait();
        std::this_thread::sleep_for(20ms);
        world.abort("the generation has ended");
      } else {
        EXPECT_THAT(failure_of([&] { other.barrier(); }),
                    HasSubstr("rank 1 failed: the generation has ended"));
      }
      for (const Communicator& group : {world, part, other}) {
        EXPECT_THAT(failure_of([&] { group.barrier(); }),
                    AllOf(StartsWith("Aborted: "), HasSubstr("the generation has ended")));
      }
    });
  }

  static void expect_both_told(
      const std::function<void(const Communicator& world, const Communicator& half)>& wait) {
    expect_both_told(wait, 0);
    expect_both_told(wait, 1);
  }
};

TEST_P(Abort, EndsAWaitInTheWorld) {
  expect_both_told([](const Communicator& world, const Communicator&) { world.all_reduce(floats(1024)); });
}

TEST_P(Abort, EndsAWaitInAPart) {
  expect_both_told([](const Communicator&, const Communicator& part) { part.all_reduce(floats(1024)); });
}

TEST_P(Abort, EndsAWaitForAMessage) {
  expect_both_told(
      [](const Communicator& world, const Communicator&) { world.recv(1 - world.rank(), floats(1024)); });
}

TEST_P(Abort, EndsAMessageThatNobodyTakes) {
  expect_both_told([](const Communicator&, const Communicator& part) {
    for (int i = 0; i < 1000; ++i) part.send(1 - part.rank(), floats(1024));
  });
}

TEST_P(Abort, EndsWhatGoesOnInTheBackground) {
  expect_both_told([](const Communicator& world, const Communicator& part) {
    comm::Work first = world.all_reduce_async(floats(1024));
    comm::Work second = part.all_gather_async(floats(1024));
    EXPECT_THAT(failure_of([&] { second.wait(); }), HasSubstr("the generation has ended"));
    first.wait();
  });
}

TEST_P(Abort, BeforeAnyCallKeepsTheReason) {
  run(2, [](Communicator& world) {
    if (world.rank() == 0) {
      world.abort("never began");
      world.abort("a later reason");
    }
    EXPECT_THAT(failure_of([&] { world.barrier(); }),
                AllOf(StartsWith("Aborted: "), HasSubstr("never began")));
    EXPECT_THAT(failure_of([&] { world.split(0, 0, "part"); }), HasSubstr("never began"));
  });
}

TEST_P(Abort, LeavesFinishedOperationsAlone) {
  std::barrier both(2);
  run(2, [&](Communicator& world) {
    comm::Work done = world.all_reduce_async(floats(8));
    while (!done.test()) std::this_thread::yield();
    both.arrive_and_wait();
    if (world.rank() == 0) world.abort("all is done");
    both.arrive_and_wait();
    EXPECT_EQ(failure_of([&] { done.wait(); }), "nothing");
    EXPECT_THAT(failure_of([&] { world.barrier(); }), HasSubstr("all is done"));
  });
}

TEST_P(Abort, OtherWorldsGoOn) {
  run(1, [](Communicator& alone) {
    run(2, [](Communicator& world) {
      world.barrier();
      if (world.rank() == 0) world.abort("only this one");
      EXPECT_THAT(failure_of([&] { world.barrier(); }), HasSubstr("only this one"));
    });
    run(2, [](Communicator& world) { EXPECT_EQ(failure_of([&] { world.barrier(); }), "nothing"); });
    EXPECT_EQ(failure_of([&] { alone.barrier(); }), "nothing");
    alone.abort("now this one");
    EXPECT_THAT(failure_of([&] { alone.barrier(); }), HasSubstr("now this one"));
  });
}

// A peer that is frozen takes no reports: it is waited for once, however many groups there are, and not by
// those who wait here.
TEST(AbortWhilePeersTakeNoReports, LetsGoEverybodyHereFirst) {
  constexpr int kGroups = 5;
  Endpoints endpoints;
  std::vector<ScriptedEndpoint*> scripts;
  for (auto& real : transport::make_loopback(2)) {
    auto scripted = std::make_unique<ScriptedEndpoint>(std::move(real));
    scripts.push_back(scripted.get());
    endpoints.push_back(std::move(scripted));
  }
  run_ranks(std::move(endpoints), {.name = "dp"}, [&](Communicator& world) {
    std::vector<Communicator> groups;
    for (int i = 0; i < kGroups; ++i) groups.push_back(world.split(0, world.rank(), "part"));
    if (world.rank() == 1) {
      EXPECT_THAT(failure_of([&] { groups.back().barrier(); }), HasSubstr("the generation has ended"));
      return;
    }
    std::vector<comm::Work> works;
    for (const Communicator& group : groups) works.push_back(group.recv_async(1, floats(8)));
    int waits = 0;
    scripts[0]->while_failures_wait = [&] {
      ++waits;
      for (comm::Work& work : works) {
        EXPECT_THAT(failure_of([&] { work.test(); }), HasSubstr("the generation has ended"));
      }
    };
    world.abort("the generation has ended");
    scripts[0]->while_failures_wait = nullptr;
    EXPECT_EQ(waits, 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Abort, testing::Values("loopback", "shm", "tcp"), name_of_transport);

}  // namespace
}  // namespace lockstep::test
