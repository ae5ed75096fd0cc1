// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/schedule/pipeline/message.h"
#include "lockstep/schedule/step/slots.h"
#include "lockstep/schedule/step/step.h"

namespace lockstep::schedule {
namespace {

// A pass of the pipeline, and what the actions of it have in common.
struct PassContext {
  PipelineEntry entry;
  int lane = 0;
  int micro_batch = 0;  // of the lane
  int slot = 0;
  Chunk chunk;
  bool ends_lane = false;  // no later pass adds to the lane's gradients of the chunk
};

class StepMaker {
 public:
  explicit StepMaker(const StepSpec& spec)
      : spec_(spec),
        stage_(stage_of(spec)),
        chunks_(stage_.chunks.size()),
        is_complete_(spec.bucket_blocks.size(), !has_lanes() && !takes_turns()),
        order_(reduction_order(spec)),
        first_part_(chunk_of_part(stage_, 0)),
        last_part_(chunk_of_part(stage_, stage_.placement.parts() - 1)) {}

  StepProgram make() {
    if (spec_.shards_weights) {
      compute_with_fetched_weights();
    } else {
      for (const PipelineEntry& entry : stage_.passes) compute(entry);
    }
    reduce_what_is_complete();
    if (spec_.copies_on_hosts) add_hosts_up_to(order_.size());
    add({.act = Act::share_losses});
    for (; finished_ < order_.size(); ++finished_) add({.act = Act::finish, .bucket = order_[finished_]});
    add({.act = Act::clip});
    add({.act = Act::agree});
    const bool gathers = spec_.shards_update && !spec_.shards_weights;
    for (int bucket : order_) {
      add({.act = Act::update, .bucket = bucket});
      if (gathers) add({.act = Act::gather, .bucket = bucket});
    }
    if (gathers) {
      for (int bucket : order_) add({.act = Act::arrive, .bucket = bucket});
    }
    if (sends_head()) add({.act = Act::send_head});
    if (receives_head()) add({.act = Act::receive_head});
    for (const OfChunk& chunk : chunks_) {
      program_.slots = std::max(program_.slots, chunk.slots.count());
      program_.piece_slots.push_back(chunk.slots.of_pieces());
    }
    return std::move(program_);
  }

 private:
  struct OfChunk {
    Slots slots;
    std::map<int, int> slot_of_lane = {};
    std::set<int> cleared = {};  // lanes
  };

  // The same on all ranks that hold these blocks, whichever lanes they own: as the way back comes to them.
  static std::vector<int> reduction_order(const StepSpec& spec) {
    std::vector<int> order(spec.bucket_blocks.size());
    std::iota(order.begin(), order.end(), 0);
    const auto block_of = [&](int bucket) { return spec.bucket_blocks[static_cast<std::size_t>(bucket)]; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return block_of(a) > block_of(b); });
    return order;
  }

  void add(const Action& action) { program_.actions.push_back(action); }

  void compute(const PipelineEntry& entry) {
    const PassContext pass = begin(entry);
    switch (entry.pass) {
      case Pass::forward:
        return forward(pass);
      case Pass::backward:
        return backward(pass, Act::backward);
      case Pass::backward_input:
        return backward(pass, Act::backward_input);
      case Pass::backward_weight:
        return weights(pass);
    }
  }

  PassContext begin(const PipelineEntry& entry) {
    PassContext pass = {.entry = entry,
                        .lane = spec_.first_lane + entry.micro_batch / spec_.micro_batches,
                        .micro_batch = entry.micro_batch % spec_.micro_batches,
                        .chunk = stage_.chunks[static_cast<std::size_t>(entry.chunk)]};
    OfChunk& chunk = chunks_[static_cast<std::size_t>(entry.chunk)];
    if (!chunk.slot_of_lane.contains(pass.lane)) chunk.slot_of_lane[pass.lane] = chunk.slots.take();
    pass.slot = chunk.slot_of_lane[pass.lane];
    // The loss, which comes with the last part, adds to the gradient of its head.
    const bool adds = entry.pass != Pass::forward || entry.chunk == last_part_;
    // That of a head elsewhere comes when it is ready: whoever sends it may need its memory again at once.
    const bool receives = sends_head() && entry.chunk == first_part_;
    if (adds || receives || !spec_.shards_gradients) clear_once(entry.chunk, pass.lane);
    if (adds && entry.chunk == last_part_ && spec_.tied && first_part_) clear_once(*first_part_, pass.lane);
    pass.ends_lane = entry.adds_weight_gradient() && pass.micro_batch + 1 == spec_.micro_batches;
    return pass;
  }

  void clear_once(int number, int lane) {
    OfChunk& chunk = chunks_[static_cast<std::size_t>(number)];
    if (!chunk.cleared.insert(lane).second) return;
    add({.act = Act::clear, .lane = lane, .chunk = number, .slot = chunk.slot_of_lane[lane]});
  }

