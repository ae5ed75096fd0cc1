// SPDX-License-Identifier: Apache-2.0
//
// What callers get when ranks make different calls.
#include <array>
#include <barrier>
#include <chrono>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

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
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

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

TEST_P(Disagreement, DifferentGrids) {
  const auto on_grid = [](int rows, int columns) {
    return [rows, columns](Communicator& c) {
      c.all_reduce(floats(64), {.algorithm = Algorithm::mesh, .grid = {{.rows = rows, .columns = columns}}});
    };
  };
  expect_disagreement({on_grid(1, 2), on_grid(2, 1)},
                      {"all_reduce(sum of 64 x fp32, mesh)", "all_reduce(sum of 64 x fp32, mesh)"});
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

// The rank that has nothing to do is through at once, and is told at its next call; the other one must not
// wait for its deadline. Either may come first.
TEST_P(Disagreement, NothingAgainstSomething) {
  for (const Rank late : {-1, 0, 1}) {
    run(2, [late](Communicator& comm) {
      const auto call = [&] {
        comm.all_reduce(floats(comm.rank() == 0 ? 0 : 4), {.algorithm = Algorithm::one_shot});
      };
      if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (comm.rank() == 0) call();
      EXPECT_THAT(failure_of([&] { comm.rank() == 0 ? comm.barrier() : call(); }),
                  AllOf(HasSubstr("rank 0 calls all_reduce(sum of 0 x fp32, one_shot)"),
                        HasSubstr("rank 1 calls all_reduce(sum of 4 x fp32, one_shot)")))
          << "on rank " << comm.rank() << ", late is " << late;
    });
  }
}

// The sender may have sent its message before it was refused: it is told when it waits for an answer.
TEST_P(Disagreement, MessagesMustAgreeInCountAndDtype) {
  struct Ends {
    std::size_t sent, received;
    DType sent_as, received_as;
    std::string sends, receives;
  };
  const std::vector<Ends> all = {
      {1000, 999, DType::fp32, DType::fp32, "send/recv(1000 x fp32)", "send/recv(999 x fp32)"},
      {4, 4, DType::fp32, DType::int32, "send/recv(4 x fp32)", "send/recv(4 x int32)"},
      {4, 0, DType::fp32, DType::fp32, "send/recv(4 x fp32)", "send/recv(0 x fp32)"},
      {0, 4, DType::fp32, DType::fp32, "send/recv(0 x fp32)", "send/recv(4 x fp32)"},
      {0, 0, DType::fp32, DType::uint8, "send/recv(0 x fp32)", "send/recv(0 x uint8)"},
      {0, 1, DType::uint8, DType::fp32, "send/recv(0 x uint8)", "send/recv(1 x fp32)"},
  };
  for (const Ends& ends : all) {
    std::array<std::string, 2> failures;
    run(2, [&](Communicator& comm) {
      failures[comm.rank()] = failure_of([&] {
        if (comm.rank() == 1) return comm.recv(0, floats(ends.received), {.dtype = ends.received_as});
        comm.send(1, floats(ends.sent), {.dtype = ends.sent_as});
        comm.recv(1, floats(1));
      });
    });
    EXPECT_THAT(failures, Each(AllOf(HasSubstr("send/recv on dp: "), HasSubstr("rank 0 calls " + ends.sends),
                                     HasSubstr("rank 1 calls " + ends.receives))));
    EXPECT_THAT(failures, Contains(StartsWith("ContractMismatch: ")));
  }
}

// The call that finds it may be another one on the same stream.
TEST_P(Disagreement, OfSeveralMessagesTheOneThatDisagreesIsNamed) {
  std::array<std::string, 2> failures;
  run(2, [&](Communicator& comm) {
    failures[comm.rank()] = failure_of([&] {
      const Rank peer = 1 - comm.rank();
      comm::Work answer = comm.recv_async(peer, floats(comm.rank() == 0 ? 3 : 5));
      comm.send(peer, floats(comm.rank() == 0 ? 5 : 2));
      answer.wait();
      comm.recv(peer, floats(1));
    });
  });
  EXPECT_THAT(failures, Each(AllOf(HasSubstr("rank 0 calls send/recv(3 x fp32)"),
                                   HasSubstr("rank 1 calls send/recv(2 x fp32)"))));
}

// A message without elements keeps its place: the one behind it is not taken for it.
TEST_P(Disagreement, AnEmptyMessageIsNotSkipped) {
  std::array<std::string, 2> failures;
  run(2, [&](Communicator& comm) {
    failures[comm.rank()] = failure_of([&] {
      if (comm.rank() == 0) {
        comm.send(1, {});
        comm.send(1, floats(4));
        comm.recv(1, floats(1));
      } else {
        comm.recv(0, floats(4));
        comm.recv(0, {});
      }
    });
  });
  EXPECT_THAT(failures, Each(AllOf(HasSubstr("rank 0 calls send/recv(0 x fp32)"),
                                   HasSubstr("rank 1 calls send/recv(4 x fp32)"))));
}

INSTANTIATE_TEST_SUITE_P(Transports, Disagreement, testing::Values("loopback", "shm", "tcp"),
                         name_of_transport);

}  // namespace
}  // namespace lockstep::test
