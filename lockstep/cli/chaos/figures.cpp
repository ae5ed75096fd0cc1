// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/figures.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>

namespace lockstep::cli {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// One record for each step, by step.
std::map<std::int64_t, StepRecord> last_records(std::span<const StepRecord> steps) {
  std::map<std::int64_t, StepRecord> last;
  for (const StepRecord& record : steps) last[record.step] = record;
  return last;
}

double begin_of(std::span<const StepRecord> steps) {
  return steps.front().time_s - steps.front().step_s;
}

// A loss for each fault that has led to one.
class Losses {
 public:
  Losses(std::span<const InjectedFault> faults, std::span<const GenerationRecord> generations)
      : generations_(generations), of_fault_(faults.size(), nullptr) {
    for (std::size_t i = 0; i < faults.size(); ++i) {
      const double next = i + 1 < faults.size() ? faults[i + 1].time_s : kNever;
      if (faults[i].fault.kind != FaultKind::stop) claim(i, faults[i].time_s, next);
    }
    for (std::size_t i = 0; i < faults.size(); ++i) {
      const double goes_on_after = faults[i].fault.stopped_for_s;
      if (faults[i].fault.kind != FaultKind::stop) continue;
      claim(i, faults[i].time_s, goes_on_after > 0 ? faults[i].time_s + goes_on_after : kNever);
    }
  }

  const GenerationRecord* of(std::size_t fault) const { return of_fault_[fault]; }

 private:
  void claim(std::size_t fault, double from, double until) {
    for (const GenerationRecord& record : generations_) {
      if (record.event != "lost" || record.time_s < from || record.time_s >= until) continue;
      if (std::ranges::find(of_fault_, &record) != of_fault_.end()) continue;
      of_fault_[fault] = &record;
      return;
    }
  }

  std::span<const GenerationRecord> generations_;
  std::vector<const GenerationRecord*> of_fault_;
};

const GenerationRecord* first_trained_after(std::span<const GenerationRecord> generations, double time_s) {
  const auto found = std::ranges::find_if(generations, [time_s](const GenerationRecord& record) {
    return record.event == "trained" && record.time_s >= time_s;
  });
  return found == generations.end() ? nullptr : &*found;
}

// A loss that one run did not record is equal to nothing.
bool is_same_loss(std::optional<double> one, std::optional<double> other) {
  if (!one || !other) return false;
  return *one == *other || (std::isnan(*one) && std::isnan(*other));
}

}  // namespace

std::vector<FaultOutcome> outcomes_of(std::span<const InjectedFault> faults,
                                      std::span<const GenerationRecord> generations) {
  const Losses losses(faults, generations);
  std::vector<FaultOutcome> outcomes;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Fault& fault = faults[i].fault;
    const double time_s = faults[i].time_s;
    FaultOutcome outcome = {.kind = fault.kind, .noticed_s = std::nullopt, .recovered_s = std::nullopt};
    const GenerationRecord* lost = losses.of(i);
    if (lost != nullptr) outcome.noticed_s = lost->time_s - time_s;
    // A coordinator that was killed notices nothing.
    if (lost != nullptr || fault.kind == FaultKind::launcher) {
      const auto* trained = first_trained_after(generations, lost != nullptr ? lost->time_s : time_s);
      if (trained != nullptr) outcome.recovered_s = trained->time_s - time_s;
    }
    outcomes.push_back(outcome);
  }
  return outcomes;
}

Repeats repeats_of(std::span<const InjectedFault> faults, std::span<const GenerationRecord> generations) {
  Repeats repeats;
  bool is_training = false;
  std::int64_t reached = 0;  // the newest step that anybody has worked on
  const auto raise_to = [&reached](std::int64_t step) { reached = std::max(reached, step); };
  auto fault = faults.begin();
  for (const GenerationRecord& record : generations) {
    // What a killed coordinator had decided is not in its history.
    for (; fault != faults.end() && fault->time_s <= record.time_s; ++fault) {
      if (fault->fault.kind == FaultKind::launcher && is_training) raise_to(fault->step + 1);
    }
    if (record.event == "lost") {
      raise_to(record.step + (is_training ? 1 : 0));
      is_training = false;
    } else if (record.event == "begun") {
      const std::int64_t again = std::max<std::int64_t>(reached - record.step, 0);
      repeats.total += again;
      repeats.most = std::max(repeats.most, again);
      reached = record.step;
      is_training = true;
    } else if (record.event != "trained") {
      raise_to(record.step);
      is_training = false;
    }
  }
  return repeats;
}

std::optional<Effective> effective_time(std::span<const StepRecord> steps, double window_s, bool has_ended) {
  if (steps.empty()) return std::nullopt;
  const double begin = begin_of(steps);
  double productive = 0;
  double last = begin;
  std::int64_t done = 0;
  for (const auto& [step, record] : last_records(steps)) {
    last = std::max(last, record.time_s);
    if (record.time_s > begin + window_s) continue;
    productive += record.step_s;
    done = step;
  }
  const double wall = has_ended ? std::min(window_s, last - begin) : window_s;
  return Effective{.share = productive / wall, .window_s = wall, .steps = done};
}

std::optional<double> time_until(std::span<const StepRecord> steps, std::int64_t step) {
  const auto last = last_records(steps);
  const auto found = last.find(step);
  if (found == last.end()) return std::nullopt;
  return found->second.time_s - begin_of(steps);
}

LossComparison compare_losses(std::span<const StepRecord> disturbed,
                              std::span<const StepRecord> undisturbed) {
  const auto ours = last_records(disturbed);
  const auto theirs = last_records(undisturbed);
  std::set<std::int64_t> steps;
  for (const auto* records : {&ours, &theirs}) {
    for (const auto& [step, record] : *records) steps.insert(step);
  }
  LossComparison comparison = {.steps = std::ssize(steps)};
  for (const std::int64_t step : steps) {
    const auto one = ours.find(step);
    const auto other = theirs.find(step);
    if (one != ours.end() && other != theirs.end() && is_same_loss(one->second.loss, other->second.loss)) {
      continue;
    }
    ++comparison.different;
    if (!comparison.first_different) comparison.first_different = step;
  }
  return comparison;
}

std::optional<Spread> spread_over(std::span<const FaultOutcome> outcomes,
                                  std::optional<double> FaultOutcome::*time, std::optional<FaultKind> kind) {
  std::vector<double> times;
  for (const FaultOutcome& outcome : outcomes) {
    if (outcome.*time && (!kind || outcome.kind == *kind)) times.push_back(*(outcome.*time));
  }
  if (times.empty()) return std::nullopt;
  return spread_of(times);
}

}  // namespace lockstep::cli
