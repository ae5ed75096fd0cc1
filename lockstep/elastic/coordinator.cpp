// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/coordinator.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/elastic/ranks.h"

namespace lockstep::elastic {
namespace {

constexpr const char* kFinished = "the run is finished";
constexpr const char* kHasLeft = "it has done everything";

GenerationSize size_of(const CoordinatorOptions& options, int least) {
  return {.least = least, .most = options.max_members, .multiple = options.multiple};
}

LivenessLimits limits_of(const CoordinatorOptions& options) {
  return {.beat_timeout = options.beat_timeout,
          .stall_timeout = options.stall_timeout,
          .wait_timeout = options.wait_timeout};
}

void check(const CoordinatorOptions& options) {
  const auto [expected, least, most, multiple] =
      std::tuple(options.expected, options.min_members, options.max_members, options.multiple);
  if (least < 1 || multiple < 1 || least > most || expected < 1 ||
      places_for(static_cast<std::size_t>(most), size_of(options, least)) == 0) {
    throw UsageError(
        fmt::format("{} to {} workers in multiples of {}, {} at the begin: no such number exists", least,
                    most, multiple, expected));
  }
}

}  // namespace

Coordinator::Coordinator(const CoordinatorOptions& options, Time now)
    : options_(options),
      generation_(options.last_generation),
      decided_(options.decided),
      members_(options.last_members),
      losses_(options.losses) {
  check(options);
  // Those of a coordinator before this one are awaited as after any loss: they may hold what nobody else
  // does.
  for (const MemberId member : members_) {
    known_.emplace(member, Known{.join = {.member = member},
                                 .wants_place = false,
                                 .duty = Duty::come_back,
                                 .liveness = Liveness(now)});
  }
  if (members_.empty()) short_since_ = now;
}

Outputs Coordinator::hear(const FromMember& message, Time now) {
  const MemberId from = std::visit([](const auto& told) { return told.member; }, message);
  if (fenced_.contains(from)) {
    dismiss(from, "it was given up before", false);
    return take_outputs();
  }
  const auto known = known_.find(from);
  if (known != known_.end()) known->second.liveness.hear(now);
  std::visit([&](const auto& told) { on(told, now); }, message);
  advance(now);
  return take_outputs();
}

void Coordinator::on(const Join& join, Time now) {
  if (phase_ == Phase::finishing || phase_ == Phase::ended) {
    dismiss(join.member, closing_.value_or(kFinished), true);
    known_.erase(join.member);
    return;
  }
  if (join.generation != 0 && join.run != options_.run) {
    return dismiss(join.member, "it belongs to another run", false);
  }
  if (refuse(join, now)) return;
  const auto [found, is_new] = known_.try_emplace(join.member, Known{.liveness = Liveness(now)});
  Known& known = found->second;
  if (!is_new && join.attempt <= known.join.attempt) return;
  const bool leaves = phase_ == Phase::running && !known.wants_place;
  known = {.join = join, .order = is_new ? ++joins_ : known.order, .liveness = Liveness(now)};
  if (leaves) fail(fmt::format("{} has left: {}", name_of(join.member), join.reason), now);
}

void Coordinator::on(const Begun& begun, Time now) {
  Known* const known = placed(begun.member, begun.generation);
  if (known == nullptr || known->begun) return;
  known->begun = begun.step;
  begin_if_all_have(now);
}

void Coordinator::begin_if_all_have(Time now) {
  const std::optional<std::int64_t> step = known_.at(members_.front()).begun;
  for (const MemberId member : members_) {
    const std::optional<std::int64_t> other = known_.at(member).begun;
    if (!other || !step) return;
    if (*other != *step) {
      return fail(fmt::format("members disagree whether to go on from step {} or {}", *step, *other), now);
    }
  }
  has_begun_ = true;
  const bool is_rollback = *step < decided_;
  decided_ = *step;
  if (is_rollback) outputs_.push_back(Record{generation_, members_, decided_, is_rollback});
}

void Coordinator::on(const Beat& beat, Time now) {
  const auto known = known_.find(beat.member);
  if (known == known_.end()) return;
  Beat heard = beat;
  heard.waits = beat.waits && beat.generation == generation_;  // who waits in an older one waits in vain
  known->second.liveness.hear(heard, now);
}

void Coordinator::on(const Vote& vote, Time now) {
  Known* const known = placed(vote.member, vote.generation);
  if (known == nullptr || !known->begun) return;
  if (vote.step != (has_begun_ ? decided_ : *known->begun) + 1) return;
  known->has_voted = true;
  known->duty = Duty::none;
  limit_waits(now);
  decide_if_all_voted(now);
}

// Somebody has voted, and waits for the others without a deadline; or all are to come for another place, or
// to end.
void Coordinator::limit_waits(Time now) {
  for (const MemberId member : members_) {
    const auto known = known_.find(member);
    if (known == known_.end() || known->second.duty != Duty::train) continue;
    known->second.duty = Duty::catch_up;
    known->second.liveness.renew(now);
  }
}

void Coordinator::decide_if_all_voted(Time now) {
  const auto has_voted = [&](MemberId member) { return known_.at(member).has_voted; };
  if (!std::ranges::all_of(members_, has_voted)) return;
  ++decided_;
  has_decided_ = true;
  failed_starts_.forget();
  const bool regroup = would_grow();
  for (const MemberId member : members_) {
    Known& known = known_.at(member);
    known.has_voted = false;
    known.duty = Duty::train;
    known.liveness.renew(now);
    outputs_.push_back(Send{member, Decision{generation_, decided_, regroup}});
  }
  if (!regroup) return;
  phase_ = Phase::gathering;
  limit_waits(now);
}

void Coordinator::on(const Leave& leave, Time now) {
  // One whose connection had ended says it over the next one, and was taken for lost meanwhile.
  const auto known = known_.find(leave.member);
  const bool had_place = known == known_.end() ? is_member(leave.member) : !known->second.wants_place;
  if (known != known_.end()) known_.erase(known);
  dismiss(leave.member, kHasLeft, true);
  if (!had_place || phase_ == Phase::finishing || phase_ == Phase::ended) return;
  phase_ = Phase::finishing;
  has_left_ = true;
  limit_waits(now);
  for (const MemberId member : waiting()) {
    dismiss(member, closing_.value_or(kFinished), true);
    known_.erase(member);
  }
}

Outputs Coordinator::lose(MemberId member, const std::string& reason, Time now) {
  const auto known = known_.find(member);
  if (known == known_.end()) return {};
  const bool breaks = phase_ == Phase::running && !known->second.wants_place;
  losses_.lose(known->second.join.host, now);
  forget_failures_with(member);
  known_.erase(known);
  if (breaks) abandon(fmt::format("{} was lost: {}", name_of(member), reason), now);
  advance(now);
  return take_outputs();
}

Outputs Coordinator::tick(Time now) {
  fence_silent(now);
  advance(now);
  return take_outputs();
}

void Coordinator::fence_silent(Time now) {
  std::optional<std::string> broken;
  for (auto known = known_.begin(); known != known_.end();) {
    const auto& [member, state] = *known;
    const auto failure = state.liveness.failure(state.duty, limits_of(options_), now);
    if (!failure) {
      ++known;
      continue;
    }
    dismiss(member, *failure, false);
    losses_.lose(state.join.host, now);
    forget_failures_with(member);
    outputs_.push_back(Fence{member, *failure});
    fenced_.insert(member);
    if (!state.wants_place && !broken) broken = fmt::format("{} was given up: {}", name_of(member), *failure);
    known = known_.erase(known);
  }
  if (broken && phase_ == Phase::running) abandon(*broken, now);
}

void Coordinator::abandon(const std::string& reason, Time now) {
  phase_ = Phase::gathering;
  for (const MemberId member : members_) {
    const auto known = known_.find(member);
    if (known == known_.end() || known->second.wants_place) continue;
    known->second.duty = Duty::come_back;
    known->second.liveness.renew(now);
    outputs_.push_back(Send{member, Abandon{generation_, reason}});
  }
}

void Coordinator::fail(const std::string& reason, Time now) {
  if (!has_decided_) failed_starts_.add(reason, now);
  abandon(reason, now);
}

// Those that were connected to it may have come back before it was seen.
void Coordinator::forget_failures_with(MemberId lost) {
  if (is_member(lost)) failed_starts_.forget();
}

void Coordinator::advance(Time now) {
  if (phase_ == Phase::finishing && !is_anyone_awaited()) {
    const bool is_done = !closing_ || (options_.last_step != kNoStep && decided_ >= options_.last_step);
    return end(is_done, is_done ? kFinished : *closing_);
  }
  if (phase_ != Phase::gathering || is_anyone_awaited()) return;
  if (failed_starts_.is_hopeless(options_.join_timeout, now)) return end(false, failed_starts_.to_string());
  if (failed_starts_.count() > 0 && now < failed_starts_.next_start()) return;
  const std::vector<MemberId> candidates = leave_out(waiting(), now);
  // Nobody is known who could be missing: all that the run was started with are waited for.
  const bool is_first = members_.empty();
  const bool is_late =
      (is_winding_up_ && !is_first) || (short_since_ && now >= *short_since_ + options_.join_timeout);
  if (is_first && !is_late && candidates.size() < static_cast<std::size_t>(options_.expected)) return;
  closing_.reset();
  const std::vector<MemberId> members = choose(candidates, options_.min_members);
  if (!members.empty()) {
    short_since_.reset();
    return form(members, now);
  }
  if (!short_since_) short_since_ = now;
  if (is_late) save_and_end(candidates, now);
}

void Coordinator::save_and_end(const std::vector<MemberId>& candidates, Time now) {
  const std::string reason = fmt::format("only {} there, fewer than the {} that are needed, for {:.0f} s",
                                         counted(candidates.size(), "worker"), options_.min_members,
                                         std::chrono::duration<double>(now - *short_since_).count());
  const auto holds = [&](MemberId member) { return known_.at(member).join.held != kNoStep; };
  const std::vector<MemberId> members = choose(candidates, options_.multiple);
  if (!options_.can_save || std::ranges::none_of(members, holds)) return end(false, reason);
  closing_ = reason;
  form(members, now);
}

std::vector<MemberId> Coordinator::leave_out(const std::vector<MemberId>& candidates, Time now) {
  if (!failed_starts_.is_suspicious()) return candidates;
  const auto holds = [&](MemberId member) { return known_.at(member).join.held != kNoStep; };
  const bool is_new = std::ranges::none_of(candidates, holds);
  std::vector<MemberId> kept = candidates;
  std::erase_if(kept, [&](MemberId member) {
    return is_new ? known_.at(member).join.host != options_.host : !holds(member);
  });
  if (choose(kept, options_.min_members).empty()) return candidates;
  for (const MemberId member : candidates) {
    const bool is_kept = std::ranges::find(kept, member) != kept.end();
    if (is_kept || !is_member(member)) continue;  // it may have its turn later
    dismiss(member, failed_starts_.to_string(), false);
    losses_.lose(known_.at(member).join.host, now);
    known_.erase(member);
  }
  return kept;
}

void Coordinator::form(const std::vector<MemberId>& members, Time now) {
  // Who was in the newest generation knows best what was decided; this coordinator may be younger than that,
  // and its log may know of a generation that nobody was told of, or be older than the members.
  Generation newest = 0;
  for (const MemberId member : waiting()) newest = std::max(newest, known_.at(member).join.generation);
  for (const MemberId member : waiting()) {
    const Join& join = known_.at(member).join;
    if (join.generation == newest) decided_ = std::max(decided_, join.held);
  }
  generation_ = std::max(generation_, newest) + 1;
  members_ = members;
  phase_ = Phase::running;
  has_begun_ = has_decided_ = false;
  outputs_.push_back(Record{generation_, members_, decided_, false});
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Known& known = known_.at(members_[rank]);
    known.wants_place = false;
    known.duty = Duty::train;
    known.liveness.renew(now);
    outputs_.push_back(Send{members_[rank], Place{.generation = generation_,
                                                  .rank = static_cast<std::int32_t>(rank),
                                                  .members = members_,
                                                  .decided = decided_,
                                                  .attempt = known.join.attempt,
                                                  .run = options_.run,
                                                  .only_saves = closing_.has_value()}});
  }
}

