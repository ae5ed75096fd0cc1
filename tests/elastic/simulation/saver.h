// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lockstep/checkpoint/store/save_round.h"
#include "lockstep/checkpoint/store/store.h"

#include "tests/elastic/simulation/world.h"

namespace lockstep::elastic::simulation {

class Worker;

// Writes the checkpoints of a worker in one generation, as training's Checkpointer does: through the real
// store and the real SaveRound, with the disk's work beside that of the worker.
class Saver {
 public:
  struct Options {
    Generation generation = 0;
    int rank = 0;
    int ranks = 1;
  };
  // Both must outlive this. It must stay until stop() has called.
  Saver(World& world, Worker& worker, const Options& options);
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  bool is_idle() const { return round_.is_idle(); }
  void begin(std::int64_t step, const Cells& cells);  // when idle
  checkpoint::SaveTidings tidings() const { return round_.tidings(); }
  // The step of a checkpoint that is now known to all.
  std::optional<std::int64_t> hear(const checkpoint::SaveTidings& all);
  // Calls `then` when this worker's disk has ended what it does; what was not committed then is not.
  void stop(std::function<void()> then);

 private:
  bool leads() const { return options_.rank == 0; }
  // Later, in the worker's process: why it failed, or nothing.
  void work(Time time, const std::function<void()>& body);
  void write(const Cells& cells);
  void commit();
  void abandon();
  void end();

  World& world_;
  Worker& worker_;
  Options options_;
  checkpoint::CheckpointStore store_;
  checkpoint::SaveRound round_;
  int attempts_ = 0;
  std::string id_;  // of the attempt under way
  std::int64_t step_ = 0;
  bool works_ = false;
  std::function<void()> then_;
};

}  // namespace lockstep::elastic::simulation
