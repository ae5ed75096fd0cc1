// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/step.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "lockstep/mesh/lanes.h"
#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/pipeline/message.h"

namespace lockstep::schedule {
namespace {

struct Wrong {
  std::string reason;
};

void require(bool holds, std::string reason) {
  if (!holds) throw Wrong{std::move(reason)};
}

// How far a micro-batch has come on a chunk.
struct Progress {
  int forward = 0;   // the next block
  int backward = 0;  // the next block, on the way down
  int weight = 0;    // the next block whose weights get their gradients
  bool received_activation = false;
  bool sent_activation = false;
  bool lost = false;
  bool received_gradient = false;
  bool sent_gradient = false;
  std::optional<Pass> way_back = std::nullopt;  // backward or backward_input
  std::vector<bool> recorded;                   // by block of the chunk: its pass exists
};

// What a slot holds of one bucket.
struct Contents {
  enum class State { nothing, lane, spent } state = State::nothing;
  Subtree lanes;
};

// What the messages of a pass are like.
struct Neighbours {
  bool receives = false;
  bool sends = false;
};

class Checker {
 public:
  Checker(const StepSpec& spec, const StepProgram& program)
      : spec_(spec),
        program_(program),
        stage_(stage_of(spec)),
        contents_(static_cast<std::size_t>(std::max(0, program.slots)),
                  std::vector<Contents>(spec.bucket_blocks.size())),
        bucket_phase_(spec.bucket_blocks.size(), Phase::open),
        slot_of_lane_(stage_.chunks.size()),
        due_weights_(stage_.chunks.size(), 0) {
    cost_.slots = program.slots;
    for (const Chunk& chunk : stage_.chunks) {
      const Progress fresh = {
          .forward = chunk.first_block,
          .backward = chunk.end_block - 1,
          .weight = chunk.end_block - 1,
          .recorded = std::vector<bool>(static_cast<std::size_t>(chunk.end_block - chunk.first_block))};
      progress_.emplace_back(static_cast<std::size_t>(micro_batches()), fresh);
    }
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
  enum class Phase { open, reducing, finished, updated, gathering, arrived };

  void play(const Action& action) {
    switch (action.act) {
      case Act::clear:
        return clear(action);
      case Act::receive_activation:
      case Act::send_activation:
      case Act::receive_gradient:
      case Act::send_gradient:
        return pass_on(action);
      case Act::forward:
        return forward(action);
      case Act::loss:
        return lose(action);
      case Act::recompute:
        return recompute(action);
      case Act::backward:
      case Act::backward_input:
        return backward(action);
      case Act::backward_weight:
        return add_weights(action);
      case Act::merge:
        return merge(action);
      case Act::reduce:
        return reduce(action);
      case Act::share_losses:
        require(!std::exchange(shared_, true), "the losses are shared twice");
        return require(passes_ == stage_.passes, "losses are shared before all passes are done");
      case Act::finish:
        return advance(action, Phase::reducing, Phase::finished,
                       "a bucket is finished that is not being reduced");
      case Act::clip:
        require(all_are(Phase::finished), "gradients are clipped before all buckets are finished");
        return require(!std::exchange(clipped_, true), "gradients are clipped twice");
      case Act::update:
        require(clipped_, "the update comes before the clipping");
        return advance(action, Phase::finished, Phase::updated, "a bucket is updated twice");
      case Act::gather:
        require(spec_.shards_update, "shares are gathered of what every rank has updated");
        return advance(action, Phase::updated, Phase::gathering,
                       "shares of a bucket are gathered that is not updated, or twice");
      case Act::arrive:
        return advance(action, Phase::gathering, Phase::arrived,
                       "a bucket is waited for that is not being gathered");
    }
    require(false, "an action of no known kind");
  }

  void end() const {
    require(all_are(spec_.shards_update ? Phase::arrived : Phase::updated),
            "the program ends before all weights are updated");
    require(shared_, "the program ends without sharing the losses");
  }

  // --- Lanes and micro-batches.

  int micro_batches() const { return (spec_.end_lane - spec_.first_lane) * spec_.micro_batches; }

  int number_of(const Action& action) const {
    require(action.lane >= spec_.first_lane && action.lane < spec_.end_lane,
            fmt::format("lane {} is not owned", action.lane));
    require(action.micro_batch >= 0 && action.micro_batch < spec_.micro_batches,
            fmt::format("there is no micro-batch {} in a lane", action.micro_batch));
    return (action.lane - spec_.first_lane) * spec_.micro_batches + action.micro_batch;
  }

  const Chunk& chunk(int number) const {
    require(number >= 0 && static_cast<std::size_t>(number) < stage_.chunks.size(), "there is no such chunk");
    return stage_.chunks[static_cast<std::size_t>(number)];
  }

  int chunk_of_block(int block) const {
    for (std::size_t i = 0; i < stage_.chunks.size(); ++i) {
      const Chunk& held = stage_.chunks[i];
      if (block >= held.first_block && block < held.end_block) return static_cast<int>(i);
    }
    throw Wrong{fmt::format("block {} is not held", block)};
  }

  Progress& progress(int number, int micro_batch) {
    return progress_[static_cast<std::size_t>(number)][static_cast<std::size_t>(micro_batch)];
  }

  void clear(const Action& action) {
    const Chunk& held = chunk(action.chunk);
    check_slot(action.slot);
    require(!under_way_, "a lane begins in the middle of a pass");
    require(action.lane >= spec_.first_lane && action.lane < spec_.end_lane,
            fmt::format("lane {} is not owned", action.lane));
    std::map<int, int>& slots = slot_of_lane_[static_cast<std::size_t>(action.chunk)];
    require(slots.emplace(action.lane, action.slot).second, "a lane begins twice on a chunk");
    for (const auto& [lane, slot] : slots) {
      require(lane == action.lane || slot != action.slot || is_done(lane, action.chunk),
              fmt::format("slot {} is cleared while a lane uses it", action.slot));
    }
    for (std::size_t bucket = 0; bucket < spec_.bucket_blocks.size(); ++bucket) {
      const int block = spec_.bucket_blocks[bucket];
      if (block < held.first_block || block >= held.end_block) continue;
      Contents& contents = at(action.slot, static_cast<int>(bucket));
      require(contents.state != Contents::State::lane,
              fmt::format("slot {} is cleared while it holds sums", action.slot));
      contents = {};
    }
  }

  bool is_done(int lane, int number) {
    const int last = (lane - spec_.first_lane + 1) * spec_.micro_batches;
    return due_weights_[static_cast<std::size_t>(number)] >= last;
  }

  void check_slot_of_lane(const Action& action, int number) const {
    const std::map<int, int>& slots = slot_of_lane_[static_cast<std::size_t>(number)];
    const auto found = slots.find(action.lane);
    require(found != slots.end(), fmt::format("lane {} has not begun on the chunk", action.lane));
    require(found->second == action.slot, "a gradient goes to another lane's slot");
  }

  // One pass at a time: what it receives comes first and what it sends last, so nobody waits for more than
  // the programs of the pipeline say.
  void enter(Pass pass, int micro_batch, int number) {
    const PipelineEntry entry = {.pass = pass, .micro_batch = micro_batch, .chunk = number};
    if (!under_way_) under_way_ = entry;
    require(*under_way_ == entry, "a pass begins before the one under way has ended");
  }

  void leave() {
    passes_.push_back(*std::exchange(under_way_, std::nullopt));
    require(passes_.size() <= stage_.passes.size() && passes_.back() == stage_.passes[passes_.size() - 1],
            fmt::format("{} is not the pass that is due", to_string(passes_.back())));
  }

  Neighbours neighbours_of(const PipelineEntry& entry) const {
    const auto is_message = [](const auto& message) { return message && message->from != message->to; };
    return {.receives = is_message(input_of(stage_.placement, stage_.rank, entry)),
            .sends = is_message(output_of(stage_.placement, stage_.rank, entry))};
  }

  // The chunk of this rank that holds the part next to this one, up (1) or down (-1) the model.
  std::optional<int> own_neighbour(int number, int direction) const {
    const int part = stage_.placement.part_of(stage_.rank, number) + direction;
    if (part < 0 || part >= stage_.placement.parts()) return std::nullopt;
    const Placement::Holder holder = stage_.placement.holder_of(part);
    return holder.rank == stage_.rank ? std::optional(holder.chunk) : std::nullopt;
  }

  void pass_on(const Action& action) {
    const int micro_batch = number_of(action);
    const Chunk& held = chunk(action.chunk);
    Progress& state = progress(action.chunk, micro_batch);
    const bool is_activation = action.act == Act::receive_activation || action.act == Act::send_activation;
    const bool is_receipt = action.act == Act::receive_activation || action.act == Act::receive_gradient;
    // Which of the two ways back it is, does not matter to messages.
    const Pass pass = is_activation ? Pass::forward : way_back_due(action.chunk, micro_batch);
    const Neighbours neighbours = neighbours_of({pass, micro_batch, action.chunk});
    require(is_receipt ? neighbours.receives : neighbours.sends, "a message that nobody needs");
    enter(pass, micro_batch, action.chunk);
    if (action.act == Act::receive_activation) {
      require(state.forward == held.first_block && !std::exchange(state.received_activation, true),
              "an activation is received when it is not due");
    } else if (action.act == Act::send_activation) {
      require(state.forward == held.end_block && !std::exchange(state.sent_activation, true),
              "an activation is sent before it is made, or twice");
      leave();
    } else if (action.act == Act::receive_gradient) {
      require(state.forward == held.end_block && state.backward == held.end_block - 1 &&
                  !std::exchange(state.received_gradient, true),
              "a gradient is received when it is not due");
    } else {
      require(state.backward == held.first_block - 1 && !std::exchange(state.sent_gradient, true),
              "a gradient is sent before it is made, or twice");
      leave();
    }
  }

  // The way back that the spec has planned for the micro-batch.
  Pass way_back_due(int number, int micro_batch) const {
    for (std::size_t i = passes_.size(); i < stage_.passes.size(); ++i) {
      const PipelineEntry& entry = stage_.passes[i];
      if (entry.chunk == number && entry.micro_batch == micro_batch && entry.makes_input_gradient()) {
        return entry.pass;
      }
    }
    return Pass::backward;
  }

  void forward(const Action& action) {
    const int micro_batch = number_of(action);
    const int number = chunk_of_block(action.block);
    const Chunk& held = chunk(number);
    Progress& state = progress(number, micro_batch);
    check_slot_of_lane(action, number);
    enter(Pass::forward, micro_batch, number);
    const Neighbours neighbours = neighbours_of(*under_way_);
    require(action.block == state.forward,
            fmt::format("block {} runs forward when block {} is due", action.block, state.forward));
    require(!neighbours.receives || state.received_activation, "a block runs forward without its input");
    if (const auto before = own_neighbour(number, -1); before && action.block == held.first_block) {
      require(progress(*before, micro_batch).forward == chunk(*before).end_block,
              "a chunk runs forward before the one that it reads from");
    }
    ++state.forward;
    if (action.block == held.first_block) bytes_ += input_bytes(held);
    bytes_ += memory(action.block).output;
    keep(action.block, state, held, action.keeps);
    if (!action.keeps) cost_.kept_inputs = std::max(cost_.kept_inputs, ++inputs_);
    const bool is_last = held.end_block == spec_.blocks;
    if (state.forward == held.end_block && !neighbours.sends && !is_last) leave();
  }

  void lose(const Action& action) {
    const int micro_batch = number_of(action);
    const int number = chunk_of_block(spec_.blocks - 1);
    Progress& state = progress(number, micro_batch);
    check_slot_of_lane(action, number);
    enter(Pass::forward, micro_batch, number);
    require(state.forward == spec_.blocks && !std::exchange(state.lost, true),
            "the loss is not computed after the last block, once");
    leave();
  }

  void recompute(const Action& action) {
    const int micro_batch = number_of(action);
    const int number = chunk_of_block(action.block);
    const Chunk& held = chunk(number);
    Progress& state = progress(number, micro_batch);
    check_slot_of_lane(action, number);
    require(state.forward == held.end_block && action.block == state.backward,
            "a block is recomputed before it is due");
    enter(way_back_due(number, micro_batch), micro_batch, number);
    require_gradient(action, number, micro_batch);
    require(!state.recorded[static_cast<std::size_t>(action.block - held.first_block)],
            "a block is recomputed whose pass was kept");
    --inputs_;
    keep(action.block, state, held, true);
  }

  void keep(int block, Progress& state, const Chunk& held, bool recorded) {
    state.recorded[static_cast<std::size_t>(block - held.first_block)] = recorded;
    if (!recorded) return;
    cost_.kept_passes = std::max(cost_.kept_passes, ++passes_kept_);
    bytes_ += memory(block).inner;
  }

  void require_gradient(const Action& action, int number, int micro_batch) {
    const Chunk& held = chunk(number);
    const Progress& state = progress(number, micro_batch);
    if (action.block != held.end_block - 1) return;
    if (held.end_block == spec_.blocks) return require(state.lost, "the way back begins before the loss");
    if (const auto after = own_neighbour(number, 1)) {
      return require(progress(*after, micro_batch).backward == chunk(*after).first_block - 1,
                     "a chunk runs backward before the one that its gradient comes from");
    }
    require(state.received_gradient, "a block runs backward without its gradient");
  }

  void backward(const Action& action) {
    const int micro_batch = number_of(action);
    const int number = chunk_of_block(action.block);
    const Chunk& held = chunk(number);
    Progress& state = progress(number, micro_batch);
    check_slot_of_lane(action, number);
    const bool is_whole = action.act == Act::backward;
    enter(is_whole ? Pass::backward : Pass::backward_input, micro_batch, number);
    require(state.forward == held.end_block && action.block == state.backward,
            fmt::format("block {} runs backward when block {} is due", action.block, state.backward));
    require(state.recorded[static_cast<std::size_t>(action.block - held.first_block)],
            fmt::format("block {} runs backward without a recorded pass", action.block));
    require_gradient(action, number, micro_batch);
    const Neighbours neighbours = neighbours_of(*under_way_);
    cost_.pass_bytes = std::max(cost_.pass_bytes, bytes_ + memory(action.block).work);
    --state.backward;
    if (is_whole) finish_weights(action, micro_batch, number);
    if (state.backward < held.first_block && !neighbours.sends) leave();
  }

  void add_weights(const Action& action) {
    const int micro_batch = number_of(action);
    const int number = chunk_of_block(action.block);
    const Chunk& held = chunk(number);
    check_slot_of_lane(action, number);
    enter(Pass::backward_weight, micro_batch, number);
    require(progress(number, micro_batch).backward == held.first_block - 1,
            "weights get their gradients before the way back has ended");
    finish_weights(action, micro_batch, number);
    if (action.block == held.first_block) leave();
  }

  void finish_weights(const Action& action, int micro_batch, int number) {
    const Chunk& held = chunk(number);
    Progress& state = progress(number, micro_batch);
    int& due = due_weights_[static_cast<std::size_t>(number)];
    require(
        micro_batch == due,
        fmt::format("the gradients of micro-batch {} are added when those of {} are due", micro_batch, due));
    require(action.block == state.weight,
            fmt::format("the weights of block {} get their gradients when block {} is due", action.block,
                        state.weight));
    bytes_ -= memory(action.block).inner + memory(action.block).output;
    --passes_kept_;
    --state.weight;
    if (action.micro_batch + 1 == spec_.micro_batches) complete_buckets_of(action);
    if (action.block > held.first_block) return;
    bytes_ -= input_bytes(held);
    ++due;
  }

  void complete_buckets_of(const Action& action) {
    for (std::size_t bucket = 0; bucket < bucket_phase_.size(); ++bucket) {
      if (spec_.bucket_blocks[bucket] != action.block) continue;
      at(action.slot, static_cast<int>(bucket)) = {Contents::State::lane, {action.lane, 1}};
    }
  }

  // --- Sums.

  void merge(const Action& action) {
    check_slot(action.slot);
    check_slot(action.from_slot);
    require(phase(action) == Phase::open, "lanes are added after their bucket was reduced");
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
    require(phase(action) == Phase::open, "a bucket is reduced twice");
    const std::vector<Subtree> pieces = complete_subtrees(spec_.first_lane, spec_.end_lane);
    const auto held_by = static_cast<std::size_t>(
        chunk_of_block(spec_.bucket_blocks[static_cast<std::size_t>(action.bucket)]));
    require(held_by < program_.piece_slots.size() && pieces.size() == program_.piece_slots[held_by].size(),
            "the pieces are not those of the lanes");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const int slot = program_.piece_slots[held_by][i];
      check_slot(slot);
      const Contents& contents = at(slot, action.bucket);
      require(contents.state == Contents::State::lane && contents.lanes == pieces[i],
              fmt::format("bucket {} is reduced while slot {} does not hold lanes [{}, {})", action.bucket,
                          slot, pieces[i].first, pieces[i].end()));
    }
    bucket_phase_[static_cast<std::size_t>(action.bucket)] = Phase::reducing;
  }

