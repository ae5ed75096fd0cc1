// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/checker.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep::elastic::simulation {
namespace {

void require(bool holds, const auto& why) {
  if (!holds) throw Violation(why());
}

bool has_all_of(std::int64_t step, const std::vector<Brought>& brought) {
  if (step == kNoStep) return false;
  Cells together;
  for (const Brought& member : brought) {
    if (member.held == step || member.voted == step)
      together.insert(member.cells.begin(), member.cells.end());
  }
  return are_all(together);
}

}  // namespace

void Checker::see_outputs(std::int64_t decided_before, std::int64_t decided_after, const Outputs& outputs) {
  if (decided_after >= decided_before) return;
  const bool is_recorded = std::ranges::any_of(outputs, [&](const Output& output) {
    const Record* const record = std::get_if<Record>(&output);
    return record != nullptr && record->is_rollback && record->decided == decided_after;
  });
  require(is_recorded, [&] {
    return fmt::format("the coordinator went back from step {} to {} without a record", decided_before,
                       decided_after);
  });
  ++rollbacks_;
}

void Checker::see_place(int incarnation, const Place& place, const std::vector<Brought>& brought) {
  const auto [found, is_new] = formed_.try_emplace(place.generation);
  Formed& formed = found->second;
  if (is_new)
    formed = {.incarnation = incarnation, .place = place, .has_all = has_all_of(place.decided, brought)};
  require(formed.incarnation == incarnation && formed.place.members == place.members,
          [&] { return fmt::format("generation {} was formed twice", place.generation); });
  if (!is_new) return;
  if (place.only_saves) ++last_savings_;
  require(formed_.rbegin()->first == place.generation,
          [&] { return fmt::format("generation {} comes after a later one", place.generation); });
  // Who was left out of a generation that went back and decided anew holds what is void, also when all who
  // were in it have died since.
  Generation newest = last_to_decide_;
  for (const Brought& member : brought) newest = std::max(newest, member.generation);
  for (const Brought& member : brought) {
    require(member.generation < newest || member.held <= place.decided, [&] {
      return fmt::format("step {} was decided, and generation {} knows of {} only", member.held,
                         place.generation, place.decided);
    });
  }
}

void Checker::see_decision(const Decision& decision) {
  const auto formed = formed_.find(decision.generation);
  require(formed != formed_.end(),
          [&] { return fmt::format("generation {} decides without being one", decision.generation); });
  const std::set<MemberId>& votes = votes_[{decision.generation, decision.step}];
  for (const MemberId member : formed->second.place.members) {
    require(votes.contains(member), [&] {
      return fmt::format("step {} was decided in generation {} without the vote of member {:x}",
                         decision.step, decision.generation, member);
    });
  }
  require(decision.generation >= last_to_decide_, [&] {
    return fmt::format("generation {} decides after generation {} has", decision.generation, last_to_decide_);
  });
  last_to_decide_ = decision.generation;
  decided_.insert(decision.step);
}

void Checker::see_vote(MemberId member, Generation generation, std::int64_t step) {
  std::set<MemberId>& votes = votes_[{generation, step}];
  if (votes.empty() && ++rounds_[step] > 1) ++repeated_steps_;
  votes.insert(member);
  Formed& formed = formed_.at(generation);
  formed.voted.insert(step);
  const auto undecided =
      std::ranges::count_if(formed.voted, [&](std::int64_t voted) { return !decided_.contains(voted); });
  require(undecided <= 1, [&] {
    return fmt::format("generation {} works on {} steps that are not decided", generation, undecided);
  });
}

void Checker::see_update(std::int64_t step) const {
  require(decided_.contains(step),
          [&] { return fmt::format("step {} was applied, and nobody has decided it", step); });
}

void Checker::see_begin(const Place& place, std::int64_t step) const {
  require(!formed_.at(place.generation).has_all || step == place.decided, [&] {
    return fmt::format("generation {} goes on from step {}, although all of step {} was there",
                       place.generation, step, place.decided);
  });
}

void Checker::see_cells(std::int64_t step, const Cells& cells) const {
  for (const auto& [cell, value] : cells) {
    require(value == undisturbed_.value(step, cell), [&, number = cell] {
      return fmt::format("cell {} is not what it is at step {} of an undisturbed run", number, step);
    });
  }
}

void Checker::see_damage(std::int64_t step) {
  if (promised_.erase(step) > 0) damaged_.insert(step);
}

void Checker::see_leave(std::int64_t step) const {
  const auto is_there = [step](std::int64_t saved) { return saved >= step; };
  require(std::ranges::any_of(promised_, is_there) || std::ranges::any_of(damaged_, is_there),
          [&] { return fmt::format("a member has left with step {}, which is in no checkpoint", step); });
}

void Checker::see_checkpoint(std::int64_t step, const Cells& cells) const {
  require(are_all(cells), [&] { return fmt::format("the checkpoint of step {} is not whole", step); });
  see_cells(step, cells);
}

void Checker::see_store(const std::set<std::int64_t>& committed) {
  std::erase_if(promised_, [&](std::int64_t step) {
    if (committed.contains(step)) return false;
    const bool is_replaced = std::ranges::any_of(
        promised_, [&](std::int64_t other) { return other > step && committed.contains(other); });
    require(is_replaced, [&] {
      return fmt::format("the checkpoint of step {} was reported, and is gone without a newer one", step);
    });
    return true;
  });
}

void Checker::see_resume(std::int64_t step, const std::set<std::int64_t>& promised) const {
  for (const std::int64_t better : promised) {
    require(better <= step || !promised_.contains(better), [&] {
      return fmt::format("a generation goes on from step {}, although the checkpoint of step {} is good",
                         step, better);
    });
  }
}

}  // namespace lockstep::elastic::simulation
