// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/mesh/lanes.h"
#include "lockstep/schedule/step/step.h"

namespace lockstep::schedule {

// The half of check_step() that follows the gradients from lanes to updated weights. One call for every
// action of its kind, in the order of the program; StepWrong for the first that is wrong.
class SumChecker {
 public:
  SumChecker(const StepSpec& spec, const StepProgram& program);

  void clear(const Action& action, const Chunk& chunk);
  // The lane has all its gradients of the block; with tensor lanes, once what they share is summed.
  void complete(const Action& action);
  void sum_shared(const Action& action);
  bool awaits_shared() const { return unsummed_.has_value(); }
  void merge(const Action& action);
  void reduce(const Action& action, int chunk);
  void add_hosts(const Action& action);
  void finish(const Action& action);
  void clip();
  void agree();
  void update(const Action& action);
  void gather(const Action& action);
  void arrive(const Action& action);
  // Of weights that are shared out.
  void fetch(const Action& action);
  void use(const Action& action);
  void drop(const Action& action);
  // A block of the chunk computes.
  void require_weights(const Chunk& chunk) const;
  // StepCost::bucket_bytes, so far.
  std::uint64_t bytes() const;
  // At the end of the program.
  void require_updated() const;

  // The block whose backward pass is the last to add to the bucket.
  int block_of_bucket(const Action& action) const;

 private:
  enum class Phase { open, reducing, adding_hosts, finished, updated, gathering, arrived };
  // What a slot holds of one bucket.
  struct Contents {
    enum class State { nothing, lane, spent } state = State::nothing;
    Subtree lanes;
  };

  enum class Presence { absent, coming, there };

  void hold_lane(const Action& action);
  BucketMemory memory(std::size_t bucket) const;
  void count_slots(std::size_t bucket, int change);
  void count(std::uint64_t bytes, int change);
  void release_slots(const Action& action);
  void check_slot(int slot) const;
  Presence& weights(const Action& action);
  Contents& at(int slot, int bucket);
  Phase phase(const Action& action) const;
  void advance(const Action& action, Phase from, Phase to, std::string reason);
  bool all_are(Phase expected) const;

  const StepSpec& spec_;
  const StepProgram& program_;
  std::vector<std::vector<Contents>> contents_;  // by slot and bucket
  std::vector<Phase> phases_;                    // by bucket
  std::vector<Presence> weights_;                // by bucket
  std::vector<int> slots_there_;                 // by bucket: that have memory for its gradients
  // Memory that comes and goes, of one size.
  struct Pieces {
    int there = 0;
    int most = 0;
  };
  std::map<std::uint64_t, Pieces> pieces_;  // by bytes of each
  bool clipped_ = false;
  bool agreed_ = false;
  std::optional<Action> unsummed_;  // a lane that is complete but for what tensor lanes share
};

}  // namespace lockstep::schedule
