// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <string>
#include <vector>

#include <poll.h>

#include "lockstep/rendezvous/process.h"
#include "lockstep/rendezvous/relay.h"

namespace lockstep::rendezvous {

// What workers whose output is captured write, line by line on its way to our own output and error output. No
// call blocks. Not thread-safe.
class WorkerOutput {
 public:
  WorkerOutput();

  // Takes the streams of the worker; its lines get this prefix.
  void add(ChildProcess& worker, const std::string& prefix);

  void add_to(std::vector<pollfd>& entries) const;
  // Moves what is there and can be written.
  void pump();
  // What is left when all workers have ended: whoever still holds the other end is not one of ours.
  void finish();

  bool pending() const { return output_.pending() || error_output_.pending(); }
  int error() const;  // errno, once writing has failed

 private:
  Outlet output_;
  Outlet error_output_;
  std::list<Relay> relays_;
};

}  // namespace lockstep::rendezvous
