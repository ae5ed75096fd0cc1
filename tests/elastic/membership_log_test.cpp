// SPDX-License-Identifier: Apache-2.0
//
// Members whose coordinator cannot write its decisions down.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/elastic/coordinator_server.h"
#include "lockstep/elastic/membership.h"

#include "tests/checkpoint/test_disks.h"
#include "tests/elastic/members.h"
#include "tests/support/error_of.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using testing::HasSubstr;

// Full for as long as it is said to be.
class FullDisk : public checkpoint::testing::HastyDisk {
 public:
  std::atomic<bool> is_full = true;
  std::atomic<int> failures = 0;

 protected:
  void write(File& file, ConstBytes bytes) override {
    if (!is_full) return HastyDisk::write(file, bytes);
    ++failures;
    throw UsageError("cannot write the log: no room");
  }
};

// For longer than anybody may stand still.
TEST_F(Members, WaitForALogThatCannotBeWritten) {
  FullDisk disk;
  serve_on(disk, 2, 2s, 60s);
  const auto first = member();
  const auto second = member();
  auto places = std::async(std::launch::async, [&] { return take_places({first.get(), second.get()}, {}); });
  while (disk.failures < 5) std::this_thread::sleep_for(1ms);
  disk.is_full = false;
  EXPECT_EQ(places.get()[0].generation, 1U);
  for (const auto& one : {first.get(), second.get()}) one->begun(0);
  for (const Decision& decision : vote({first.get(), second.get()}, 1)) EXPECT_EQ(decision.generation, 1U);
  server_->with([](CoordinatorServer& server) { EXPECT_TRUE(server.take_fences().empty()); });
  server_.reset();
}

TEST_F(Members, EndWhenTheLogCannotBeWrittenForLong) {
  FullDisk disk;
  serve_on(disk, 1, 60s, 3s);
  const auto first = member();
  EXPECT_THAT(error_of<Dismissed>([&] { first->take_place({}, "new"); }), HasSubstr("no room"));
  server_->with([](CoordinatorServer& server) {
    ASSERT_TRUE(server.end());
    EXPECT_FALSE(server.end()->is_finished);
    EXPECT_THAT(server.end()->reason, HasSubstr("no room"));
  });
  server_.reset();
}

TEST_F(Members, EndAtOnceWhenTheLogCannotBeWrittenAndTheRunIsToEnd) {
  FullDisk disk;
  serve_on(disk, 1, 60s, 600s);
  const auto first = member();
  auto waiting = std::async(std::launch::async,
                            [&] { return error_of<Dismissed>([&] { first->take_place({}, "new"); }); });
  bool is_over = false;
  for (int i = 0; i < 1000 && !is_over; ++i) {
    std::this_thread::sleep_for(5ms);
    server_->with([&](CoordinatorServer& server) {
      server.wind_up();
      is_over = server.end().has_value();
    });
  }
  EXPECT_THAT(waiting.get(), HasSubstr("no room"));
  server_.reset();
}

}  // namespace
}  // namespace lockstep::elastic
