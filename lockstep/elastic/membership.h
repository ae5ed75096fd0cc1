// SPDX-License-Identifier: Apache-2.0
//
// A worker's side of an elastic run: its place, its votes, and word of it to the coordinator.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/elastic/member.h"
#include "lockstep/elastic/message.h"
#include "lockstep/rendezvous/placement.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::elastic {

// The generation has ended before this worker has: what was under way is to be forgotten.
class GenerationLost : public CommError {
 public:
  using CommError::CommError;
};

// The coordinator has no place for this worker any more.
class Dismissed : public Error {
 public:
  Dismissed(const std::string& reason, bool is_over) : Error(reason), is_over_(is_over) {}

  bool is_over() const { return is_over_; }  // the run; or else it goes on without this worker

 private:
  bool is_over_;
};

class Membership {
 public:
  struct Options {
    transport::Address coordinator;
    transport::Credentials credentials;  // role "elastic"
    std::string host;
    MemberId id = 0;  // 0: one is drawn
    std::chrono::milliseconds beat_interval{250};
    std::chrono::milliseconds reconnect_timeout{60'000};  // how long a coordinator may be away
  };
  // Connects. Errors as transport::dial().
  explicit Membership(Options options);
  ~Membership();

  MemberId id() const;

  // Asks for a place and waits for it. Dismissed when there will be none; CommError when the coordinator is
  // away for longer than reconnect_timeout.
  Place take_place(const Held& held, const std::string& reason);
  // Of the generation that this worker has its place in.
  void begun(std::int64_t step);
  // Votes and waits for the decision. GenerationLost when there will be none.
  Decision vote(std::int64_t step);
  // This worker has done everything.
  void leave();

  // For beats; as long as this lives. Waits for a place and for a decision need not be told to it.
  Activity& activity();
  // Called once, on a thread of its own, when the generation was lost while this worker may be waiting for
  // another one: what makes it give up. At once when it already is. Replaces the one before, which does not
  // run any more when this returns; empty: nothing.
  void on_abandon(std::function<void(const std::string& reason)> action);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// What a supervisor left in the environment of this process (LOCKSTEP_COORDINATOR and others, see
// docs/launching.md); none when there is no coordinator. UsageError naming a variable that is wrong.
std::optional<Membership::Options> membership_from_environment();

// Where the worker stands in the world of a generation, for comm::connect(). `base` is what the environment
// says.
rendezvous::Placement placement_of(const Place& place, const rendezvous::Placement& base);

}  // namespace lockstep::elastic
