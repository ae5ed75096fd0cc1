// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::checkpoint {

// What ranks tell each other about the checkpoint under way, summed over all of them.
struct SaveTidings {
  std::int64_t written = 0;  // ranks whose part is on the disk
  std::int64_t failed = 0;   // ranks whose part will never be
  std::int64_t committed = 0;
  std::int64_t refused = 0;    // by the leader, which could not commit
  std::int64_t collected = 0;  // by the leader, which has removed what is not to be kept, or tried to

  SaveTidings& operator+=(const SaveTidings& other);
  bool operator==(const SaveTidings&) const = default;
};

// How ranks come to one checkpoint, as a state machine without disk and network. All ranks hold one and make
// the same calls in the same order; what one rank's disk does becomes known to the others through tidings,
// which the caller sums: so all go from one state to the next together.
//
//   idle --begin()--> writing --all have written--> committing --the leader has--> collecting --it has-->
//   idle
//                        \--one has failed---> idle     \--it could not---> idle
class SaveRound {
 public:
  // What hear() asks for: nothing; the leader commits; the checkpoint is there, and the leader removes those
  // that are not to be kept; there will be none.
  enum class Next { nothing, commit, good, bad };

  explicit SaveRound(int ranks) : ranks_(ranks) {}

  bool is_idle() const { return state_ == State::idle; }
  bool is_writing() const { return state_ == State::writing; }
  bool is_committing() const { return state_ == State::committing; }
  void begin();  // when idle
  // What this rank was to do in this state is done, or has failed: its part is written; on the leader, it is
  // committed, or old ones are removed, which nothing depends on.
  void settle(bool is_good) { outcome_ = is_good; }
  // What this rank has to tell.
  SaveTidings tidings() const;
  // What all have told.
  Next hear(const SaveTidings& all);

 private:
  enum class State { idle, writing, committing, collecting };
  Next enter(State state, Next next);

  int ranks_;
  State state_ = State::idle;
  std::optional<bool> outcome_;  // of this rank in this state
};

}  // namespace lockstep::checkpoint
