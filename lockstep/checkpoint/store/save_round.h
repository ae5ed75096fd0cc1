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
  std::int64_t refused = 0;  // by the leader, which could not commit

  SaveTidings& operator+=(const SaveTidings& other);
  bool operator==(const SaveTidings&) const = default;
};

// How ranks come to one checkpoint, as a state machine without disk and network. All ranks hold one and make
// the same calls in the same order; what one rank's disk does becomes known to the others through tidings,
// which the caller sums: so all go from one state to the next together.
//
//   idle --begin()--> writing --all have written--> committing --the leader has--> idle
//                        \--one has failed---------------------------------------> idle
class SaveRound {
 public:
  // What hear() asks for: nothing; the leader commits; it is over.
  enum class Next { wait, commit, good, bad };

  explicit SaveRound(int ranks) : ranks_(ranks) {}

  bool is_idle() const { return state_ == State::idle; }
  bool is_writing() const { return state_ == State::writing; }
  void begin();  // when idle
  // What this rank was to do in this state is done, or has failed: its part is written; on the leader, it is
  // committed.
  void settle(bool is_good) { outcome_ = is_good; }
  // What this rank has to tell.
  SaveTidings tidings() const;
  // What all have told.
  Next hear(const SaveTidings& all);

 private:
  enum class State { idle, writing, committing };
  Next end(bool is_good);

  int ranks_;
  State state_ = State::idle;
  std::optional<bool> outcome_;  // of this rank in this state
};

}  // namespace lockstep::checkpoint