void Coordinator::end(bool is_finished, const std::string& reason) {
  phase_ = Phase::ended;
  if (!is_finished) closing_ = reason;  // for those who come late
  for (const auto& [member, known] : known_) dismiss(member, reason, true);
  known_.clear();
  outputs_.push_back(End{is_finished, reason});
}

Outputs Coordinator::wind_up(Time now) {
  is_winding_up_ = true;
  advance(now);
  return take_outputs();
}

Outputs Coordinator::give_up(const std::string& reason) {
  if (phase_ != Phase::ended) end(false, reason);
  return take_outputs();
}

void Coordinator::dismiss(MemberId member, const std::string& reason, bool is_over) {
  outputs_.push_back(Send{member, Dismiss{is_over, reason}});
}

bool Coordinator::refuse(const Join& join, Time now) {
  if (known_.contains(join.member)) return false;
  const auto is_of_host = [&](const auto& entry) { return entry.second.join.host == join.host; };
  const auto others = static_cast<std::size_t>(std::ranges::count_if(known_, is_of_host));
  const std::optional<std::string> reason = losses_.join(join.host, others + 1, now);
  if (reason) dismiss(join.member, *reason, false);
  return reason.has_value();
}

std::optional<Time> Coordinator::next_deadline() const {
  std::optional<Time> next;
  const auto consider = [&](Time time) { next = next ? std::min(*next, time) : time; };
  for (const auto& [member, known] : known_) {
    consider(known.liveness.deadline(known.duty, limits_of(options_)));
  }
  if (phase_ != Phase::gathering || is_anyone_awaited()) return next;
  const bool is_suspicious = failed_starts_.is_suspicious();
  const Time start = is_suspicious ? failed_starts_.next_start() : Time(0);
  if (short_since_) {
    consider(std::max(*short_since_ + options_.join_timeout, start));
  } else if (is_suspicious) {
    consider(start);
  }
  return next;
}

