// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/stragglers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lockstep/rendezvous/host_id.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kHostBytes = 64;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// What a rank would need for a phase at the median speed of the others; none when none of them has done it.
double usual_seconds(const PhaseTimes& mine, const std::vector<PhaseTimes>& others, Phase phase) {
  const auto amount = [phase](const PhaseTimes& times) {
    return grows_with_lanes(phase) ? times.lanes : 1.0;
  };
  std::vector<double> speeds;
  for (const PhaseTimes& other : others) {
    if (amount(other) > 0) speeds.push_back(other[phase] / amount(other));
  }
  return speeds.empty() ? mine[phase] : median(speeds) * amount(mine);
}

Slowest judge(Rank rank, const PhaseTimes& mine, const std::vector<PhaseTimes>& others) {
  Slowest slowest = {.rank = rank};
  double usual = 0;
  double most_lost = 0;
  for (const Phase phase : kPhases) {
    if (phase == Phase::communication) continue;
    const double expected = usual_seconds(mine, others, phase);
    usual += expected;
    const double lost = mine[phase] - expected;
    if (lost > most_lost) {
      most_lost = lost;
      slowest.phase = phase;
    }
  }
  if (usual > 0) slowest.score = mine.busy() / usual;
  return slowest;
}

}  // namespace

std::optional<Slowest> slowest_rank(std::span<const PhaseTimes> times, std::span<const int> work) {
  std::optional<Slowest> slowest;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    std::vector<PhaseTimes> others;
    for (std::size_t other = 0; other < times.size(); ++other) {
      if (other != rank && work[other] == work[rank]) others.push_back(times[other]);
    }
    const auto waits_for = [&](const PhaseTimes& other) { return other.busy() > times[rank].busy(); };
    if (others.empty() || std::ranges::any_of(others, waits_for)) continue;
    const Slowest found = judge(static_cast<Rank>(rank), times[rank], others);
    if (!slowest || found.score > slowest->score) slowest = found;
  }
  return slowest;
}

std::string to_text(const SpeedReport& report) {
  return fmt::format(
      "rank {} on {} takes {:.1f} times as long as the others, most of all in {}, for {} steps",
      report.slowest.rank, report.host, report.slowest.score, name_of(report.slowest.phase), report.steps);
}

StragglerWatch::StragglerWatch(const spec::Elastic& settings, const comm::Communicator& world,
                               std::vector<int> work)
    : settings_(settings), world_(world), work_(std::move(work)) {}

std::optional<SpeedReport> StragglerWatch::compare_if_due(std::int64_t step) {
  ++steps_;
  if (settings_.straggler_freq == 0 || step % settings_.straggler_freq != 0) return std::nullopt;
  const std::int64_t steps = std::exchange(steps_, 0);
  const std::vector<PhaseTimes> times = exchange();
  const std::optional<Slowest> slowest = slowest_rank(times, work_);
  if (!slowest) return std::nullopt;

  SpeedReport report = {.slowest = *slowest};
  for (const PhaseTimes& of_rank : times) report.mean += of_rank;
  for (double& seconds : report.mean.seconds)
    seconds /= static_cast<double>(times.size()) * static_cast<double>(steps);

  const bool is_slow = slowest->score >= settings_.straggler_factor;
  if (!is_slow || suspect_ != slowest->rank) in_a_row_ = steps_so_far_ = 0;
  suspect_ = is_slow ? std::optional(slowest->rank) : std::nullopt;
  if (!is_slow) return report;
  steps_so_far_ += steps;
  if (++in_a_row_ < settings_.straggler_patience) return report;
  report.is_named = true;
  report.steps = std::exchange(steps_so_far_, 0);
  report.host = host_of(slowest->rank);
  in_a_row_ = 0;
  return report;
}

std::vector<PhaseTimes> StragglerWatch::exchange() {
  std::vector<PhaseTimes> times(static_cast<std::size_t>(world_.size()));
  times[static_cast<std::size_t>(world_.rank())] = std::exchange(since_last_, {});
  world_.all_reduce(std::as_writable_bytes(std::span(times)), {.dtype = DType::fp64});
  return times;
}

std::string StragglerWatch::host_of(Rank rank) const {
  std::array<char, kHostBytes> name{};
  const std::string mine = rendezvous::host_name();
  if (rank == world_.rank()) std::memcpy(name.data(), mine.data(), std::min(mine.size(), name.size() - 1));
  world_.broadcast(std::as_writable_bytes(std::span(name)), {.dtype = DType::uint8, .root = rank});
  return name.data();
}

}  // namespace lockstep::train
