// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/process.h"

#include <utility>

namespace lockstep::elastic::simulation {

void Events::at(Time when, Action action) {
  waiting_.emplace(std::pair(when, ++added_), std::move(action));
}

bool Events::next() {
  if (waiting_.empty()) return false;
  auto first = waiting_.extract(waiting_.begin());
  now_ = first.key().first;
  first.mapped()();
  return true;
}

void Process::perform(Events::Action action) {
  if (!is_alive_) return;
  if (is_paused_) {
    due_.push_back(std::move(action));
  } else {
    action();
  }
}

void Process::after(Time delay, Events::Action action) {
  events_.after(delay * slowness_, [this, action = std::move(action)] { perform(action); });
}

void Process::go_on() {
  is_paused_ = false;
  for (Events::Action& action : std::exchange(due_, {})) perform(std::move(action));
}

void Process::end(bool silently) {
  is_alive_ = false;
  died_silently_ = silently;
  due_.clear();
}

}  // namespace lockstep::elastic::simulation
