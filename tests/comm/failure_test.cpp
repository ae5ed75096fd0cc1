// SPDX-License-Identifier: Apache-2.0
//
// What callers get when ranks disagree, do not come, or go.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"

#include "tests/support/ranks.h"
#include "tests/support/worlds.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Algorithm;
using comm::Communicator;
using comm::Options;
using comm::ReduceOp;
using testing::AllOf;
using testing::HasSubstr;

// What the call throws, with its kind in front; "nothing" if it does not throw.
std::string failure_of(const std::function<void()>& call) {
  try {
    call();
    return "nothing";
  } catch (const ContractMismatch& error) {
    return std::string("ContractMismatch: ") + error.what();
  } catch (const Timeout& error) {
    return std::string("Timeout: ") + error.what();
  } catch (const PeerLost& error) {
    return std::string("PeerLost: ") + error.what();
  } catch (const Aborted& error) {
    return std::string("Aborted: ") + error.what();
  }
}

class Failures : public testing::TestWithParam<std::string> {
 protected:
  // A long deadline: what these tests wait for must come from somewhere else, unless they set a short one.
  static void run(int world, const std::function<void(Communicator&)>& body,
                  std::chrono::milliseconds timeout = 60s) {
    run_ranks(make_world(GetParam(), world), {.name = "dp", .timeout = timeout}, body);
  }
};

// Both ranks are told, and each is told both calls, directly or through the other's report.
void expect_disagreement(const std::string& transport,
                         const std::array<std::function<void(Communicator&)>, 2>& calls,
                         const std::array<std::string, 2>& described) {
  run_ranks(make_world(transport, 2), {.name = "dp", .timeout = 60s}, [&](Communicator& comm) {
    const std::string failure = failure_of([&] { calls[comm.rank()](comm); });
    EXPECT_THAT(failure,
                AllOf(HasSubstr("rank 0 calls " + described[0]), HasSubstr("rank 1 calls " + described[1])))
        << "on rank " << comm.rank();
  });
}

std::array<float, 1024>& some_floats() {
  thread_local std::array<float, 1024> floats{};
  return floats;
}
Bytes floats(std::size_t count) {
  return std::as_writable_bytes(std::span(some_floats()).first(count));
}

TEST_P(Failures, DifferentOperations) {
  expect_disagreement(GetParam(),
                      {[](Communicator& c) { c.all_reduce(floats(1024), {.algorithm = Algorithm::direct}); },
                       [](Communicator& c) { c.all_gather(floats(1024), {.algorithm = Algorithm::direct}); }},
                      {"all_reduce(sum of 1024 x fp32, direct)", "all_gather(1024 x fp32, direct)"});
}

TEST_P(Failures, DifferentCounts) {
  expect_disagreement(GetParam(),
                      {[](Communicator& c) { c.all_reduce(floats(1024), {.algorithm = Algorithm::direct}); },
                       [](Communicator& c) { c.all_reduce(floats(1000), {.algorithm = Algorithm::direct}); }},
                      {"all_reduce(sum of 1024 x fp32, direct)", "all_reduce(sum of 1000 x fp32, direct)"});
}

TEST_P(Failures, DifferentDtypes) {
  expect_disagreement(GetParam(),
                      {[](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::direct}); },
                       [](Communicator& c) {
                         c.all_reduce(floats(32), {.dtype = DType::bf16, .algorithm = Algorithm::direct});
                       }},
                      {"all_reduce(sum of 64 x fp32, direct)", "all_reduce(sum of 64 x bf16, direct)"});
}

TEST_P(Failures, DifferentReductions) {
  expect_disagreement(GetParam(),
                      {[](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::ring}); },
                       [](Communicator& c) {
                         c.all_reduce(floats(64), {.op = ReduceOp::max, .algorithm = Algorithm::ring});
                       }},
                      {"all_reduce(sum of 64 x fp32, ring)", "all_reduce(max of 64 x fp32, ring)"});
}

TEST_P(Failures, DifferentAlgorithms) {
  expect_disagreement(GetParam(),
                      {[](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::one_shot}); },
                       [](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::direct}); }},
                      {"all_reduce(sum of 64 x fp32, one_shot)", "all_reduce(sum of 64 x fp32, direct)"});
}

// Neither rank sends anything: only what they say about themselves can tell.
TEST_P(Failures, EachWaitsForTheOthersBroadcast) {
  expect_disagreement(
      GetParam(),
      {[](Communicator& c) { c.broadcast(floats(64), {.root = 1, .algorithm = Algorithm::one_shot}); },
       [](Communicator& c) { c.broadcast(floats(64), {.root = 0, .algorithm = Algorithm::one_shot}); }},
      {"broadcast(64 x fp32, root 1, one_shot)", "broadcast(64 x fp32, root 0, one_shot)"});
}

TEST_P(Failures, ARankThatNeverComesIsNamed) {
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

TEST_P(Failures, ARankThatGoesIsNoticedAtOnce) {
  run(3, [](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 2) return;  // its communicator is destroyed
    const std::string failure = failure_of([&] { comm.all_reduce(floats(1024)); });
    EXPECT_THAT(failure, HasSubstr("all_reduce #1 on dp: rank 2 is gone")) << "on rank " << comm.rank();
  });
}

// A rank that has done its part may leave at once: what it sent still counts, however late the others look.
TEST_P(Failures, ALateRankMayLeaveAsSoonAsItIsDone) {
  for (int i = 0; i < 25; ++i) {
    run(3, [](Communicator& comm) {
      if (comm.rank() == 0) std::this_thread::sleep_for(25ms);
      EXPECT_EQ(failure_of([&] { comm.barrier(); }), "nothing") << "on rank " << comm.rank();
    });
  }
}

// A sender that gives up may change its buffer; nobody may take what is in it then for the message.
TEST_P(Failures, WhatWasTakenBackIsNotReceived) {
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

TEST_P(Failures, ABrokenGroupSaysSoAndOthersGoOn) {
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

TEST_P(Failures, CancelAbortsBothSides) {
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

TEST_P(Failures, QueuedOperationsFailWithTheFirst) {
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

TEST_P(Failures, SizesOfAMessageMustAgree) {
  run(2, [](Communicator& comm) {
    const std::string failure = comm.rank() == 0 ? failure_of([&] {
      comm.send(1, floats(1000));
      comm.recv(1, floats(1));
    })
                                                 : failure_of([&] { comm.recv(0, floats(999)); });
    EXPECT_THAT(failure, HasSubstr("send/recv")) << "on rank " << comm.rank();
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Failures, testing::Values("loopback", "shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lockstep::test