  BlockMemory memory(int block) const {
    return spec_.block_memory.empty() ? BlockMemory{} : spec_.block_memory[static_cast<std::size_t>(block)];
  }
  // What the first block of a chunk reads, when it is not the first of the model.
  std::uint64_t input_bytes(const Chunk& held) const {
    return held.first_block == 0 ? 0 : memory(held.first_block - 1).output;
  }
  void check_slot(int slot) const { require(slot >= 0 && slot < program_.slots, "there is no such slot"); }
  Contents& at(int slot, int bucket) {
    return contents_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(bucket)];
  }
  Phase phase(const Action& action) const {
    require(action.bucket >= 0 && static_cast<std::size_t>(action.bucket) < bucket_phase_.size(),
            "there is no such bucket");
    return bucket_phase_[static_cast<std::size_t>(action.bucket)];
  }
  void advance(const Action& action, Phase from, Phase to, std::string reason) {
    require(phase(action) == from, std::move(reason));
    bucket_phase_[static_cast<std::size_t>(action.bucket)] = to;
  }
  bool all_are(Phase expected) const {
    return std::all_of(bucket_phase_.begin(), bucket_phase_.end(),
                       [&](Phase phase) { return phase == expected; });
  }

  const StepSpec& spec_;
  const StepProgram& program_;
  const Stage stage_;
  StepCost cost_;
  std::vector<std::vector<Contents>> contents_;  // by slot and bucket
  std::vector<Phase> bucket_phase_;
  std::vector<std::vector<Progress>> progress_;   // by chunk and micro-batch
  std::vector<std::map<int, int>> slot_of_lane_;  // by chunk
  std::vector<int> due_weights_;                  // by chunk: the micro-batch that adds its gradients next
  std::optional<PipelineEntry> under_way_;
  PipelineProgram passes_;   // that have ended
  int passes_kept_ = 0;      // of blocks
  int inputs_ = 0;           // of blocks, without their passes
  std::uint64_t bytes_ = 0;  // of both
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
                      spec.micro_batches == stages.front().micro_batches;
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
