// SPDX-License-Identifier: Apache-2.0
//
// What callers get when ranks do not come, or go.
#include <array>
#include <chrono>
#include <latch>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/schedule/collective/collective.h"

#include "tests/comm/failures.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Communicator;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class Absence : public OverTransport {};

TEST_P(Absence, ARankThatNeverComesIsNamed) {
  std::latch others_gave_up(2);
  run(
      3,
      [&](Communicator& comm) {
        comm.barrier();
        if (comm.rank() == 1) {
          others_gave_up.wait();
          return;
        }
        EXPECT_THAT(failure_of([&] { comm.all_reduce(floats(1024)); }),
                    AllOf(HasSubstr("all_reduce #1 on dp"), HasSubstr("rank 1 has not arrived after")));
        others_gave_up.count_down();
      },
      300ms);
}

TEST_P(Absence, ARankThatGoesIsNoticedAtOnce) {
  run(3, [](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 2) return;  // its communicator is destroyed
    const std::string failure = failure_of([&] { comm.all_reduce(floats(1024)); });
    EXPECT_THAT(failure, HasSubstr("all_reduce #1 on dp: rank 2 is gone")) << "on rank " << comm.rank();
  });
}

TEST_P(Absence, RanksOfAGroupAreNamedAsInTheWorld) {
  run(4, [](Communicator& comm) {
    const Communicator half = comm.split(comm.rank() % 2, comm.rank(), "half");
    half.barrier();
    if (comm.rank() != 1) return;
    EXPECT_THAT(failure_of([&] { half.all_reduce(floats(1024)); }),
                HasSubstr("all_reduce #1 on half: rank 3 is gone"));
  });
}

TEST_P(Absence, AMessageThatIsAskedForAheadHasItsDeadlineFromWhenItIsWaitedFor) {
  std::latch gave_up(1);
  std::array<float, 8> data{};  // outlives all ranks
  run(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == 1) {
          std::this_thread::sleep_for(1200ms);
          comm.send(0, floats(8));
          gave_up.wait();
          return;
        }
        comm::Work work = comm.recv_async(1, std::as_writable_bytes(std::span(data)));
        while (!work.has_ended()) std::this_thread::sleep_for(5ms);
        EXPECT_EQ(failure_of([&] { work.wait(); }), "nothing");
        work = comm.recv_async(1, std::as_writable_bytes(std::span(data)));
        EXPECT_THAT(failure_of([&] { work.wait(); }), HasSubstr("send/recv #0 on dp: rank 1 silent for"));
        gave_up.count_down();
      },
      400ms);
}

TEST_P(Absence, WhoAsksAgainAndAgainHasADeadlineToo) {
  std::latch gave_up(1);
  run(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == 1) return gave_up.wait();
        comm::Work work = comm.recv_async(1, floats(8));
        const auto ask_for_a_minute = [&] {
          for (const Deadline minute = Deadline::after(60s); !minute.passed() && !work.test();)
            std::this_thread::sleep_for(1ms);
        };
        EXPECT_THAT(failure_of(ask_for_a_minute),
                    HasSubstr("Timeout: send/recv #0 on dp: rank 1 silent for"));
        gave_up.count_down();
      },
      300ms);
}

// Rank 0 waits for rank 1, which waits for rank 2 in a group without rank 0. A quarter of the timeout may
// pass between signs of life, which is plenty on a busy machine. More of this is in diagnose_test.cpp.
TEST_P(Absence, TheSilentOneIsNamedAcrossGroups) {
  std::latch gave_up(1);
  run(
      3,
      [&](Communicator& comm) {
        const Communicator pair = comm.split(comm.rank() == 0 ? 1 : 0, comm.rank(), "pair");
        if (comm.rank() == 2) return gave_up.wait();
        if (comm.rank() == 1) {
          EXPECT_THAT(failure_of([&] { pair.recv(1, floats(8), {.timeout = 60s}); }),
                      HasSubstr("send/recv #0 on pair: rank 2 is gone"));
          return;
        }
        EXPECT_THAT(failure_of([&] { comm.recv(1, floats(8)); }),
                    HasSubstr("send/recv #0 on dp: rank 2 silent for"));
        gave_up.count_down();
      },
      4s);
}

