// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/elastic/control_channel.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::elastic {

// Whoever listens where the coordinator was.
class OtherListener {
 public:
  OtherListener(const transport::Address& address, const transport::Credentials& credentials,
                std::vector<std::byte> greeting)
      : listener_(address, credentials), greeting_(std::move(greeting)) {}

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (auto newcomer = listener_.try_accept()) {
        ControlChannel channel(std::move(newcomer->connection), Sender::member);
        if (!greeting_.empty()) channel.send(greeting_);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  transport::Listener listener_;
  std::vector<std::byte> greeting_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};  // the last: it uses the others
};

}  // namespace lockstep::elastic
