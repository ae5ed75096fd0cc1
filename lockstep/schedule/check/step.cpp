// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/step.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/check/step_passes.h"
#include "lockstep/schedule/check/step_sums.h"
#include "lockstep/schedule/check/step_wrong.h"

namespace lockstep::schedule {
namespace {

class Checker {
 public:
  Checker(const StepSpec& spec, const StepProgram& program)
      : program_(program), passes_(spec), sums_(spec, program) {}

  StepCheck run() {
    std::size_t index = 0;
    try {
      for (; index < program_.actions.size(); ++index) play(program_.actions[index]);
      sums_.require_updated();
      require(shared_, "the program ends without sharing the losses");
      require(head_is_passed_on_ == (passes_.sends_head() || passes_.receives_head()),
              "the program ends before both stages have the new tied head");
    } catch (const StepWrong& wrong) {
      return {.violation = StepViolation{index, wrong.reason}, .cost = {}};
    }
    StepCost cost = passes_.cost();
    cost.slots = program_.slots;
    cost.bucket_bytes = sums_.bytes();
    return {.violation = std::nullopt, .cost = cost};
  }

 private:
  void play(const Action& action) {
    require(!sums_.awaits_shared() || action.act == Act::sum_shared,
            "a lane goes on before what tensor lanes share of its gradients is summed");
    switch (action.act) {
      case Act::clear:
        passes_.begin_lane(action);
        return sums_.clear(action, passes_.chunk(action.chunk));
      case Act::receive_activation:
      case Act::send_activation:
      case Act::receive_gradient:
      case Act::send_gradient:
        return passes_.pass_on(action);
      case Act::fetch:
        return sums_.fetch(action);
      case Act::use:
        return sums_.use(action);
      case Act::drop:
        return sums_.drop(action);
      case Act::forward:
        require_weights(action.block);
        return passes_.forward(action);
      case Act::loss:
        require_weights(passes_.block_of_head());
        return passes_.lose(action);
      case Act::recompute:
        require_weights(action.block);
        return passes_.recompute(action);
      case Act::backward:
      case Act::backward_input:
        require_weights(action.block);
        if (passes_.backward(action)) sums_.complete(action);
        return;
      case Act::backward_weight:
        if (passes_.add_weights(action)) sums_.complete(action);
        return;
      case Act::sum_shared:
        return sums_.sum_shared(action);
      case Act::merge:
        return sums_.merge(action);
      case Act::reduce:
        return sums_.reduce(action, passes_.chunk_of_block(sums_.block_of_bucket(action)));
      case Act::share_losses:
        require(!std::exchange(shared_, true), "the losses are shared twice");
        return require(passes_.all_passes_are_done(), "losses are shared before all passes are done");
      case Act::add_hosts:
        require_no_stage_waits();
        return sums_.add_hosts(action);
      case Act::finish:
        require_no_stage_waits();
        return sums_.finish(action);
      case Act::clip:
        return sums_.clip();
      case Act::agree:
        return sums_.agree();
      case Act::update:
        return sums_.update(action);
      case Act::gather:
        return sums_.gather(action);
      case Act::arrive:
        return sums_.arrive(action);
      case Act::send_head_gradient:
        return passes_.send_head_gradient(action);
      case Act::receive_head_gradient:
        return passes_.receive_head_gradient(action);
      case Act::settle:
        passes_.settle(action);
        return sums_.complete({.lane = action.lane, .block = 0, .slot = action.slot});
      case Act::send_head:
        return pass_head_on(passes_.sends_head());
      case Act::receive_head:
        return pass_head_on(passes_.receives_head());
    }
    require(false, "an action of no known kind");
  }

  void require_weights(int block) const {
    sums_.require_weights(passes_.chunk(passes_.chunk_of_block(block)));
  }

  // Others wait for what the passes of a stage send.
  void require_no_stage_waits() const {
    require(passes_.stage().placement.stages == 1 || passes_.all_passes_are_done(),
            "a stage waits for other pipelines before its passes are done");
  }

  void pass_head_on(bool is_wanted) {
    require(is_wanted, "a message that nobody needs");
    sums_.require_updated();
    require(!std::exchange(head_is_passed_on_, true), "the tied head is passed on twice");
  }

