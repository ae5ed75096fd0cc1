// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/save_round.h"

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

SaveTidings& SaveTidings::operator+=(const SaveTidings& other) {
  written += other.written;
  failed += other.failed;
  committed += other.committed;
  refused += other.refused;
  return *this;
}

void SaveRound::begin() {
  LOCKSTEP_CHECK(is_idle());
  state_ = State::writing;
  outcome_.reset();
}

SaveTidings SaveRound::tidings() const {
  SaveTidings tidings;
  if (!outcome_) return tidings;
  if (state_ == State::writing) (*outcome_ ? tidings.written : tidings.failed) = 1;
  if (state_ == State::committing) (*outcome_ ? tidings.committed : tidings.refused) = 1;
  return tidings;
}

SaveRound::Next SaveRound::hear(const SaveTidings& all) {
  if (state_ == State::writing && all.written + all.failed == ranks_) {
    if (all.failed > 0) return end(false);
    state_ = State::committing;
    outcome_.reset();
    return Next::commit;
  }
  if (state_ == State::committing && all.committed + all.refused > 0) return end(all.committed > 0);
  return Next::wait;
}

SaveRound::Next SaveRound::end(bool is_good) {
  state_ = State::idle;
  outcome_.reset();
  return is_good ? Next::good : Next::bad;
}

}  // namespace lockstep::checkpoint
