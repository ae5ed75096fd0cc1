// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/saver.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "lockstep/checkpoint/store/shard_writer.h"

#include "tests/elastic/simulation/checkpoints.h"
#include "tests/elastic/simulation/worker.h"

namespace lockstep::elastic::simulation {

Saver::Saver(World& world, Worker& worker, const Options& options)
    : world_(world),
      worker_(worker),
      options_(options),
      store_(world.store_folder(), world.shared_disk),
      round_(options.ranks) {}

void Saver::begin(std::int64_t step, const Cells& cells) {
  round_.begin();
  step_ = step;
  id_ = fmt::format("{:x}-{}", options_.generation, ++attempts_);
  work(world_.random.milliseconds(10, 400), [this, cells] { write(cells); });
}

void Saver::write(const Cells& cells) {
  checkpoint::CheckpointStore store = store_;
  store.begin(step_, id_);
  checkpoint::write_shard(world_.shared_disk, store.staging_folder(step_, id_), options_.rank,
                          outgoing_pieces(cells, own_cells(options_.rank, options_.ranks)));
}

void Saver::commit() {
  store_.commit(id_, manifest_of(step_), options_.ranks);
  if (world_.shared_disk.is_down()) return;
  world_.see_commit(step_);
  try {
    store_.remove_leftovers();
    store_.collect({.last = world_.scenario.keep_last});
  } catch (const std::exception& error) {
    world_.trace("old checkpoints stay: {}", error.what());
  }
}

std::optional<std::int64_t> Saver::hear(const checkpoint::SaveTidings& all) {
  using Next = checkpoint::SaveRound::Next;
  Next next = round_.hear(all);
  const bool is_hasty = world_.scenario.mistake == Mistake::commits_before_all_have_written;
  if (is_hasty && next == Next::wait && round_.is_writing() && all.written > 0) {
    next = round_.hear({.written = options_.ranks});
  }
  switch (next) {
    case Next::wait:
      break;
    case Next::commit:
      if (leads()) work(world_.random.milliseconds(1, 100), [this] { commit(); });
      break;
    case Next::good:
      return step_;
    case Next::bad:
      abandon();
      break;
  }
  return std::nullopt;
}

void Saver::work(Time time, const std::function<void()>& body) {
  works_ = true;
  worker_.after(world_.shared_disk.duration(time), [this, body] {
    std::string reason;
    try {
      body();
    } catch (const Violation&) {
      throw;
    } catch (const std::exception& error) {
      reason = error.what();
    }
    if (!reason.empty()) world_.trace("member {:x} cannot save step {}: {}", worker_.id(), step_, reason);
    const bool went_down = world_.shared_disk.is_down();
    const bool is_believed = world_.scenario.mistake == Mistake::believes_failed_commits && leads() &&
                             !round_.is_writing() && !reason.empty();
    if (is_believed) world_.see_commit(step_);
    world_.settle_shared_disk(worker_);
    if (!worker_.is_alive()) return;
    works_ = false;
    round_.settle(is_believed || (reason.empty() && !went_down));
    if (then_) end();
  });
}

// An event of its own: it may be the end of the worker.
void Saver::abandon() {
  if (!leads()) return;
  worker_.after(Time(0),
                [&world = world_, &worker = worker_, store = store_, step = step_, id = id_]() mutable {
                  store.abandon(step, id);
                  world.settle_shared_disk(worker);
                });
}

void Saver::stop(std::function<void()> then) {
  then_ = std::move(then);
  if (!works_) end();
}

void Saver::end() {
  if (round_.is_writing()) abandon();
  const auto then = std::exchange(then_, nullptr);
  then();  // may be the end of this
}

}  // namespace lockstep::elastic::simulation
