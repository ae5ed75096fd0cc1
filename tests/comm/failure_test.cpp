// SPDX-License-Identifier: Apache-2.0
//
// What callers get when ranks disagree, do not come, or go.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/comm/scripted_endpoint.h"
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
using testing::AnyOf;
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

// Both ranks only send, which ends well whatever the other does: they are told at the next call, whatever it
// is.
void expect_disagreement_at_the_next_call(const std::string& transport,
                                          const std::function<void(Communicator&)>& first,
                                          const std::function<void(Communicator&)>& next,
                                          const std::array<std::string, 2>& described) {
  std::barrier both_are_done(2);
  run_ranks(make_world(transport, 2), {.name = "dp", .timeout = 60s}, [&](Communicator& comm) {
    first(comm);
    both_are_done.arrive_and_wait();
    EXPECT_THAT(failure_of([&] { next(comm); }),
                AllOf(HasSubstr("rank 0 calls " + described[0]), HasSubstr("rank 1 calls " + described[1])))
        << "on rank " << comm.rank();
  });
}

TEST_P(Failures, EachBroadcastsItsOwn) {
  const auto broadcast_mine = [](Communicator& c) {
    c.broadcast(floats(64), {.root = c.rank(), .algorithm = Algorithm::one_shot});
  };
  const std::array<std::string, 2> described = {"broadcast(64 x fp32, root 0, one_shot)",
                                                "broadcast(64 x fp32, root 1, one_shot)"};
  expect_disagreement_at_the_next_call(GetParam(), broadcast_mine, broadcast_mine, described);
  expect_disagreement_at_the_next_call(
      GetParam(), broadcast_mine, [](Communicator& c) { c.barrier(); }, described);
}

TEST_P(Failures, EachReducesToTheOther) {
  const auto reduce_away = [](Communicator& c) {
    c.reduce(floats(64), {.root = 1 - c.rank(), .algorithm = Algorithm::one_shot});
  };
  expect_disagreement_at_the_next_call(
      GetParam(), reduce_away, reduce_away,
      {"reduce(sum of 64 x fp32, root 1, one_shot)", "reduce(sum of 64 x fp32, root 0, one_shot)"});
}

// The rank that has nothing to do is through at once; the other one must not wait for its deadline.
TEST_P(Failures, NothingAgainstSomething) {
  run(2, [](Communicator& comm) {
    const auto call = [&] {
      comm.all_reduce(floats(comm.rank() == 0 ? 0 : 4), {.algorithm = Algorithm::one_shot});
    };
    const std::string failure = failure_of(call);
    if (comm.rank() == 0) {
      EXPECT_EQ(failure, "nothing");
      EXPECT_NE(failure_of([&] { comm.barrier(); }), "nothing");
      return;
    }
    EXPECT_THAT(failure, AllOf(HasSubstr("rank 0 calls all_reduce(sum of 0 x fp32, one_shot)"),
                               HasSubstr("rank 1 calls all_reduce(sum of 4 x fp32, one_shot)")));
  });
}

TEST_P(Failures, ARootThatOnlySendsLearnsOfAFailure) {
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

// What MPI programs do: post the receive first, then send.
TEST_P(Failures, ASendDoesNotWaitForReceivesPostedBefore) {
  run(2, [](Communicator& comm) {
    std::array<float, 4> mine{}, theirs{};
    const Bytes out = std::as_writable_bytes(std::span(mine));
    const Bytes in = std::as_writable_bytes(std::span(theirs));
    if (comm.rank() == 0) {
      comm::Work answer = comm.recv_async(1, in);
      comm.send(1, out);
      comm.send(1, out);
      answer.wait();
    } else {
      comm.recv(0, in);
      comm.recv(0, in);
      comm.send(0, out);
    }
  });
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

// A rank that comes late hears of a failure from all who know of it, and says who was first.
TEST_P(Failures, OnlyTheFirstCauseIsShown) {
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

TEST_P(Failures, ACommunicatorThatGoesTakesItsWorkAlong) {
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

TEST_P(Failures, WorkKeepsItsEngine) {
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

// --- Memory for intermediate results

class Scratch : public testing::Test {
 protected:
  // Ranks over loopback; body gets its own endpoint to take the memory away from it.
  static void run(int world, const std::function<void(Communicator&, ScriptedEndpoint&)>& body) {
    Endpoints endpoints;
    std::vector<ScriptedEndpoint*> scripts;
    for (auto& real : transport::make_loopback(world)) {
      auto scripted = std::make_unique<ScriptedEndpoint>(std::move(real));
      scripts.push_back(scripted.get());
      endpoints.push_back(std::move(scripted));
    }
    run_ranks(std::move(endpoints), {.name = "dp"},
              [&](Communicator& comm) { body(comm, *scripts[static_cast<std::size_t>(comm.rank())]); });
  }
  static constexpr Options kNeedsMemory{.algorithm = Algorithm::one_shot};
};

TEST_F(Scratch, WithoutItACallIsNotMade) {
  run(3, [](Communicator& comm, ScriptedEndpoint& endpoint) {
    endpoint.has_memory = false;
    EXPECT_THROW(comm.all_reduce(floats(1000), kNeedsMemory), UsageError);
    EXPECT_THROW(comm.all_reduce_async(floats(1000), kNeedsMemory), UsageError);
    endpoint.has_memory = true;
    std::vector<float> ones(1000, 1.0F);
    comm.all_reduce(std::as_writable_bytes(std::span(ones)), kNeedsMemory);
    EXPECT_EQ(ones, std::vector<float>(1000, 3.0F));
  });
}

// Its turn came, and the others count on it: they are told.
TEST_F(Scratch, WithoutItACallThatWasQueuedBreaksTheGroup) {
  std::latch queued(1);
  run(2, [&](Communicator& comm, ScriptedEndpoint& endpoint) {
    std::vector<float> data(100'000);
    if (comm.rank() == 1) {
      queued.wait();
      comm.barrier();
      EXPECT_THAT(failure_of([&] { comm.all_reduce(std::as_writable_bytes(std::span(data)), kNeedsMemory); }),
                  HasSubstr("rank 0 failed: all_reduce #1 on dp: no room for a buffer"));
      return;
    }
    comm::Work first = comm.barrier_async();
    endpoint.has_memory = false;
    comm::Work second = comm.all_reduce_async(std::as_writable_bytes(std::span(data)), kNeedsMemory);
    queued.count_down();
    first.wait();
    EXPECT_THAT(failure_of([&] { second.wait(); }), HasSubstr("Aborted: all_reduce #1 on dp: no room"));
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

// Between threads of one process, changing a buffer that may still be read is a data race by definition.
class FailuresOfProcesses : public Failures {};

// A sender that gives up may change its buffer; nobody may take what is in it then for the message.
TEST_P(FailuresOfProcesses, WhatWasTakenBackIsNotReceived) {
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

INSTANTIATE_TEST_SUITE_P(Transports, FailuresOfProcesses, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Transports, Failures, testing::Values("loopback", "shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lockstep::test
