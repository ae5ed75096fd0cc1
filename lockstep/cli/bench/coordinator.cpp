// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/coordinator.h"

#include <algorithm>
#include <limits>
#include <set>

#include "lockstep/base/error.h"

namespace lockstep::cli {
namespace {

using Verb = Command::Verb;

// A calibration run at least this long tells how many operations fill a turn.
constexpr double kCalibrationShare = 0.2;

bool waited_for_all(const std::vector<Reply>& replies) {
  std::int64_t last_entered = std::numeric_limits<std::int64_t>::min();
  std::int64_t first_left = std::numeric_limits<std::int64_t>::max();
  for (const Reply& reply : replies) {
    last_entered = std::max(last_entered, reply.entered_ns);
    first_left = std::min(first_left, reply.left_ns);
  }
  return first_left >= last_entered;
}

// One contestant through a measurement.
class Entry {
 public:
  Entry(const Contestant& contestant, std::uint32_t slot) : contestant_(contestant), slot_(slot) {
    contestant_.crew->command(
        {.verb = Verb::prepare, .slot = slot_, .what = contestant_.what, .iterations = 0});
  }

  void check() {
    const auto replies =
        contestant_.crew->command({.verb = Verb::check, .slot = slot_, .what = {}, .iterations = 0});
    for (const Reply& reply : replies) correct_ = correct_ && reply.correct;
    const bool synchronizes =
        contestant_.what.op == schedule::Op::barrier && contestant_.what.system != "memcpy";
    if (synchronizes) correct_ = correct_ && waited_for_all(replies);
  }

  void calibrate(double turn_us) {
    double once_us = run();
    while (once_us * static_cast<double>(iterations_) < turn_us * kCalibrationShare &&
           iterations_ < kMaxIterations) {
      iterations_ = std::min(iterations_for_turn(once_us, turn_us), iterations_ * 16);
      once_us = run();
    }
    iterations_ = iterations_for_turn(once_us, turn_us);
  }

  void take_turn() { times_us_.push_back(run()); }

  Measurement result() const {
    return {.contestant = contestant_, .time_us = spread_of(times_us_), .correct = correct_};
  }

 private:
  // Microseconds of one operation on the slowest rank.
  double run() {
    const auto replies =
        contestant_.crew->command({.verb = Verb::run, .slot = slot_, .what = {}, .iterations = iterations_});
    std::int64_t longest_ns = 0;
    for (const Reply& reply : replies) longest_ns = std::max(longest_ns, reply.elapsed_ns);
    return static_cast<double>(longest_ns) / 1e3 / static_cast<double>(iterations_);
  }

  Contestant contestant_;
  std::uint32_t slot_;
  std::size_t iterations_ = 1;
  std::vector<double> times_us_;
  bool correct_ = true;
};

}  // namespace

std::vector<Measurement> measure(const std::vector<Contestant>& contestants, const Pace& pace) {
  LOCKSTEP_CHECK(contestants.size() <= kMaxBenchSlots);
  std::vector<Entry> entries;
  std::set<Crew*> crews;
  for (const Contestant& contestant : contestants) {
    entries.emplace_back(contestant, static_cast<std::uint32_t>(entries.size()));
    crews.insert(contestant.crew);
  }
  for (Entry& entry : entries) {
    entry.check();
    entry.calibrate(pace.turn_us);
  }
  for (int turn = 0; turn < pace.turns; ++turn) {
    for (Entry& entry : entries) entry.take_turn();
  }
  std::vector<Measurement> results;
  for (Entry& entry : entries) {
    entry.check();
    results.push_back(entry.result());
  }
  for (Crew* crew : crews) crew->command({.verb = Verb::release, .slot = 0, .what = {}, .iterations = 0});
  return results;
}

}  // namespace lockstep::cli
