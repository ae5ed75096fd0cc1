// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/step.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/mesh/lanes.h"

namespace lockstep::schedule {
namespace {

struct Wrong {
  std::string reason;
};

void require(bool holds, std::string reason) {
  if (!holds) throw Wrong{std::move(reason)};
}

// How far one micro-batch has come. The next block forward, then (after the loss) the next block backward.
struct Progress {
  int forward = 0;
  bool lost = false;
  int backward = 0;
  std::vector<bool> recorded;  // by block: its pass exists
};

// What a slot holds of one bucket.
struct Contents {
  enum class State { nothing, lane, spent } state = State::nothing;
  Subtree lanes;
};

class Checker {
 public:
  Checker(const StepSpec& spec, const StepProgram& program)
      : spec_(spec),
        program_(program),
        contents_(static_cast<std::size_t>(std::max(0, program.slots)),
                  std::vector<Contents>(spec.bucket_blocks.size())),
        bucket_stage_(spec.bucket_blocks.size(), Stage::open) {
    cost_.slots = program.slots;
  }

  StepCheck run() {
    std::size_t index = 0;
    try {
      for (; index < program_.actions.size(); ++index) play(program_.actions[index]);
      end();
    } catch (const Wrong& wrong) {
      return {.violation = StepViolation{index, wrong.reason}, .cost = {}};
    }
    return {.violation = std::nullopt, .cost = cost_};
  }

 private:
  enum class Stage { open, reducing, finished, updated, gathering, arrived };

  void play(const Action& action) {
    switch (action.act) {
      case Act::clear:
        return clear(action);
      case Act::forward:
        return forward(action);
      case Act::loss:
        return lose(action);
      case Act::recompute:
        return recompute(action);
      case Act::backward:
        return backward(action);
      case Act::merge:
        return merge(action);
      case Act::reduce:
        return reduce(action);
      case Act::share_losses:
        require(!std::exchange(shared_, true), "the losses are shared twice");
        return require(completed_ == spec_.end_lane - spec_.first_lane,
                       "losses are shared before all lanes are done");
      case Act::finish:
        return advance(action, Stage::reducing, Stage::finished,
                       "a bucket is finished that is not being reduced");
      case Act::clip:
        require(all_are(Stage::finished), "gradients are clipped before all buckets are finished");
        return require(!std::exchange(clipped_, true), "gradients are clipped twice");
      case Act::update:
        require(clipped_, "the update comes before the clipping");
        return advance(action, Stage::finished, Stage::updated, "a bucket is updated twice");
      case Act::gather:
        require(spec_.shards_update, "shares are gathered of what every rank has updated");
        return advance(action, Stage::updated, Stage::gathering,
                       "shares of a bucket are gathered that is not updated, or twice");
      case Act::arrive:
        return advance(action, Stage::gathering, Stage::arrived,
                       "a bucket is waited for that is not being gathered");
    }
    require(false, "an action of no known kind");
  }

  void end() const {
    require(all_are(spec_.shards_update ? Stage::arrived : Stage::updated),
            "the program ends before all weights are updated");
    require(shared_, "the program ends without sharing the losses");
  }

  // --- Lanes and micro-batches.

  void clear(const Action& action) {
    require(is_owned(action.lane), fmt::format("lane {} is not owned", action.lane));
    require(action.lane == spec_.first_lane + completed_ && current_lane_ < 0,
            "lanes are not computed in their order");
    check_slot(action.slot);
    for (const Contents& contents : contents_[static_cast<std::size_t>(action.slot)]) {
      require(contents.state != Contents::State::lane,
              fmt::format("slot {} is cleared while it holds sums", action.slot));
    }
    std::fill(contents_[static_cast<std::size_t>(action.slot)].begin(),
              contents_[static_cast<std::size_t>(action.slot)].end(), Contents{});
    current_lane_ = action.lane;
    current_slot_ = action.slot;
    current_micro_ = 0;
    progress_ = fresh();
  }

  Progress fresh() const {
    return {.recorded = std::vector<bool>(static_cast<std::size_t>(spec_.blocks), false)};
  }

  void check_micro_batch(const Action& action) const {
    require(
        action.lane == current_lane_ && action.micro_batch == current_micro_,
        fmt::format("micro-batch {} of lane {} is not the one that is due", action.micro_batch, action.lane));
    require(action.slot == current_slot_, "a gradient goes to another lane's slot");
  }

  void forward(const Action& action) {
    check_micro_batch(action);
    require(!progress_.lost && action.block == progress_.forward,
            fmt::format("block {} runs forward when block {} is due", action.block, progress_.forward));
    require(action.block < spec_.blocks, "there is no such block");
    ++progress_.forward;
    bytes_ += memory(action.block).output;
    keep(action.block, action.keeps);
    if (!action.keeps) cost_.kept_inputs = std::max(cost_.kept_inputs, ++inputs_);
  }

  void lose(const Action& action) {
    check_micro_batch(action);
    require(progress_.forward == spec_.blocks && !progress_.lost,
            "the loss is not computed after the last block, once");
    progress_.lost = true;
    progress_.backward = spec_.blocks - 1;
  }

  void recompute(const Action& action) {
    check_micro_batch(action);
    require(progress_.lost && action.block == progress_.backward, "a block is recomputed before it is due");
    require(!progress_.recorded[static_cast<std::size_t>(action.block)],
            "a block is recomputed whose pass was kept");
    --inputs_;
    keep(action.block, true);
  }

