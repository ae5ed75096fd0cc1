// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/save_round.h"

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

SaveTidings& SaveTidings::operator+=(const SaveTidings& other) {
  written += other.written;
  failed += other.failed;
  committed += other.committed;
  refused += other.refused;
  collected += other.collected;
  return *this;
}

void SaveRound::begin() {
  LOCKSTEP_CHECK(is_idle());
  enter(State::writing, Next::nothing);
}

SaveTidings SaveRound::tidings() const {
  SaveTidings tidings;
  if (!outcome_) return tidings;
  if (state_ == State::writing) (*outcome_ ? tidings.written : tidings.failed) = 1;
  if (state_ == State::committing) (*outcome_ ? tidings.committed : tidings.refused) = 1;
  if (state_ == State::collecting) tidings.collected = 1;
  return tidings;
}

SaveRound::Next SaveRound::hear(const SaveTidings& all) {
  if (state_ == State::writing && all.written + all.failed == ranks_) {
    return all.failed > 0 ? enter(State::idle, Next::bad) : enter(State::committing, Next::commit);
  }
  if (state_ == State::committing && all.committed > 0) return enter(State::collecting, Next::good);
  if (state_ == State::committing && all.refused > 0) return enter(State::idle, Next::bad);
  if (state_ == State::collecting && all.collected > 0) return enter(State::idle, Next::nothing);
  return Next::nothing;
}

SaveRound::Next SaveRound::enter(State state, Next next) {
  state_ = state;
  outcome_.reset();
  return next;
}

}  // namespace lockstep::checkpoint
