// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"

namespace lockstep::cli {
namespace {

// What random numbers are for.
enum class Purpose : std::uint64_t { gap, kind, worker, stop };

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}

  // In [0, 1).
  double roll(Purpose purpose, std::size_t index) const {
    return static_cast<double>(bits(purpose, index) >> 11) * 0x1p-53;
  }
  std::size_t roll_below(std::size_t limit, Purpose purpose, std::size_t index) const {
    return bits(purpose, index) % limit;
  }

 private:
  std::uint64_t bits(Purpose purpose, std::size_t index) const {
    return philox64(seed_, static_cast<std::uint64_t>(purpose), index);
  }

  std::uint64_t seed_;
};

std::vector<double> times_apart(const Dice& dice, const PlanOptions& options) {
  std::vector<double> times;
  const double random_gap = options.mtbf_s - options.least_gap_s;
  double time = 0;
  for (std::size_t i = 0;; ++i) {
    time += options.least_gap_s - random_gap * std::log1p(-dice.roll(Purpose::gap, i));
    if (time >= options.duration_s) return times;
    times.push_back(time);
  }
}

// As the former come when it is known how many there are.
std::vector<double> times_of(const Dice& dice, std::size_t count, const PlanOptions& options) {
  std::vector<double> times;
  const double random_time = options.duration_s - options.least_gap_s * static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) times.push_back(random_time * dice.roll(Purpose::gap, i));
  std::ranges::sort(times);
  for (std::size_t i = 0; i < count; ++i) times[i] += options.least_gap_s * static_cast<double>(i + 1);
  return times;
}

void require_room(const PlanOptions& options) {
  const double mean_gap = options.exactly.empty()
                              ? options.mtbf_s
                              : options.duration_s / static_cast<double>(options.exactly.size());
  if (options.least_gap_s < mean_gap) return;
  throw UsageError(
      fmt::format("faults come every {:g} s on average, which leaves no room for gaps of at least {:g} s",
                  mean_gap, options.least_gap_s));
}

std::vector<FaultKind> shuffled(const Dice& dice, std::vector<FaultKind> kinds) {
  for (std::size_t i = kinds.size(); i > 1; --i) {
    std::swap(kinds[i - 1], kinds[dice.roll_below(i, Purpose::kind, i)]);
  }
  return kinds;
}

// Half of those that are stopped go on before anybody gives them up, the others never do.
double stop_of(const Dice& dice, std::size_t index) {
  const double roll = dice.roll(Purpose::stop, index);
  return roll < 0.5 ? 0.5 + 5 * roll : 0;
}

}  // namespace

const std::vector<std::string>& fault_names() {
  static const std::vector<std::string> names = {"kill", "stop", "resize", "all", "launcher"};
  return names;
}

std::string_view name_of(FaultKind kind) {
  return fault_names().at(static_cast<std::size_t>(kind));
}

std::vector<Fault> plan_faults(const PlanOptions& options) {
  const Dice dice(options.seed);
  const bool is_counted = !options.exactly.empty();
  if (!is_counted && options.kinds.empty()) return {};
  require_room(options);
  const std::vector<double> times =
      is_counted ? times_of(dice, options.exactly.size(), options) : times_apart(dice, options);
  const std::vector<FaultKind> counted = shuffled(dice, options.exactly);
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const FaultKind kind =
        is_counted ? counted[i] : options.kinds[dice.roll_below(options.kinds.size(), Purpose::kind, i)];
    const auto workers = static_cast<std::size_t>(options.workers);
    faults.push_back({.at_s = times[i],
                      .kind = kind,
                      .worker = static_cast<int>(dice.roll_below(workers, Purpose::worker, i)),
                      .stopped_for_s = kind == FaultKind::stop ? stop_of(dice, i) : 0});
  }
  return faults;
}

void bound_by_steps(std::vector<Fault>& plan, std::int64_t steps, double time_s) {
  for (Fault& fault : plan) {
    const double share = fault.at_s / time_s;
    // The step that should be under way at its time: a run that is no faster than expected has not done it.
    fault.by_step = static_cast<std::int64_t>(share * static_cast<double>(steps)) + 1;
  }
}

}  // namespace lockstep::cli
