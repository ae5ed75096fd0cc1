// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/rendezvous/message.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::rendezvous {

// One connection at the server: it sends one Arrival and gets one answer. No call blocks.
class Guest {
 public:
  Guest(transport::AuthenticatedConnection connection, int world);

  // Reads what has come. Throws DataError when it is no Arrival or claims another rank than it proved,
  // UsageError when it speaks another version of the protocol; PeerLost when the connection ended.
  void pump_input();

  // Queues the answer; pump_output() sends what can be sent now, and is true when all of it is gone or cannot
  // be sent.
  void answer(std::vector<std::byte> message);
  bool pump_output();

  const std::optional<Arrival>& arrival() const { return arrival_; }
  Rank rank() const { return rank_; }
  Clock::time_point since() const { return since_; }
  // When the rank behind it will have lost patience, less the time an answer needs.
  Clock::time_point gives_up() const { return gives_up_; }
  int fd() const { return connection_->fd(); }

 private:
  bool read_some();
  void take_header();
  void take_body();

  std::unique_ptr<transport::Connection> connection_;
  Rank rank_;  // as proved
  int world_;
  Clock::time_point since_ = Clock::now();
  Clock::time_point gives_up_ = Clock::time_point::max();
  std::vector<std::byte> input_;
  std::size_t filled_ = 0;
  std::optional<Header> header_;
  std::optional<Arrival> arrival_;
  std::vector<std::byte> output_;
  std::size_t sent_ = 0;
};

}  // namespace lockstep::rendezvous
