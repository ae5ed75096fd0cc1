// SPDX-License-Identifier: Apache-2.0
//
// Calls that find no memory for intermediate results.
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/comm/failures.h"
#include "tests/comm/scripted_endpoint.h"
#include "tests/support/ranks.h"

namespace lockstep::test {
namespace {

using comm::Algorithm;
using comm::Communicator;
using comm::Options;
using testing::HasSubstr;

class NoMemory : public testing::Test {
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

TEST_F(NoMemory, WithoutItACallIsNotMade) {
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
TEST_F(NoMemory, WithoutItACallThatWasQueuedBreaksTheGroup) {
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

// Peers then find out when this rank leaves.
TEST_F(NoMemory, WithoutItAnAbortStillEndsWhatIsUnderWay) {
  run(2, [&](Communicator& comm, ScriptedEndpoint& endpoint) {
    if (comm.rank() == 1) {
      EXPECT_THAT(failure_of([&] { comm.barrier(); }), HasSubstr("rank 0"));
      return;
    }
    std::vector<float> data(1000);
    comm::Work message = comm.recv_async(1, std::as_writable_bytes(std::span(data)));
    endpoint.can_tell_failure = false;
    comm.abort("the generation has ended");
    EXPECT_THAT(failure_of([&] { message.wait(); }), HasSubstr("Aborted: the generation has ended"));
  });
}

}  // namespace
}  // namespace lockstep::test
