// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/helm.h"

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::comm {
namespace {

class HelmOfOne : public ::testing::Test {
 protected:
  const std::unique_ptr<transport::Endpoint> endpoint_ = std::move(transport::make_loopback(1).front());
  Helm helm_{*endpoint_};
};

TEST_F(HelmOfOne, OneThreadAtATimeHasIt) {
  {
    const Helm::Turn turn(helm_);
    EXPECT_TRUE(turn);
    EXPECT_FALSE(Helm::Turn(helm_));
  }
  EXPECT_TRUE(Helm::Turn(helm_));
}

TEST_F(HelmOfOne, WhoeverDrivesRunsTheTasksOfOthers) {
  const auto driver = std::this_thread::get_id();
  const Helm::Turn turn(helm_);
  std::atomic<bool> returned = false;
  std::jthread other([&] {
    helm_.exclusively([&](transport::Endpoint&) { EXPECT_EQ(std::this_thread::get_id(), driver); });
    EXPECT_THROW(helm_.exclusively([](transport::Endpoint&) { throw std::runtime_error("mine"); }),
                 std::runtime_error);
    returned = true;
  });
  while (!returned) {
    if (helm_.has_tasks()) helm_.run_tasks();
    std::this_thread::yield();
  }
}

TEST_F(HelmOfOne, ATaskThatTheDriverLeftIsRunByItsOwner) {
  std::optional<Helm::Turn> turn(std::in_place, helm_);
  std::thread::id ran_on;
  std::jthread other(
      [&] { helm_.exclusively([&](transport::Endpoint&) { ran_on = std::this_thread::get_id(); }); });
  while (!helm_.has_tasks()) std::this_thread::yield();
  const auto owner = other.get_id();
  turn.reset();
  other.join();
  EXPECT_EQ(ran_on, owner);
}

// One that waits keeps the background thread away; when it goes, nobody may be left to drive.
TEST_F(HelmOfOne, TheBackgroundThreadWakesWhenTheLastOneThatWaitsGoes) {
  helm_.begin_in_background();
  for (int i = 0; i < 300; ++i) {
    std::atomic<bool> ended = false;
    std::optional<Helm::Turn> turn(std::in_place, helm_);
    std::jthread waiting([&] { helm_.sleep_until(ended); });
    while (helm_.wants_background()) std::this_thread::yield();
    std::jthread background([&](const std::stop_token& stop) { helm_.sleep_until_wanted(stop); });
    ended = true;
    turn.reset();
    waiting.join();
    background.join();
  }
}

TEST_F(HelmOfOne, TheBackgroundThreadWakesToStop) {
  std::jthread background([&](const std::stop_token& stop) { helm_.sleep_until_wanted(stop); });
  background.request_stop();
  helm_.wake_all();
}

}  // namespace
}  // namespace lockstep::comm
