// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/worker_output.h"

#include <utility>

#include <unistd.h>

namespace lockstep::rendezvous {

WorkerOutput::WorkerOutput() : output_(STDOUT_FILENO), error_output_(STDERR_FILENO) {}

void WorkerOutput::add(ChildProcess& worker, const std::string& prefix) {
  relays_.emplace_back(std::move(worker.output()), output_, LinePrefix(prefix));
  relays_.emplace_back(std::move(worker.error_output()), error_output_, LinePrefix(prefix));
}

void WorkerOutput::add_to(std::vector<pollfd>& entries) const {
  for (const Relay& relay : relays_) {
    if (relay.wants_more()) entries.push_back({relay.fd(), POLLIN, 0});
  }
  for (const Outlet* outlet : {&output_, &error_output_}) {
    if (outlet->pending()) entries.push_back({outlet->fd(), POLLOUT, 0});
  }
}

void WorkerOutput::pump() {
  relays_.remove_if([](Relay& relay) {
    const bool open = relay.pump();
    if (!open) relay.finish();
    return !open;
  });
  output_.flush();
  error_output_.flush();
}

void WorkerOutput::finish() {
  for (Relay& relay : relays_) relay.finish();
  relays_.clear();
}

int WorkerOutput::error() const {
  return output_.error() != 0 ? output_.error() : error_output_.error();
}

}  // namespace lockstep::rendezvous
