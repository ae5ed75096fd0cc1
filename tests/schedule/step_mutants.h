// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "lockstep/schedule/step/step.h"

namespace lockstep::schedule {

// Calls the body with every program that differs from `right` in one action: it is missing, repeated, has
// another number, or keeps what it should not.
inline void for_each_mutant(
    const StepProgram& right,
    const std::function<void(const StepProgram& mutant, std::size_t action, std::string_view how)>& body) {
  constexpr int Action::*kNumbers[] = {&Action::lane,     &Action::micro_batch, &Action::chunk,
                                       &Action::block,    &Action::bucket,      &Action::slot,
                                       &Action::from_slot};
  for (std::size_t i = 0; i < right.actions.size(); ++i) {
    const auto place = static_cast<std::ptrdiff_t>(i);
    StepProgram mutant = right;
    mutant.actions.erase(mutant.actions.begin() + place);
    body(mutant, i, "missing");
    mutant = right;
    mutant.actions.insert(mutant.actions.begin() + place, right.actions[i]);
    body(mutant, i, "repeated");
    mutant = right;
    for (int Action::*number : kNumbers) {
      if (right.actions[i].*number < 0) continue;
      for (int change : {-1, 1}) {
        mutant.actions[i].*number = right.actions[i].*number + change;
        body(mutant, i, "another number");
      }
      mutant.actions[i] = right.actions[i];
    }
    if (right.actions[i].act != Act::forward) continue;
    mutant.actions[i].keeps = !right.actions[i].keeps;
    body(mutant, i, "keeps");
  }
}

}  // namespace lockstep::schedule