  void keep(int block, bool recorded) {
    progress_.recorded[static_cast<std::size_t>(block)] = recorded;
    if (!recorded) return;
    cost_.kept_passes = std::max(cost_.kept_passes, ++passes_);
    bytes_ += memory(block).inner;
  }

  void backward(const Action& action) {
    check_micro_batch(action);
    require(progress_.lost && action.block == progress_.backward && action.block >= 0,
            fmt::format("block {} runs backward when block {} is due", action.block, progress_.backward));
    require(progress_.recorded[static_cast<std::size_t>(action.block)],
            fmt::format("block {} runs backward without a recorded pass", action.block));
    const BlockMemory needs = memory(action.block);
    cost_.pass_bytes = std::max(cost_.pass_bytes, bytes_ + needs.work);
    bytes_ -= needs.inner + needs.output;
    --passes_;
    --progress_.backward;
    if (current_micro_ + 1 == spec_.micro_batches) complete_buckets_of(action.block);
    if (progress_.backward >= 0) return;
    ++current_micro_;
    progress_ = fresh();
    if (current_micro_ < spec_.micro_batches) return;
    current_lane_ = -1;
    ++completed_;
  }

  void complete_buckets_of(int block) {
    for (std::size_t bucket = 0; bucket < bucket_stage_.size(); ++bucket) {
      if (spec_.bucket_blocks[bucket] != block) continue;
      contents_[static_cast<std::size_t>(current_slot_)][bucket] = {Contents::State::lane,
                                                                    {current_lane_, 1}};
    }
  }

  // --- Sums.

  void merge(const Action& action) {
    check_slot(action.slot);
    check_slot(action.from_slot);
    require(stage(action) == Stage::open, "lanes are added after their bucket was reduced");
    Contents& lower = at(action.slot, action.bucket);
    Contents& upper = at(action.from_slot, action.bucket);
    require(lower.state == Contents::State::lane && upper.state == Contents::State::lane,
            "slots are added that do not hold complete lanes");
    require(lower.lanes.count == upper.lanes.count && lower.lanes.end() == upper.lanes.first &&
                lower.lanes.first % (2 * lower.lanes.count) == 0,
            fmt::format("lanes [{}, {}) and [{}, {}) are not neighbours in the tree", lower.lanes.first,
                        lower.lanes.end(), upper.lanes.first, upper.lanes.end()));
    lower.lanes.count *= 2;
    upper.state = Contents::State::spent;
  }

  void reduce(const Action& action) {
    require(stage(action) == Stage::open, "a bucket is reduced twice");
    const std::vector<Subtree> pieces = complete_subtrees(spec_.first_lane, spec_.end_lane);
    require(pieces.size() == program_.piece_slots.size(), "the pieces are not those of the lanes");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      check_slot(program_.piece_slots[i]);
      const Contents& contents = at(program_.piece_slots[i], action.bucket);
      require(contents.state == Contents::State::lane && contents.lanes == pieces[i],
              fmt::format("bucket {} is reduced while slot {} does not hold lanes [{}, {})", action.bucket,
                          program_.piece_slots[i], pieces[i].first, pieces[i].end()));
    }
    bucket_stage_[static_cast<std::size_t>(action.bucket)] = Stage::reducing;
  }

  BlockMemory memory(int block) const {
    return spec_.block_memory.empty() ? BlockMemory{} : spec_.block_memory[static_cast<std::size_t>(block)];
  }
  bool is_owned(int lane) const { return lane >= spec_.first_lane && lane < spec_.end_lane; }
  void check_slot(int slot) const { require(slot >= 0 && slot < program_.slots, "there is no such slot"); }
  Contents& at(int slot, int bucket) {
    return contents_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(bucket)];
  }
  Stage stage(const Action& action) const {
    require(action.bucket >= 0 && static_cast<std::size_t>(action.bucket) < bucket_stage_.size(),
            "there is no such bucket");
    return bucket_stage_[static_cast<std::size_t>(action.bucket)];
  }
  void advance(const Action& action, Stage from, Stage to, std::string reason) {
    require(stage(action) == from, std::move(reason));
    bucket_stage_[static_cast<std::size_t>(action.bucket)] = to;
  }
  bool all_are(Stage expected) const {
    return std::all_of(bucket_stage_.begin(), bucket_stage_.end(),
                       [&](Stage stage) { return stage == expected; });
  }

  const StepSpec& spec_;
  const StepProgram& program_;
  StepCost cost_;
  std::vector<std::vector<Contents>> contents_;  // by slot and bucket
  std::vector<Stage> bucket_stage_;
  Progress progress_;
  int current_lane_ = -1;
  int current_slot_ = -1;
  int current_micro_ = 0;
  int completed_ = 0;  // lanes
  int passes_ = 0;
  int inputs_ = 0;
  std::uint64_t bytes_ = 0;  // of passes and inputs
  bool shared_ = false;
  bool clipped_ = false;
};

bool is_collective(Act act) {
  return act == Act::reduce || act == Act::share_losses || act == Act::clip || act == Act::gather;
}

// Of the collectives only, with their places in the program.
std::vector<std::pair<std::size_t, Action>> collectives_of(const StepProgram& program) {
  std::vector<std::pair<std::size_t, Action>> calls;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    if (is_collective(program.actions[i].act)) calls.emplace_back(i, program.actions[i]);
  }
  return calls;
}

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
