// SPDX-License-Identifier: Apache-2.0
//
// What must hold in every run, looked at from outside of it, where everything is known.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "lockstep/elastic/coordinator.h"

#include "tests/elastic/simulation/toy_model.h"

namespace lockstep::elastic::simulation {

class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a member that is given a place brings with it.
struct Brought {
  Generation generation = 0;
  std::int64_t held = kNoStep;
  std::int64_t voted = kNoStep;
  Cells cells;
};

// Each call raises a Violation when something does not hold.
class Checker {
 public:
  explicit Checker(std::int64_t steps) : undisturbed_(steps) {}

  // The coordinator was asked something: what was decided goes back only by a rollback that is recorded.
  void see_outputs(std::int64_t decided_before, std::int64_t decided_after, const Outputs& outputs);
  // It tells a member of its place: a number belongs to one set of members, chosen by one coordinator, for
  // ever, and what any of them knows to be decided stays so. `brought` is of those that live.
  void see_place(int incarnation, const Place& place, const std::vector<Brought>& brought);
  // It tells of a decision: all have voted for it, and no later generation has decided anything.
  void see_decision(const Decision& decision);

  // A member votes: for the step behind the last one that was decided, and none further.
  void see_vote(MemberId member, Generation generation, std::int64_t step);
  // It applies a step: one that was decided.
  void see_update(std::int64_t step) const;
  // It begins: at the step that was decided, if the members together still had all of it.
  void see_begin(const Place& place, std::int64_t step) const;
  // It holds this: the bits of the undisturbed run.
  void see_cells(std::int64_t step, const Cells& cells) const;

  // A checkpoint is reported as committed: from now on it is promised, until its disk damages it.
  void see_promise(std::int64_t step) { promised_.insert(step); }
  void see_damage(std::int64_t step);
  // A member has nothing more to do: what it holds is in a checkpoint that was promised, or in a newer one.
  void see_leave(std::int64_t step) const;
  // Who has read a checkpoint has got all of it, and the bits of the undisturbed run.
  void see_checkpoint(std::int64_t step, const Cells& cells) const;
  // These are listed as committed at some instant: a promised one goes only when a newer one is there.
  void see_store(const std::set<std::int64_t>& committed);
  // A generation goes on from this checkpoint (0: from none), when those were promised: from the newest that
  // still is.
  void see_resume(std::int64_t step, const std::set<std::int64_t>& promised) const;
  const std::set<std::int64_t>& promised() const { return promised_; }

  std::int64_t repeated_steps() const { return repeated_steps_; }
  int rollbacks() const { return rollbacks_; }
  int last_savings() const { return last_savings_; }  // generations that only save

 private:
  struct Formed {
    int incarnation = 0;
    Place place = {};  // of any rank
    bool has_all = false;
    std::set<std::int64_t> voted = {};
  };

  Undisturbed undisturbed_;
  std::map<Generation, Formed> formed_;
  std::map<std::pair<Generation, std::int64_t>, std::set<MemberId>> votes_;
  std::map<std::int64_t, int> rounds_;  // generations that have voted for a step
  std::set<std::int64_t> decided_;
  std::set<std::int64_t> promised_;  // checkpoints
  std::set<std::int64_t> damaged_;   // that were promised
  Generation last_to_decide_ = 0;
  std::int64_t repeated_steps_ = 0;
  int rollbacks_ = 0;
  int last_savings_ = 0;
};

}  // namespace lockstep::elastic::simulation
