// SPDX-License-Identifier: Apache-2.0
//
// All failpoints there are; `lockstep failpoints` prints this table. A new one is one line here and one
// LOCKSTEP_FAILPOINT at its place: tools/check_failpoints.py refuses a name that the source named here does
// not use, and one that no test sweeps.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::failpoint {

// What a point has that actions can break: nothing; a disk, which can be full; or values in memory, of which
// a bit can change.
enum class Medium { none, disk, values };

struct Point {
  std::string_view name;   // AREA.PLACE
  std::string_view where;  // the source, beneath lockstep/
  std::string_view phase;  // what has just happened, or is about to
  Medium medium = Medium::none;
};

// By area, in the order in which a process comes by.
inline constexpr auto kPoints = std::to_array<Point>({
    {"rendezvous.before_meet", "rendezvous/rendezvous.cpp", "a rank is about to meet the others"},
    {"rendezvous.table_received", "rendezvous/rendezvous.cpp", "all ranks have met, and this one knows them"},

    {"comm.operation.begun", "comm/runner.cpp", "a collective or message was called, and nobody was told"},
    {"comm.operation.middle", "comm/execution.cpp", "half of the rounds of a collective or message are over"},
    {"comm.operation.ended", "comm/runner.cpp",
     "a collective or message is done, and its caller was not told"},

    {"elastic.generation.recorded", "elastic/coordinator_server.cpp",
     "the coordinator has a new generation on its disk, and no member was told"},
    {"elastic.decision.made", "elastic/coordinator_server.cpp",
     "all members have voted for a step, and this one is not told yet"},
    {"elastic.placed", "elastic/membership.cpp", "a member has a place in a generation"},
    {"elastic.vote.sent", "elastic/membership.cpp", "a member has voted, and waits for the decision"},
    {"elastic.decision.heard", "elastic/membership.cpp",
     "a member has heard a decision, and not followed it"},

    {"train.kept", "train/generations.cpp", "the world is gone, and what was held of its state is kept"},
    {"train.connected", "train/generations.cpp", "the world of a generation is connected, and has no state"},
    {"train.heal.middle", "train/heal.cpp", "a tensor of a lost world was passed on"},
    {"train.healed", "train/run.cpp", "a worker has what was kept of a lost world, and has not begun"},
    {"train.begun", "train/generations.cpp", "the state of a generation is complete, and nobody was told"},
    {"train.step.begun", "train/run.cpp", "a step is about to begin"},
    {"train.forward", "train/pass_runner.cpp", "a block is about to be passed forward"},
    {"train.backward", "train/pass_runner.cpp", "a block is about to be passed backward"},
    {"train.reduce", "train/step_runner.cpp", "the sum of a bucket of gradients has begun"},
    {"train.finish", "train/step_runner.cpp", "the sum of a bucket of gradients is about to be waited for"},
    {"train.clipped", "train/step_runner.cpp", "the norm of all gradients is known"},
    {"train.mirrored", "train/voted_step.cpp",
     "others can update without this rank what it has summed, and it has not voted"},
    {"train.decided", "train/voted_step.cpp", "a step was decided, and nothing of it was applied"},
    {"train.update.saved", "train/update_journal.cpp",
     "what a part of a bucket was is saved, and its journal does not say so"},
    {"train.update.chunk", "train/update_journal.cpp",
     "a part of a bucket was updated, and its journal does not say so"},
    {"train.update", "train/weights.cpp", "a bucket was updated; its values: what the optimizer remembers",
     Medium::values},
    {"train.gather", "train/step_runner.cpp", "new weights of a bucket are on their way"},
    {"train.applied", "train/run.cpp", "a step was applied, and not told; its values: the weights",
     Medium::values},
    {"train.validate", "train/run.cpp", "the model is about to be validated"},
    {"train.validating", "train/validation.cpp", "a part of a validation is done, and not the last"},
    {"train.boundary", "train/run.cpp", "a step was told, and ranks are about to agree on what comes next"},
    {"train.snapshot", "train/checkpointer.cpp",
     "the state was copied for a checkpoint, and nothing written"},
    {"train.ended", "train/run.cpp", "all steps are done, and the last checkpoint is about to be written"},
    {"train.finished", "train/run.cpp", "the last checkpoint is there, and the model is about to be saved"},

    {"checkpoint.begun", "checkpoint/store/store.cpp", "the folder for the shards of a checkpoint is there",
     Medium::disk},
    {"checkpoint.shard.begun", "checkpoint/store/shard_writer.cpp",
     "the file of a shard was made, and is empty", Medium::disk},
    {"checkpoint.shard.block", "checkpoint/store/shard_writer.cpp",
     "a block of the values of a shard was written", Medium::disk},
    {"checkpoint.shard.before_sync", "checkpoint/store/shard_writer.cpp",
     "a shard was written, and not synced", Medium::disk},
    {"checkpoint.shard.after_sync", "checkpoint/store/shard_writer.cpp",
     "a shard was synced, and not read again", Medium::disk},
    {"checkpoint.shard.verified", "checkpoint/store/shard_writer.cpp",
     "a shard was read again and is good, but not reported", Medium::disk},
    {"checkpoint.report.written", "checkpoint/store/shard_writer.cpp", "a rank has reported its shard",
     Medium::disk},
    {"checkpoint.manifest.written", "checkpoint/store/store.cpp",
     "the manifest was written, beside the reports", Medium::disk},
    {"checkpoint.commit.written", "checkpoint/store/store.cpp",
     "COMMIT was written, and the folder does not have its name", Medium::disk},
    {"checkpoint.replace.moved", "checkpoint/store/store.cpp",
     "the checkpoint of the same step was moved away", Medium::disk},
    {"checkpoint.folder.renamed", "checkpoint/store/store.cpp",
     "the folder has its name, which is not synced", Medium::disk},
    {"checkpoint.committed", "checkpoint/store/store.cpp",
     "a checkpoint is committed, and `latest` names the one before", Medium::disk},
    {"checkpoint.latest.replaced", "checkpoint/store/store.cpp", "`latest` names the new checkpoint",
     Medium::disk},
    {"checkpoint.collect.begun", "checkpoint/store/collect.cpp",
     "what is to be kept was found good, and nothing was removed", Medium::disk},
    {"checkpoint.collect.uncommitted", "checkpoint/store/store.cpp",
     "an old checkpoint has lost its COMMIT, and nothing else", Medium::disk},
});

constexpr std::size_t index_of(std::string_view name) {
  const auto* const found =
      std::find_if(kPoints.begin(), kPoints.end(), [name](const Point& point) { return point.name == name; });
  return static_cast<std::size_t>(found - kPoints.begin());
}

constexpr bool is_known(std::string_view name) {
  return index_of(name) < kPoints.size();
}

}  // namespace lockstep::failpoint
