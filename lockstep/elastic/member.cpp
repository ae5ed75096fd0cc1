// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/member.h"

#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::elastic {

Member::Member(MemberId id, std::string host) : id_(id), host_(std::move(host)) {}

Join Member::join(const Held& held, const std::string& reason) {
  LOCKSTEP_CHECK(state_ == State::outside || has_place(), "a worker asks once for a place");
  state_ = State::joining;
  join_ = {.member = id_,
           .host = host_,
           .generation = generation_,
           .held = held.step,
           .voted = held.voted,
           .reason = reason,
           .attempt = join_.attempt + 1,
           .run = run_};
  return join_;
}

Begun Member::begun(std::int64_t step) {
  LOCKSTEP_CHECK(state_ == State::placed, "a worker begins in a generation");
  step_ = step;
  return {.member = id_, .generation = generation_, .step = step};
}

Vote Member::vote(std::int64_t step) {
  LOCKSTEP_CHECK(state_ == State::placed, "a worker votes once for each step of a generation");
  state_ = State::voted;
  step_ = step;
  return {.member = id_, .generation = generation_, .step = step};
}

Leave Member::leave() {
  LOCKSTEP_CHECK(state_ != State::leaving && state_ != State::gone, "a worker leaves once");
  state_ = State::leaving;
  return {.member = id_};
}

Beat Member::beat(std::uint64_t progress, bool waits) const {
  // Who has no place waits for the others.
  return {.member = id_,
          .generation = generation_,
          .step = step_,
          .progress = progress,
          .waits = waits || state_ == State::joining || state_ == State::voted};
}

std::optional<MemberEvent> Member::hear(const FromCoordinator& message) {
  return std::visit([this](const auto& told) { return on(told); }, message);
}

std::optional<MemberEvent> Member::on(const Place& place) {
  if (state_ != State::joining || place.attempt != join_.attempt || place.generation <= generation_) {
    return std::nullopt;
  }
  state_ = State::placed;
  generation_ = place.generation;
  run_ = place.run;
  step_ = place.decided;
  const bool applies_voted = place.decided != kNoStep && join_.voted == place.decided;
  const bool holds_decided = place.decided != kNoStep && (applies_voted || join_.held == place.decided);
  return Placed{place, applies_voted, holds_decided};
}

std::optional<MemberEvent> Member::on(const Decision& decision) {
  if (state_ != State::voted || decision.generation != generation_ || decision.step != step_) {
    return std::nullopt;
  }
  state_ = decision.regroup ? State::outside : State::placed;
  return Decided{decision};
}

std::optional<MemberEvent> Member::on(const Abandon& abandon) {
  if (!has_place() || abandon.generation != generation_) return std::nullopt;
  state_ = State::outside;
  return GenerationEnded{abandon.generation, abandon.reason};
}

std::optional<MemberEvent> Member::on(const Dismiss& dismiss) {
  if (state_ == State::gone) return std::nullopt;
  const bool was_leaving = state_ == State::leaving;
  state_ = State::gone;
  if (was_leaving) return Left{};
  return Refused{dismiss.is_over, dismiss.reason};
}

std::optional<MemberEvent> Member::disconnect(const std::string& reason) {
  if (!has_place()) return std::nullopt;
  state_ = State::outside;
  return GenerationEnded{generation_, reason};
}

std::optional<FromMember> Member::reconnect() {
  if (state_ == State::joining) {
    ++join_.attempt;
    return join_;
  }
  if (state_ == State::leaving) return Leave{.member = id_};
  return std::nullopt;
}

}  // namespace lockstep::elastic
