// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/pipeline/play.h"

namespace lockstep::schedule {
namespace {

class Player {
 public:
  explicit Player(const Pipeline& pipeline)
      : pipeline_(pipeline), number_of_(pipeline), made_(number_of_.count()), waiting_(number_of_.count()) {
    played_.reached.resize(pipeline.programs.size());
  }

  Played run() {
    for (Rank rank = 0; rank < pipeline_.placement.stages; ++rank) {
      ready_.push_back(rank);
      while (!ready_.empty()) {
        const Rank next = ready_.back();
        ready_.pop_back();
        advance(next);
      }
    }
    return std::move(played_);
  }

 private:
  // Runs the rank's passes up to the first that has to wait.
  void advance(Rank rank) {
    const PipelineProgram& program = pipeline_.programs[static_cast<std::size_t>(rank)];
    std::size_t& reached = played_.reached[static_cast<std::size_t>(rank)];
    for (; reached < program.size(); ++reached) {
      if (must_wait(rank, program[reached])) return;
      played_.order.push_back({rank, reached});
      if (const auto output = output_of(pipeline_.placement, rank, program[reached])) make(*output);
    }
  }

  bool must_wait(Rank rank, const PipelineEntry& entry) {
    const auto input = input_of(pipeline_.placement, rank, entry);
    if (!input || made_[number_of_(*input)]) return false;
    waiting_[number_of_(*input)] = true;
    return true;
  }

  void make(const PipelineMessage& message) {
    const std::size_t number = number_of_(message);
    made_[number] = true;
    if (waiting_[number]) ready_.push_back(message.to);
    waiting_[number] = false;
  }

  const Pipeline& pipeline_;
  MessageNumbers number_of_;
  std::vector<bool> made_;
  std::vector<bool> waiting_;  // a rank has stopped for want of it
  std::vector<Rank> ready_;
  Played played_;
};

}  // namespace

Played play(const Pipeline& pipeline) {
  return Player(pipeline).run();
}

}  // namespace lockstep::schedule
