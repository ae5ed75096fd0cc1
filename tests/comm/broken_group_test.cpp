// SPDX-License-Identifier: Apache-2.0
//
// What one failed or cancelled operation does to the others of its group, at all ranks.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <latch>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/comm/communicator.h"

#include "tests/comm/failures.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Algorithm;
using comm::Communicator;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class BrokenGroup : public OverTransport {};

TEST_P(BrokenGroup, ABrokenGroupSaysSoAndOthersGoOn) {
  run(2, [](Communicator& world) {
    Communicator broken = world.split(0, world.rank(), "broken");
    const std::string first = failure_of([&] { broken.all_reduce(floats(world.rank() == 0 ? 10 : 11)); });
    EXPECT_THAT(first, HasSubstr("all_reduce #0 on broken"));
    EXPECT_THAT(failure_of([&] { broken.barrier(); }),
                AllOf(HasSubstr("Aborted: the group is unusable since an earlier failure"),
                      HasSubstr("#0 on broken")));
    world.barrier();
    std::vector<float> ones(5000, 1.0F);
    world.all_reduce(std::as_writable_bytes(std::span(ones)));
    EXPECT_EQ(ones, std::vector<float>(5000, 2.0F));
  });
}

TEST_P(BrokenGroup, CancelAbortsBothSides) {
  run(2, [](Communicator& comm) {
    if (comm.rank() == 0) {
      comm::Work work = comm.all_reduce_async(floats(1024));
      work.cancel();
      EXPECT_THAT(failure_of([&] { work.wait(); }),
                  HasSubstr("Aborted: all_reduce #0 on dp was cancelled by its caller"));
    } else {
      comm::Work work = comm.barrier_async({.stream = 1});
      EXPECT_THAT(failure_of([&] { work.wait(); }), HasSubstr("cancelled by its caller"));
    }
  });
}

TEST_P(BrokenGroup, ARootThatOnlySendsLearnsOfAFailure) {
  std::barrier cancelled(2);
  run(2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      comm::Work work = comm.broadcast_async(floats(64), {.root = 0});
      work.cancel();
      EXPECT_NE(failure_of([&] { work.wait(); }), "nothing");
    }
    cancelled.arrive_and_wait();
    if (comm.rank() == 1) return;
    EXPECT_THAT(failure_of([&] { comm.broadcast(floats(64), {.root = 0}); }),
                AnyOf(HasSubstr("was cancelled by its caller"), HasSubstr("is gone")));
  });
}

// A rank that comes late hears of a failure from all who know of it, and says who was first.
TEST_P(BrokenGroup, OnlyTheFirstCauseIsShown) {
  std::latch others_failed(2);
  run(3, [&](Communicator& comm) {
    std::string failure;
    if (comm.rank() == 2) {
      comm::Work work = comm.barrier_async({.stream = 1});
      work.cancel();
      failure = failure_of([&] { work.wait(); });
    } else {
      if (comm.rank() == 1) others_failed.wait();
      failure = failure_of([&] { comm.all_reduce(floats(8)); });
      EXPECT_EQ(failure,
                "Aborted: all_reduce #0 on dp: rank 2 failed: barrier #0 on dp was cancelled by its caller");
    }
    if (comm.rank() != 1) others_failed.count_down();
    EXPECT_THAT(failure_of([&] { comm.barrier(); }), HasSubstr("unusable since an earlier failure"));
  });
}

TEST_P(BrokenGroup, QueuedOperationsFailWithTheFirst) {
  run(
      2,
      [](Communicator& comm) {
        if (comm.rank() == 1) {
          EXPECT_THAT(failure_of([&] {
                        comm.all_reduce(floats(8));
                        comm.all_reduce(floats(9));
                      }),
                      HasSubstr("rank 1 calls all_reduce(sum of 9"));
          return;
        }
        std::vector<comm::Work> works;
        for (std::size_t i = 0; i < 3; ++i) works.push_back(comm.all_reduce_async(floats(8)));
        works[0].wait();
        EXPECT_THAT(failure_of([&] { works[1].wait(); }), HasSubstr("rank 1 calls all_reduce(sum of 9"));
        EXPECT_THAT(failure_of([&] { works[2].wait(); }), HasSubstr("unusable since an earlier failure"));
      },
      10s);
}

// Between threads of one process, changing a buffer that may still be read is a data race by definition.
class BrokenGroupOfProcesses : public BrokenGroup {};

// A sender that gives up may change its buffer; nobody may take what is in it then for the message.
TEST_P(BrokenGroupOfProcesses, WhatWasTakenBackIsNotReceived) {
  constexpr std::size_t kFloats = 4'000'000;
  for (int i = 0; i < 5; ++i) {
    run(2, [i](Communicator& comm) {
      comm::Buffer buffer = comm.allocate(kFloats * sizeof(float));
      const std::span<float> data = buffer.as<float>();
      std::fill(data.begin(), data.end(), 1.0F);
      comm.barrier();
      if (comm.rank() == 0) {
        comm::Work work = comm.broadcast_async(buffer.bytes(), {.algorithm = Algorithm::direct});
        std::this_thread::sleep_for(std::chrono::microseconds(300 * i));
        work.cancel();
        const bool sent = failure_of([&] { work.wait(); }) == "nothing";
        if (!sent) std::fill(data.begin(), data.end(), 7.0F);
      } else if (failure_of([&] { comm.broadcast(buffer.bytes(), {.algorithm = Algorithm::direct}); }) ==
                 "nothing") {
        EXPECT_EQ(std::count(data.begin(), data.end(), 1.0F), static_cast<std::ptrdiff_t>(kFloats));
      }
      // Memory of a rank must stay until the other one has failed too.
      failure_of([&] { comm.barrier(); });
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, BrokenGroup, testing::Values("loopback", "shm", "tcp"),
                         name_of_transport);
INSTANTIATE_TEST_SUITE_P(Transports, BrokenGroupOfProcesses, testing::Values("shm", "tcp"),
                         name_of_transport);

}  // namespace
}  // namespace lockstep::test