Coordinator::Known* Coordinator::placed(MemberId member, Generation generation) {
  if (phase_ != Phase::running || generation != generation_) return nullptr;
  const auto known = known_.find(member);
  return known == known_.end() || known->second.wants_place ? nullptr : &known->second;
}

std::vector<MemberId> Coordinator::waiting() const {
  // The newest generation first: what it holds is what counts, whether or not the log knew of it. Whole
  // replicas before others: who is left out then has its part of the model in common with one who is not.
  using Precedence = std::tuple<Generation, bool, bool, std::size_t, std::uint64_t>;
  std::vector<std::pair<Precedence, MemberId>> by_place;
  for (const auto& [member, known] : known_) {
    if (!known.wants_place) continue;
    const auto rank = static_cast<std::size_t>(std::ranges::find(members_, member) - members_.begin());
    const bool is_away = known.join.host != options_.host;
    by_place.push_back(
        {{~known.join.generation, !was_in_whole_replica(known.join), is_away, rank, known.order}, member});
  }
  std::ranges::sort(by_place);
  std::vector<MemberId> members;
  for (const auto& [place, member] : by_place) members.push_back(member);
  return members;
}

bool Coordinator::was_in_whole_replica(const Join& join) const {
  const auto world = static_cast<int>(members_.size());
  // Those of a coordinator before this one may have had another layout.
  const bool is_known = is_member(join.member) && join.generation == generation_;
  if (!is_known || world % options_.multiple != 0) return true;
  const auto mine = static_cast<Rank>(std::ranges::find(members_, join.member) - members_.begin());
  const ReplicaShape shape = {.ranks = options_.multiple, .pipeline = options_.pipeline};
  return std::ranges::all_of(replica_with(mine, world, shape), [&](Rank rank) {
    const auto known = known_.find(members_[static_cast<std::size_t>(rank)]);
    return known != known_.end() && known->second.wants_place;
  });
}