  void forward(const PassContext& pass) {
    if (comes_from_elsewhere(pass)) add_message(Act::receive_activation, pass);
    for (int block = pass.chunk.first_block; block < pass.chunk.end_block; ++block) {
      add_block(Act::forward, pass, block, !spec_.recomputes(block));
    }
    if (goes_elsewhere(pass)) add_message(Act::send_activation, pass);
    if (pass.chunk.end_block == spec_.blocks) lose(pass);
  }

  void lose(const PassContext& pass) {
    const bool shares = spec_.tied && first_part_;
    const int slot =
        shares ? chunks_[static_cast<std::size_t>(*first_part_)].slot_of_lane[pass.lane] : pass.slot;
    add({.act = Act::loss, .lane = pass.lane, .micro_batch = pass.micro_batch, .slot = slot});
    if (receives_head() && pass.micro_batch + 1 == spec_.micro_batches) {
      add({.act = Act::send_head_gradient, .lane = pass.lane, .slot = slot});
    }
  }

  void backward(const PassContext& pass, Act act) {
    if (comes_from_elsewhere(pass)) add_message(Act::receive_gradient, pass);
    const std::vector<Merge> merges = merges_of(pass);
    for (int block = pass.chunk.end_block - 1; block >= pass.chunk.first_block; --block) {
      if (spec_.recomputes(block)) add_block(Act::recompute, pass, block);
      add_block(act, pass, block);
      if (pass.ends_lane) complete(pass, block, merges);
    }
    if (goes_elsewhere(pass)) add_message(Act::send_gradient, pass);
    chunks_[static_cast<std::size_t>(pass.entry.chunk)].slots.release(merges);
  }

  void weights(const PassContext& pass) {
    const std::vector<Merge> merges = merges_of(pass);
    for (int block = pass.chunk.end_block - 1; block >= pass.chunk.first_block; --block) {
      add_block(Act::backward_weight, pass, block);
      if (pass.ends_lane) complete(pass, block, merges);
    }
    chunks_[static_cast<std::size_t>(pass.entry.chunk)].slots.release(merges);
  }

  void add_block(Act act, const PassContext& pass, int block, bool keeps = false) {
    add({.act = act,
         .lane = pass.lane,
         .micro_batch = pass.micro_batch,
         .block = block,
         .slot = pass.slot,
         .keeps = keeps});
  }
  void add_message(Act act, const PassContext& pass) {
    add({.act = act, .lane = pass.lane, .micro_batch = pass.micro_batch, .chunk = pass.entry.chunk});
  }

  bool comes_from_elsewhere(const PassContext& pass) const {
    const auto message = input_of(stage_.placement, stage_.rank, pass.entry);
    return message && message->from != message->to;
  }
  bool goes_elsewhere(const PassContext& pass) const {
    const auto message = output_of(stage_.placement, stage_.rank, pass.entry);
    return message && message->from != message->to;
  }

  // The tied parameter is updated here and used by the head elsewhere, or the other way round.
  bool sends_head() const { return spec_.tied && first_part_ && !last_part_; }
  bool receives_head() const { return spec_.tied && last_part_ && !first_part_; }

  std::vector<Merge> merges_of(const PassContext& pass) {
    if (!pass.ends_lane) return {};
    return chunks_[static_cast<std::size_t>(pass.entry.chunk)].slots.complete(pass.lane, pass.slot);
  }

  // The lane has all its gradients of the block.
  void complete(const PassContext& pass, int block, const std::vector<Merge>& merges) {
    if (spec_.tied && block == 0) {
      if (sends_head()) add({.act = Act::receive_head_gradient, .lane = pass.lane, .slot = pass.slot});
      add({.act = Act::settle, .lane = pass.lane, .slot = pass.slot});
    }
    if (spec_.sums_shared) {
      add({.act = Act::sum_shared, .lane = pass.lane, .block = block, .slot = pass.slot});
    }
    for (std::size_t bucket = 0; bucket < spec_.bucket_blocks.size(); ++bucket) {
      if (spec_.bucket_blocks[bucket] != block) continue;
      for (const Merge& merge : merges) {
        add({.act = Act::merge,
             .bucket = static_cast<int>(bucket),
             .slot = merge.into,
             .from_slot = merge.from});
      }
      is_complete_[bucket] = pass.lane + 1 == spec_.end_lane;
    }
    reduce_what_is_complete();
  }

