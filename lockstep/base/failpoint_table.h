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

// Whether an action that only a disk can take, as to be full, makes sense at a point.
enum class Medium { memory, disk };

struct Point {
  std::string_view name;   // AREA.PLACE
  std::string_view where;  // the source, beneath lockstep/
  std::string_view phase;  // what has just happened, or is about to
  Medium medium = Medium::memory;
};

// By area, in the order in which a process comes by.
inline constexpr auto kPoints = std::to_array<Point>({
    {"rendezvous.before_meet", "rendezvous/rendezvous.cpp", "a rank is about to meet the others"},
    {"rendezvous.table_received", "rendezvous/rendezvous.cpp", "all ranks have met, and this one knows them"},

    {"comm.operation.begun", "comm/runner.cpp", "a collective or message was called, and nobody was told"},
    {"comm.operation.middle", "comm/execution.cpp", "half of the rounds of a collective or message are over"},
    {"comm.operation.ended", "comm/runner.cpp",
     "a collective or message is done, and its caller was not told"},

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
    {"checkpoint.replace.moved", "checkpoint/store/store.cpp",
     "the checkpoint of the same step was moved away", Medium::disk},
    {"checkpoint.folder.renamed", "checkpoint/store/store.cpp", "the folder has its name, but no COMMIT",
     Medium::disk},
    {"checkpoint.commit.written", "checkpoint/store/store.cpp", "COMMIT was written, its name not synced",
     Medium::disk},
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
