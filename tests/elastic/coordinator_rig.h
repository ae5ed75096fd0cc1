// SPDX-License-Identifier: Apache-2.0
//
// A coordinator, and members that say what a test makes them say.
#pragma once

#include <string>
#include <vector>

#include "lockstep/elastic/coordinator.h"

namespace lockstep::elastic::testing {

using std::chrono::seconds;

inline CoordinatorOptions options_for(int expected) {
  return {.expected = expected, .min_members = 1, .max_members = expected};
}

class Rig {
 public:
  explicit Rig(const CoordinatorOptions& options) : coordinator(options, Time(0)) {}

  // What it answers is kept in `out`.
  void hear(const FromMember& message) { out = coordinator.hear(message, now); }
  void join(MemberId member, const std::string& host = "a", Join told = {}) {
    told.member = member;
    told.host = host;
    told.attempt = ++attempts_;
    hear(told);
  }
  void join_all(const std::vector<MemberId>& members) {
    for (const MemberId member : members) join(member);
  }
  void lose(MemberId member) { out = coordinator.lose(member, "its connection was closed", now); }
  void begin(std::int64_t step) {
    for (const MemberId member : members()) hear(Begun{member, coordinator.generation(), step});
  }
  void vote(MemberId member, std::int64_t step) { hear(Vote{member, coordinator.generation(), step}); }
  void vote_all(std::int64_t step) {
    for (const MemberId member : members()) vote(member, step);
  }
  void beat(MemberId member, std::uint64_t progress, bool waits = false) {
    hear(Beat{member, coordinator.generation(), 0, progress, waits});
  }
  void pass(Time time) {
    now += time;
    out = coordinator.tick(now);
  }
  std::vector<MemberId> members() const { return coordinator.members(); }

  // Those of one kind, of the last answer.
  template <typename Kind>
  std::vector<Kind> outputs() const {
    std::vector<Kind> found;
    for (const Output& output : out) {
      if (const Kind* kind = std::get_if<Kind>(&output)) found.push_back(*kind);
    }
    return found;
  }
  // Who was sent a message of one kind.
  template <typename Message>
  std::vector<MemberId> receivers() const {
    std::vector<MemberId> found;
    for (const Send& send : outputs<Send>()) {
      if (std::holds_alternative<Message>(send.message)) found.push_back(send.to);
    }
    return found;
  }
  // The first message of one kind; a default one when there is none.
  template <typename Message>
  Message sent() const {
    for (const Send& send : outputs<Send>()) {
      if (const Message* message = std::get_if<Message>(&send.message)) return *message;
    }
    return {};
  }

  Coordinator coordinator;
  Time now{0};
  Outputs out;

 private:
  std::uint64_t attempts_ = 0;
};

}  // namespace lockstep::elastic::testing
