// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

#include "lockstep/elastic/coordinator_server.h"

namespace lockstep::elastic {

// A coordinator that a thread of the test serves on loopback.
class ServedCoordinator {
 public:
  explicit ServedCoordinator(CoordinatorServer::Options options) : server_(std::move(options)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  const transport::Address& address() const { return server_.address(); }

  // Runs it in turn with the server's own work.
  void with(const std::function<void(CoordinatorServer&)>& action) {
    const std::lock_guard lock(mutex_);
    action(server_);
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> entries;
      {
        const std::lock_guard lock(mutex_);
        server_.add_to(entries);
      }
      ::poll(entries.data(), entries.size(), 5);  // soon again: to stop, and for what time brings
      const std::lock_guard lock(mutex_);
      server_.turn();
    }
  }

  std::mutex mutex_;
  CoordinatorServer server_;
  std::jthread thread_;  // the last: it uses the others
};

}  // namespace lockstep::elastic
