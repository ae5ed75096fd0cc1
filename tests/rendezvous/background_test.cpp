// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/background.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

TEST(Background, KeepsTheFailureForWhoeverWaits) {
  const Background work([](std::stop_token) { throw CommError("the listener has stopped"); });
  pollfd entry{work.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 30'000), 1);
  ASSERT_TRUE(work.failed());
  EXPECT_THROW(work.rethrow(), CommError);
}

TEST(Background, IsStoppedByItsEndAndHasNotFailed) {
  bool stopped = false;
  {
    const Background work([&](std::stop_token stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      stopped = true;
    });
    EXPECT_FALSE(work.failed());
  }
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace lockstep::rendezvous