// A rank that has done its part may leave at once: what it sent still counts, however late the others look.
TEST_P(Absence, ALateRankMayLeaveAsSoonAsItIsDone) {
  for (int i = 0; i < 25; ++i) {
    run(3, [](Communicator& comm) {
      if (comm.rank() == 0) std::this_thread::sleep_for(25ms);
      EXPECT_EQ(failure_of([&] { comm.barrier(); }), "nothing") << "on rank " << comm.rank();
    });
  }
}

// Also after an operation that heard nothing of the others, when this rank looks at them first.
TEST_P(Absence, ARootMayLeaveAsSoonAsItHasSent) {
  for (int i = 0; i < 10; ++i) {
    run(2, [](Communicator& comm) {
      EXPECT_EQ(failure_of([&] { comm.broadcast(floats(8), {.root = 0}); }), "nothing");
      if (comm.rank() == 0) std::this_thread::sleep_for(25ms);
      EXPECT_EQ(failure_of([&] { comm.broadcast(floats(8), {.root = 1}); }), "nothing")
          << "on rank " << comm.rank();
    });
  }
}

// What it has sent waits here for another's part, in pieces or whole.
TEST_P(Absence, WhoHasSentItsPartMayLeaveWhileAnotherIsLate) {
  using comm::Algorithm;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::tree, Algorithm::direct, Algorithm::one_shot, Algorithm::mesh}) {
    if (!schedule::supports(algorithm, schedule::Op::reduce)) continue;
    for (const std::size_t count : {std::size_t{8}, std::size_t{50'000}}) {
      run(3, [&](Communicator& comm) {
        std::vector<float> data(count, 1.0F);
        if (comm.rank() == 2) std::this_thread::sleep_for(60ms);
        const comm::Options options = {.root = 0, .algorithm = algorithm};
        EXPECT_EQ(failure_of([&] { comm.reduce(std::as_writable_bytes(std::span(data)), options); }),
                  "nothing")
            << count << " by " << name_of(algorithm) << " on rank " << comm.rank();
      });
    }
  }
}

TEST_P(Absence, ACommunicatorThatGoesTakesItsWorkAlong) {
  std::array<float, 8> data{};  // outlives all ranks
  run(2, [&](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 0) {
      comm.all_reduce_async(std::as_writable_bytes(std::span(data)));
      comm.barrier_async({.stream = 1});
      return;  // its communicator is destroyed
    }
    EXPECT_THAT(failure_of([&] { comm.broadcast(floats(8), {.root = 0}); }),
                AnyOf(HasSubstr("destroyed here while an operation was under way"), HasSubstr("is gone"),
                      HasSubstr("rank 0 calls all_reduce")));
  });
}

TEST_P(Absence, MemoryThatGoesWhileItIsReceivedIntoIsNotGivenOutAgain) {
  run(2, [](Communicator& comm) {
    if (comm.rank() == 1) {
      comm.barrier();
      comm.send(0, floats(1024));
      return;
    }
    comm::Work work;
    const std::byte* address = nullptr;
    {
      const comm::Buffer goes = comm.allocate(4096);
      address = goes.bytes().data();
      work = comm.recv_async(1, goes.bytes());
    }
    const comm::Buffer next = comm.allocate(4096);
    EXPECT_NE(next.bytes().data(), address);
    comm.barrier();
    work.wait();
  });
}

TEST_P(Absence, WorkKeepsItsEngine) {
  run(2, [](Communicator& comm) {
    comm::Work work;
    std::array<float, 8> ones{};
    ones.fill(1);
    {
      const Communicator copy = std::move(comm);
      work = copy.all_reduce_async(std::as_writable_bytes(std::span(ones)));
    }
    work.wait();
    EXPECT_EQ(ones[7], 2.0F);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Absence, testing::Values("loopback", "shm", "tcp"), name_of_transport);

}  // namespace
}  // namespace lockstep::test
