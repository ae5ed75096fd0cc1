// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/phases.h"

namespace lockstep::train {

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::data:
      return "data";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
    case Phase::checkpoint:
      return "checkpoint";
    case Phase::other:
      return "other";
    case Phase::communication:
      return "communication";
  }
  return "";
}

Phase phase_of(schedule::Act act) {
  using schedule::Act;
  switch (act) {
    case Act::forward:
      return Phase::forward;
    case Act::loss:
    case Act::recompute:
    case Act::backward:
    case Act::backward_input:
    case Act::backward_weight:
    case Act::settle:
      return Phase::backward;
    case Act::update:
      return Phase::update;
    case Act::clear:
    case Act::merge:
    case Act::drop:
      return Phase::other;
    default:
      return Phase::communication;
  }
}

bool grows_with_lanes(Phase phase) {
  return phase == Phase::data || phase == Phase::forward || phase == Phase::backward;
}

PhaseTimes& PhaseTimes::operator+=(const PhaseTimes& more) {
  for (const Phase phase : kPhases) (*this)[phase] += more[phase];
  lanes += more.lanes;
  return *this;
}

double PhaseTimes::busy() const {
  double sum = 0;
  for (const Phase phase : kPhases) sum += phase == Phase::communication ? 0.0 : (*this)[phase];
  return sum;
}

double PhaseTimes::computing() const {
  double sum = 0;
  for (const Phase phase : kPhases) sum += grows_with_lanes(phase) ? (*this)[phase] : 0.0;
  return sum;
}

PhaseTimes in_phase(Phase phase, double seconds) {
  PhaseTimes times;
  times[phase] = seconds;
  return times;
}

}  // namespace lockstep::train