  void reduce_what_is_complete() {
    for (; reduced_ < order_.size() && is_complete_[static_cast<std::size_t>(order_[reduced_])]; ++reduced_) {
      add({.act = Act::reduce, .bucket = order_[reduced_]});
      // One sum goes on while the next gradients are computed; then its memory is free. A stage of a pipeline
      // must not wait for other pipelines while its own waits for it.
      if (stage_.placement.stages > 1) continue;
      if (spec_.copies_on_hosts) {
        add_hosts_up_to(reduced_);
      } else if (spec_.shards_gradients && reduced_ > 0) {
        add({.act = Act::finish, .bucket = order_[reduced_ - 1]});
        finished_ = reduced_;
      }
    }
  }

  void add_hosts_up_to(std::size_t end) {
    for (; inside_hosts_ < end; ++inside_hosts_) {
      add({.act = Act::add_hosts, .bucket = order_[inside_hosts_]});
    }
  }

  // --- Weights that are shared out.

  // A run of passes, and the chunks whose weights they need.
  struct Turn {
    PipelineProgram passes = {};
    std::set<int> chunks = {};
  };

  // The same on all ranks that hold these blocks, whichever lanes they own. Of a stage of a pipeline, whose
  // passes change from chunk to chunk: all at once.
  std::vector<Turn> turns() const {
    const auto chunks = static_cast<int>(stage_.chunks.size());
    if (stage_.placement.stages > 1) {
      Turn all = {.passes = stage_.passes};
      for (int chunk = 0; chunk < chunks; ++chunk) all.chunks.insert(chunk);
      return {all};
    }
    std::vector<Turn> turns(static_cast<std::size_t>(2 * chunks));
    for (int chunk = 0; chunk < chunks; ++chunk) {
      turns[static_cast<std::size_t>(chunk)].chunks = {chunk};
      turns[static_cast<std::size_t>(2 * chunks - 1 - chunk)].chunks = {chunk};
    }
    if (spec_.tied) turns[static_cast<std::size_t>(chunks - 1)].chunks.insert(0);
    for (const PipelineEntry& entry : stage_.passes) {
      const int turn = entry.pass == Pass::forward ? entry.chunk : 2 * chunks - 1 - entry.chunk;
      turns[static_cast<std::size_t>(turn)].passes.push_back(entry);
    }
    return turns;
  }

  void compute_with_fetched_weights() {
    const std::vector<Turn> all = turns();
    std::set<int> there;
    const auto fetch = [&](const std::set<int>& chunks) {
      for (int chunk : chunks) {
        if (there.insert(chunk).second) add_for_chunk(Act::fetch, chunk);
      }
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::set<int> next = i + 1 < all.size() ? all[i + 1].chunks : std::set<int>{};
      fetch(all[i].chunks);
      fetch(next);
      for (int chunk : all[i].chunks) {
        if (i == 0 || !all[i - 1].chunks.contains(chunk)) add_for_chunk(Act::use, chunk);
      }
      for (const PipelineEntry& entry : all[i].passes) compute(entry);
      // Whoever has no lanes calls the same collectives in the same order as those who do.
      if (!has_lanes() && takes_turns() && i >= stage_.chunks.size()) complete_chunk(*all[i].chunks.begin());
      for (int chunk : all[i].chunks) {
        if (next.contains(chunk)) continue;
        add_for_chunk(Act::drop, chunk);
        there.erase(chunk);
      }
    }
  }

  bool has_lanes() const { return spec_.first_lane < spec_.end_lane; }
  // Chunk by chunk, as turns() says.
  bool takes_turns() const { return spec_.shards_weights && stage_.placement.stages == 1; }

  std::vector<std::size_t> buckets_of(int chunk) const {
    const Chunk& held = stage_.chunks[static_cast<std::size_t>(chunk)];
    std::vector<std::size_t> buckets;
    for (std::size_t bucket = 0; bucket < spec_.bucket_blocks.size(); ++bucket) {
      const int block = spec_.bucket_blocks[bucket];
      if (block >= held.first_block && block < held.end_block) buckets.push_back(bucket);
    }
    return buckets;
  }

  void add_for_chunk(Act act, int chunk) {
    for (std::size_t bucket : buckets_of(chunk)) add({.act = act, .bucket = static_cast<int>(bucket)});
  }

  void complete_chunk(int chunk) {
    for (std::size_t bucket : buckets_of(chunk)) is_complete_[bucket] = true;
    reduce_what_is_complete();
  }

  const StepSpec& spec_;
  Stage stage_;
  StepProgram program_;
  std::vector<OfChunk> chunks_;
  std::vector<bool> is_complete_;  // by bucket: this rank has all that it adds to the sum
  std::vector<int> order_;
  std::size_t reduced_ = 0;        // the first so many of the order
  std::size_t inside_hosts_ = 0;   // likewise: those that are summed inside hosts
  std::size_t finished_ = 0;       // likewise
  std::optional<int> first_part_;  // the chunk that it is
  std::optional<int> last_part_;
};

}  // namespace

StepProgram make_step(const StepSpec& spec) {
  return StepMaker(spec).make();
}

}  // namespace lockstep::schedule
