// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/step_sums.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/schedule/check/step_wrong.h"

namespace lockstep::schedule {

SumChecker::SumChecker(const StepSpec& spec, const StepProgram& program)
    : spec_(spec),
      program_(program),
      contents_(static_cast<std::size_t>(std::max(0, program.slots)),
                std::vector<Contents>(spec.bucket_blocks.size())),
      phases_(spec.bucket_blocks.size(), Phase::open),
      weights_(spec.bucket_blocks.size(), spec.shards_weights ? Presence::absent : Presence::there),
      slots_there_(spec.bucket_blocks.size(), 0) {}

void SumChecker::clear(const Action& action, const Chunk& chunk) {
  check_slot(action.slot);
  for (std::size_t bucket = 0; bucket < spec_.bucket_blocks.size(); ++bucket) {
    const int block = spec_.bucket_blocks[bucket];
    if (block < chunk.first_block || block >= chunk.end_block) continue;
    Contents& contents = at(action.slot, static_cast<int>(bucket));
    require(contents.state != Contents::State::lane,
            fmt::format("slot {} is cleared while it holds sums", action.slot));
    contents = {};
    count_slots(bucket, 1);
  }
}

BucketMemory SumChecker::memory(std::size_t bucket) const {
  return spec_.bucket_memory.empty() ? BucketMemory{} : spec_.bucket_memory[bucket];
}

void SumChecker::count_slots(std::size_t bucket, int change) {
  slots_there_[bucket] += change;
  count(memory(bucket).gradients, change);
}

void SumChecker::count(std::uint64_t bytes, int change) {
  Pieces& pieces = pieces_[bytes];
  pieces.there += change;
  pieces.most = std::max(pieces.most, pieces.there);
}

std::uint64_t SumChecker::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [bytes, pieces] : pieces_) sum += bytes * static_cast<std::uint64_t>(pieces.most);
  return sum;
}

void SumChecker::complete(const Action& action) {
  if (spec_.sums_shared) {
    unsummed_ = action;
  } else {
    hold_lane(action);
  }
}

void SumChecker::sum_shared(const Action& action) {
  require(unsummed_ && unsummed_->lane == action.lane && unsummed_->block == action.block &&
              unsummed_->slot == action.slot,
          "what tensor lanes share is summed of a lane that is not complete, or twice");
  unsummed_.reset();
  hold_lane(action);
}

void SumChecker::hold_lane(const Action& action) {
  for (std::size_t bucket = 0; bucket < phases_.size(); ++bucket) {
    if (spec_.bucket_blocks[bucket] != action.block) continue;
    at(action.slot, static_cast<int>(bucket)) = {Contents::State::lane, {action.lane, 1}};
  }
}

void SumChecker::merge(const Action& action) {
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
  count_slots(static_cast<std::size_t>(action.bucket), -1);
}

void SumChecker::reduce(const Action& action, int chunk) {
  require(phase(action) == Phase::open, "a bucket is reduced twice");
  const std::vector<Subtree> pieces = complete_subtrees(spec_.first_lane, spec_.end_lane);
  const auto held_by = static_cast<std::size_t>(chunk);
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
  const auto bucket = static_cast<std::size_t>(action.bucket);
  if (slots_there_[bucket] == 0) count_slots(bucket, 1);
  phases_[bucket] = Phase::reducing;
}

void SumChecker::add_hosts(const Action& action) {
  require(spec_.copies_on_hosts, "hosts are added that are parts of one sum");
  advance(action, Phase::reducing, Phase::adding_hosts,
          "hosts are added of a bucket that is not being reduced, or twice");
  release_slots(action);
}

void SumChecker::finish(const Action& action) {
  if (spec_.copies_on_hosts) {
    advance(action, Phase::adding_hosts, Phase::finished,
            "a bucket is finished whose hosts are not being added");
  } else {
    advance(action, Phase::reducing, Phase::finished, "a bucket is finished that is not being reduced");
    release_slots(action);
  }
}

void SumChecker::release_slots(const Action& action) {
  const auto bucket = static_cast<std::size_t>(action.bucket);
  count_slots(bucket, -slots_there_[bucket]);
}

void SumChecker::clip() {
  require(all_are(Phase::finished), "gradients are clipped before all buckets are finished");
  require(!std::exchange(clipped_, true), "gradients are clipped twice");
}

void SumChecker::agree() {
  require(clipped_, "ranks agree on a step before the clipping");
  require(!std::exchange(agreed_, true), "ranks agree on a step twice");
}

SumChecker::Presence& SumChecker::weights(const Action& action) {
  phase(action);
  return weights_[static_cast<std::size_t>(action.bucket)];
}

void SumChecker::fetch(const Action& action) {
  require(weights(action) == Presence::absent, "weights are fetched that are there");
  weights(action) = Presence::coming;
  count(memory(static_cast<std::size_t>(action.bucket)).weights, 1);
}

void SumChecker::use(const Action& action) {
  require(weights(action) == Presence::coming, "weights are waited for that are not on their way");
  weights(action) = Presence::there;
}

void SumChecker::drop(const Action& action) {
  require(spec_.shards_weights && weights(action) == Presence::there,
          "weights are dropped that are not there");
  weights(action) = Presence::absent;
  count(memory(static_cast<std::size_t>(action.bucket)).weights, -1);
}

void SumChecker::require_weights(const Chunk& chunk) const {
  for (std::size_t bucket = 0; bucket < weights_.size(); ++bucket) {
    const int block = spec_.bucket_blocks[bucket];
    if (block < chunk.first_block || block >= chunk.end_block) continue;
    require(weights_[bucket] == Presence::there,
            fmt::format("block {} computes while weights of its chunk are not there", block));
  }
}

void SumChecker::update(const Action& action) {
  require(agreed_, "the update comes before the ranks have agreed on it");
  require(!spec_.shards_weights || weights(action) == Presence::absent,
          "weights are updated while old ones are there");
  advance(action, Phase::finished, Phase::updated, "a bucket is updated twice");
}

void SumChecker::gather(const Action& action) {
  require(spec_.shards_update && !spec_.shards_weights, "shares are gathered of what every rank has updated");
  advance(action, Phase::updated, Phase::gathering,
          "shares of a bucket are gathered that is not updated, or twice");
}

void SumChecker::arrive(const Action& action) {
  advance(action, Phase::gathering, Phase::arrived, "a bucket is waited for that is not being gathered");
}

void SumChecker::require_updated() const {
  require(all_are(spec_.shards_update && !spec_.shards_weights ? Phase::arrived : Phase::updated),
          "the program ends before all weights are updated");
}

int SumChecker::block_of_bucket(const Action& action) const {
  phase(action);
  return spec_.bucket_blocks[static_cast<std::size_t>(action.bucket)];
}

void SumChecker::check_slot(int slot) const {
  require(slot >= 0 && slot < program_.slots, "there is no such slot");
}

SumChecker::Contents& SumChecker::at(int slot, int bucket) {
  return contents_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(bucket)];
}

SumChecker::Phase SumChecker::phase(const Action& action) const {
  require(action.bucket >= 0 && static_cast<std::size_t>(action.bucket) < phases_.size(),
          "there is no such bucket");
  return phases_[static_cast<std::size_t>(action.bucket)];
}

void SumChecker::advance(const Action& action, Phase from, Phase to, std::string reason) {
  require(phase(action) == from, std::move(reason));
  phases_[static_cast<std::size_t>(action.bucket)] = to;
}

bool SumChecker::all_are(Phase expected) const {
  return std::all_of(phases_.begin(), phases_.end(), [&](Phase phase) { return phase == expected; });
}

}  // namespace lockstep::schedule