  const StepProgram& program_;
  PassChecker passes_;
  SumChecker sums_;
  bool shared_ = false;
  bool head_is_passed_on_ = false;
};

bool is_collective(Act act) {
  return act == Act::reduce || act == Act::add_hosts || act == Act::share_losses || act == Act::clip ||
         act == Act::agree || act == Act::gather || act == Act::fetch;
}

// Of the collectives only, with their places in the program.
std::vector<std::pair<std::size_t, Action>> collectives_of(const StepProgram& program) {
  std::vector<std::pair<std::size_t, Action>> calls;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    if (is_collective(program.actions[i].act)) calls.emplace_back(i, program.actions[i]);
  }
  return calls;
}

// One order for all of them, also for those that are started and waited for later: a rank then waits only for
// calls that every other rank makes before it waits for a later one, and nobody waits for ever.
std::optional<StepViolation> first_other_call(const StepProgram& program, const StepProgram& before) {
  const auto ours = collectives_of(program);
  const auto theirs = collectives_of(before);
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const bool same = i < ours.size() && i < theirs.size() && ours[i].second == theirs[i].second;
    if (same) continue;
    return StepViolation{i < ours.size() ? ours[i].first : program.actions.size(),
                         fmt::format("collective {} is not the one that another rank calls", i)};
  }
  return std::nullopt;
}

}  // namespace

namespace {

std::optional<std::string> wrong_cut(std::span<const StepSpec> stages) {
  const Placement& placement = stages.front().stage->placement;
  int next_block = 0;
  for (int part = 0; part < placement.parts(); ++part) {
    const auto [rank, number] = placement.holder_of(part);
    const std::vector<Chunk>& chunks = stages[static_cast<std::size_t>(rank)].stage->chunks;
    if (chunks.size() != static_cast<std::size_t>(placement.chunks)) return "a stage has not all its chunks";
    const Chunk& chunk = chunks[static_cast<std::size_t>(number)];
    if (chunk.first_block != next_block || chunk.end_block <= chunk.first_block) {
      return fmt::format("part {} does not begin where the one before it ends, or is empty", part);
    }
    next_block = chunk.end_block;
  }
  if (next_block != stages.front().blocks) return "the last part does not end with the last block";
  return std::nullopt;
}

}  // namespace

std::optional<StepsViolation> check_stages(std::span<const StepSpec> stages) {
  Pipeline pipeline;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StepSpec& spec = stages[i];
    const bool fits = spec.stage && spec.stage->rank == static_cast<Rank>(i) &&
                      spec.stage->placement == stages.front().stage->placement &&
                      spec.first_lane == stages.front().first_lane &&
                      spec.end_lane == stages.front().end_lane && spec.blocks == stages.front().blocks &&
                      spec.micro_batches == stages.front().micro_batches && spec.tied == stages.front().tied;
    if (!fits)
      return StepsViolation{i, {0, "a stage is not of the same pipeline, lanes or model as the first"}};
    pipeline.programs.push_back(spec.stage->passes);
  }
  pipeline.placement = stages.front().stage->placement;
  if (stages.size() != static_cast<std::size_t>(pipeline.placement.stages)) {
    return StepsViolation{0, {0, "a stage is missing"}};
  }
  if (auto wrong = wrong_cut(stages)) return StepsViolation{0, {0, *std::move(wrong)}};
  pipeline.micro_batches =
      (stages.front().end_lane - stages.front().first_lane) * stages.front().micro_batches;
  if (pipeline.micro_batches == 0) return std::nullopt;
  const PipelineCheck check = check_pipeline(pipeline);
  if (!check.violation) return std::nullopt;
  return StepsViolation{static_cast<std::size_t>(check.violation->rank),
                        {check.violation->entry, check.violation->reason}};
}

std::optional<StepsViolation> check_steps(std::span<const StepSpec> specs,
                                          std::span<const StepProgram> programs) {
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (auto check = check_step(specs[i], programs[i]); check.violation) {
      return StepsViolation{i, *std::move(check.violation)};
    }
    if (i == 0) continue;
    if (auto other = first_other_call(programs[i], programs[i - 1])) {
      return StepsViolation{i, *std::move(other)};
    }
  }
  return std::nullopt;
}

StepCheck check_step(const StepSpec& spec, const StepProgram& program) {
  return Checker(spec, program).run();
}

}  // namespace lockstep::schedule
