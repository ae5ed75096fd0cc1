// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/elastic/coordinator_server.h"
#include "lockstep/elastic/membership.h"

#include "tests/elastic/served_coordinator.h"
#include "tests/support/files.h"

namespace lockstep::elastic {

// Workers and coordinator over loopback, in threads of one process.
class Members : public testing::Test {
 protected:
  static transport::Credentials credentials(const std::string& run = "run") {
    return {.me = {.role = "elastic", .rank = -1, .run = run, .generation = 0}, .secret = {}, .tls = nullptr};
  }

  CoordinatorServer::Options options(int members, std::uint16_t port = 0) const {
    CoordinatorOptions coordinator;
    coordinator.expected = members;
    coordinator.max_members = members;
    return {.listen = {"127.0.0.1", port, {}},
            .credentials = credentials(),
            .coordinator = coordinator,
            .log_path = folder_.path("decisions")};
  }

  void serve(int members) { server_ = std::make_unique<ServedCoordinator>(options(members)); }
  void serve_on(Disk& disk, int members, Time stall_timeout, Time join_timeout) {
    CoordinatorServer::Options on_disk = options(members);
    on_disk.disk = &disk;
    on_disk.coordinator.stall_timeout = stall_timeout;
    on_disk.coordinator.join_timeout = join_timeout;
    server_ = std::make_unique<ServedCoordinator>(on_disk);
  }

  std::unique_ptr<Membership> member() const {
    Membership::Options options;
    options.coordinator = server_->address();
    options.credentials = credentials();
    options.host = "here";
    options.beat_interval = std::chrono::milliseconds(20);
    options.reconnect_timeout = std::chrono::seconds(10);
    return std::make_unique<Membership>(options);
  }

  // All of them at once; by member.
  static std::vector<Place> take_places(const std::vector<Membership*>& members, const Held& held) {
    std::vector<std::future<Place>> waiting;
    for (Membership* member : members) {
      waiting.push_back(std::async(std::launch::async, [=] { return member->take_place(held, "test"); }));
    }
    std::vector<Place> places;
    for (auto& one : waiting) places.push_back(one.get());
    return places;
  }

  static std::vector<Decision> vote(const std::vector<Membership*>& members, std::int64_t step) {
    std::vector<std::future<Decision>> waiting;
    for (Membership* member : members) {
      waiting.push_back(std::async(std::launch::async, [=] { return member->vote(step); }));
    }
    std::vector<Decision> decisions;
    for (auto& one : waiting) decisions.push_back(one.get());
    return decisions;
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<ServedCoordinator> server_;
};

}  // namespace lockstep::elastic
