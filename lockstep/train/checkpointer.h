// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>
#include <string>

#include "lockstep/base/deadline.h"
#include "lockstep/checkpoint/store/save_round.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/train/kept_state.h"
#include "lockstep/train/snapshot.h"

namespace lockstep::train {

// What came of a checkpoint; the same on all ranks, except for times and the reason.
struct SaveReport {
  std::int64_t step = 0;
  bool is_good = false;
  std::string path = {};      // of a good one
  std::string reason = {};    // of one that is not, where it is known
  std::int64_t in_a_row = 0;  // that were not, in all worlds of the run; StepBoundary counts
  double stall_seconds = 0;   // in which training waited for the copy
  double seconds = 0;         // until it was there
};

// Writes checkpoints while training goes on. All ranks hold one and call the same in the same order, between
// steps; how they come to one checkpoint is checkpoint::SaveRound's.
class Checkpointer {
 public:
  struct Options {
    std::string folder;
    checkpoint::Retention retention;
    checkpoint::Manifest manifest;  // without progress, last step and files
    // Hears of all waits for this rank's own disk, and when it has got on meanwhile. Null: nobody asks.
    elastic::Activity* activity = nullptr;
    // The world is lost: what is being written is given up.
    std::stop_token lost = {};
  };
  // What is referred to must outlive this.
  Checkpointer(const Holding& holding, const Weights& weights, Options options);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  // Gives up what is being written, and waits for the block or the sync that this rank's disk is at; what was
  // not committed then is not.
  ~Checkpointer();

  // When some will be made while training goes on: makes room for the copy, in the background.
  void prepare();
  bool is_idle() const { return round_.is_idle(); }
  // On rank 0: old checkpoints are being removed, and the next must not be begun, for which they make room.
  bool is_removing() const;
  // When idle: copies the state and begins to write it. When nothing is to be trained meanwhile, or memory
  // has no room for what the optimizer remembers, it is not copied: returns when this rank has written it.
  void begin(const Reached& reached, bool training_waits = false);
  // What this rank has to tell.
  checkpoint::SaveTidings tidings();
  // What all have told: goes on to the next state, and reports when that is the end of the checkpoint.
  std::optional<SaveReport> hear(const checkpoint::SaveTidings& all);
  // For those who have nothing else to do: waits so long, or until this rank's disk is done.
  void wait(std::chrono::milliseconds time);

 private:
  bool leads() const { return world_.rank() == 0; }
  bool is_busy() const;  // this rank's disk, on threads of its own
  std::vector<checkpoint::OutgoingPiece> take_copy();
  void get_on() const;
  void set_awaiting_disk(bool awaits) const;
  // On the thread that works with the disk, which gets on; ends the work when it is given up.
  void pass_block() const;
  void write(const std::vector<checkpoint::OutgoingPiece>& pieces,
             const checkpoint::BetweenBlocks& between_blocks);
  void commit();
  // On a thread of its own; when all can be told, it goes on and removes old ones.
  void start_commit();
  SaveReport end(bool is_good);

  const comm::Communicator& world_;
  const Weights& weights_;
  Options options_;
  checkpoint::CheckpointStore store_;
  Snapshot snapshot_;
  std::uint64_t run_id_ = 0;  // the same on all ranks, and unlike that of any other run in the folder
  std::int64_t attempts_ = 0;
  checkpoint::SaveRound round_;
  std::string id_;  // of the attempt under way
  Reached reached_;
  std::future<std::string> work_;       // of this rank in this state: why it failed, or nothing
  std::optional<std::string> outcome_;  // of work that has ended
  std::future<void> removal_;           // of old ones, by the leader, with the commit before it
  std::atomic<bool> is_given_up_ = false;
  Clock::time_point began_;
  SaveReport report_;
};

}  // namespace lockstep::train