std::vector<MemberId> Coordinator::choose(const std::vector<MemberId>& members, int least) const {
  std::vector<Candidate> candidates;
  for (const MemberId member : members) candidates.push_back({member, known_.at(member).join.host});
  std::vector<MemberId> chosen = choose_members(std::move(candidates), size_of(options_, least));
  // Not that of ranges, which clang 14 cannot read.
  std::stable_partition(chosen.begin(), chosen.end(),
                        [&](MemberId member) { return known_.at(member).join.host == options_.host; });
  return chosen;
}

bool Coordinator::is_short() const {
  return phase_ == Phase::gathering && short_since_ && !is_winding_up_ && !members_.empty() &&
         !waiting().empty();
}

bool Coordinator::would_grow() const {
  return places_for(members_.size() + waiting().size(), size_of(options_, options_.min_members)) >
         members_.size();
}

bool Coordinator::is_anyone_awaited() const {
  return std::ranges::any_of(known_, [](const auto& entry) { return !entry.second.wants_place; });
}

bool Coordinator::is_member(MemberId member) const {
  return std::ranges::find(members_, member) != members_.end();
}

std::string Coordinator::name_of(MemberId member) const {
  const auto found = std::ranges::find(members_, member);
  if (found == members_.end()) return fmt::format("member {:x}", member);
  return fmt::format("rank {}", found - members_.begin());
}

Outputs Coordinator::take_outputs() {
  return std::exchange(outputs_, {});
}

}  // namespace lockstep::elastic
