// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "lockstep/elastic/message.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::elastic {

// Where the members of a generation meet for its data: one rendezvous for each, on a port of its own. Not
// thread-safe.
class MeetingPlace {
 public:
  // `listen` without its port; the credentials' run, secret and TLS are used.
  MeetingPlace(transport::Address listen, transport::Credentials credentials);
  ~MeetingPlace();

  // Begins to serve a generation, and gives its port; those who still wait for an older one are refused.
  // UsageError as transport::Listener.
  std::uint16_t open(Generation generation, int members);
  // Refuses those who wait: the generation has ended.
  void close();

 private:
  class Meeting;

  transport::Address listen_;
  transport::Credentials credentials_;
  std::list<std::unique_ptr<Meeting>> ending_;  // asked to stop
  std::unique_ptr<Meeting> meeting_;
};

}  // namespace lockstep::elastic
