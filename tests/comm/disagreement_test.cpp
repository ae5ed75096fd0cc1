// SPDX-License-Identifier: Apache-2.0
//
// What callers get when ranks make different calls.
#include <array>
#include <barrier>
#include <functional>
#include <latch>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/comm/communicator.h"

#include "tests/comm/failures.h"

namespace lockstep::test {
namespace {

using comm::Algorithm;
using comm::Communicator;
using comm::ReduceOp;
using testing::AllOf;
using testing::HasSubstr;

class Disagreement : public OverTransport {
 protected:
  // Both ranks are told, and each is told both calls, directly or through the other's report.
  static void expect_disagreement(const std::array<std::function<void(Communicator&)>, 2>& calls,
                                  const std::array<std::string, 2>& described) {
    run(2, [&](Communicator& comm) {
      const std::string failure = failure_of([&] { calls[comm.rank()](comm); });
      EXPECT_THAT(failure,
                  AllOf(HasSubstr("rank 0 calls " + described[0]), HasSubstr("rank 1 calls " + described[1])))
          << "on rank " << comm.rank();
    });
  }

  // Both ranks only send, which ends well whatever the other does: they are told at the next call, whatever
  // it is.
  static void expect_disagreement_at_the_next_call(const std::function<void(Communicator&)>& first,
                                                   const std::function<void(Communicator&)>& next,
                                                   const std::array<std::string, 2>& described) {
    std::barrier both_are_done(2);
    run(2, [&](Communicator& comm) {
      first(comm);
      both_are_done.arrive_and_wait();
      EXPECT_THAT(failure_of([&] { next(comm); }),
                  AllOf(HasSubstr("rank 0 calls " + described[0]), HasSubstr("rank 1 calls " + described[1])))
          << "on rank " << comm.rank();
    });
  }
};

TEST_P(Disagreement, DifferentOperations) {
  expect_disagreement({[](Communicator& c) { c.all_reduce(floats(1024), {.algorithm = Algorithm::direct}); },
                       [](Communicator& c) { c.all_gather(floats(1024), {.algorithm = Algorithm::direct}); }},
                      {"all_reduce(sum of 1024 x fp32, direct)", "all_gather(1024 x fp32, direct)"});
}

TEST_P(Disagreement, DifferentCounts) {
  expect_disagreement({[](Communicator& c) { c.all_reduce(floats(1024), {.algorithm = Algorithm::direct}); },
                       [](Communicator& c) { c.all_reduce(floats(1000), {.algorithm = Algorithm::direct}); }},
                      {"all_reduce(sum of 1024 x fp32, direct)", "all_reduce(sum of 1000 x fp32, direct)"});
}

TEST_P(Disagreement, DifferentDtypes) {
  expect_disagreement({[](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::direct}); },
                       [](Communicator& c) {
                         c.all_reduce(floats(32), {.dtype = DType::bf16, .algorithm = Algorithm::direct});
                       }},
                      {"all_reduce(sum of 64 x fp32, direct)", "all_reduce(sum of 64 x bf16, direct)"});
}

TEST_P(Disagreement, DifferentReductions) {
  expect_disagreement({[](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::ring}); },
                       [](Communicator& c) {
                         c.all_reduce(floats(64), {.op = ReduceOp::max, .algorithm = Algorithm::ring});
                       }},
                      {"all_reduce(sum of 64 x fp32, ring)", "all_reduce(max of 64 x fp32, ring)"});
}

TEST_P(Disagreement, DifferentAlgorithms) {
  expect_disagreement({[](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::one_shot}); },
                       [](Communicator& c) { c.all_reduce(floats(64), {.algorithm = Algorithm::direct}); }},
                      {"all_reduce(sum of 64 x fp32, one_shot)", "all_reduce(sum of 64 x fp32, direct)"});
}

// Neither rank sends anything: only what they say about themselves can tell.
TEST_P(Disagreement, EachWaitsForTheOthersBroadcast) {
  expect_disagreement(
      {[](Communicator& c) { c.broadcast(floats(64), {.root = 1, .algorithm = Algorithm::one_shot}); },
       [](Communicator& c) { c.broadcast(floats(64), {.root = 0, .algorithm = Algorithm::one_shot}); }},
      {"broadcast(64 x fp32, root 1, one_shot)", "broadcast(64 x fp32, root 0, one_shot)"});
}

TEST_P(Disagreement, EachBroadcastsItsOwn) {
  const auto broadcast_mine = [](Communicator& c) {
    c.broadcast(floats(64), {.root = c.rank(), .algorithm = Algorithm::one_shot});
  };
  const std::array<std::string, 2> described = {"broadcast(64 x fp32, root 0, one_shot)",
                                                "broadcast(64 x fp32, root 1, one_shot)"};
  expect_disagreement_at_the_next_call(broadcast_mine, broadcast_mine, described);
  expect_disagreement_at_the_next_call(
      broadcast_mine, [](Communicator& c) { c.barrier(); }, described);
}

TEST_P(Disagreement, EachReducesToTheOther) {
  const auto reduce_away = [](Communicator& c) {
    c.reduce(floats(64), {.root = 1 - c.rank(), .algorithm = Algorithm::one_shot});
  };
  expect_disagreement_at_the_next_call(
      reduce_away, reduce_away,
      {"reduce(sum of 64 x fp32, root 1, one_shot)", "reduce(sum of 64 x fp32, root 0, one_shot)"});
}

// The root's call has ended when the other rank finds that it expects another message.
TEST_P(Disagreement, ARootIsToldAtItsNextCallThatItsMessageWasNotExpected) {
  std::latch sent(1);
  std::latch refused(1);
  run(2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      sent.wait();
      EXPECT_NE(failure_of([&] { comm.all_reduce(floats(64), {.algorithm = Algorithm::one_shot}); }),
                "nothing");
      refused.count_down();
      return;
    }
    comm.broadcast(floats(64), {.root = 0, .algorithm = Algorithm::one_shot});
    sent.count_down();
    refused.wait();
    EXPECT_THAT(failure_of([&] { comm.barrier(); }),
                AllOf(HasSubstr("rank 0 calls broadcast(64 x fp32, root 0, one_shot)"),
                      HasSubstr("rank 1 calls all_reduce(sum of 64 x fp32, one_shot)")));
  });
}

// The rank that has nothing to do is through at once; the other one must not wait for its deadline.
TEST_P(Disagreement, NothingAgainstSomething) {
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

TEST_P(Disagreement, SizesOfAMessageMustAgree) {
  run(2, [](Communicator& comm) {
    const std::string failure = comm.rank() == 0 ? failure_of([&] {
      comm.send(1, floats(1000));
      comm.recv(1, floats(1));
    })
                                                 : failure_of([&] { comm.recv(0, floats(999)); });
    EXPECT_THAT(failure, HasSubstr("send/recv")) << "on rank " << comm.rank();
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Disagreement, testing::Values("loopback", "shm", "tcp"),
                         name_of_transport);

}  // namespace
}  // namespace lockstep::test
