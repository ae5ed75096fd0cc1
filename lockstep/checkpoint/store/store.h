// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a run, in one folder: step-N/ for each, and `latest`, which names the newest.
//
// A checkpoint becomes one in these steps, and is believed only after the last: every rank writes its shard
// into step-N.partial-ID/ (shard_writer.h); the leader reads their reports and writes manifest.json; the folder
// is renamed to step-N; COMMIT, which holds the hash of the manifest, is written into it; `latest` is replaced.
// Every step is on the disk before the next begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/disk.h"
#include "lockstep/checkpoint/store/manifest.h"

namespace lockstep::checkpoint {

// What is kept beside the newest good one.
struct Retention {
  std::int64_t last = 2;   // so many of the newest, at least 1
  std::int64_t every = 0;  // also those of steps that this divides; 0: no others
};

// Of a folder beneath a store.
struct Listed {
  std::int64_t step = 0;
  std::string path;
};

class CheckpointStore {
 public:
  // `folder` need not be there until something is written. The disk must outlive this.
  explicit CheckpointStore(std::string folder, Disk& disk = real_disk());

  const std::string& folder() const { return folder_; }

  // Those that were committed, the newest first; whether their contents are good is not known yet.
  std::vector<Listed> committed() const;

  // --- To make one. `id` tells apart attempts, also those of a run that died: [A-Za-z0-9-]+.
  std::string staging_folder(std::int64_t step, const std::string& id) const;
  // On the leader, before any rank writes: makes the folder.
  void begin(std::int64_t step, const std::string& id);
  // On the leader, when all ranks have written: reads `ranks` reports from the staging folder, puts them into
  // the manifest and makes it the newest checkpoint. One of that step that was committed before is replaced.
  // UsageError when a report is missing, which it is when ranks do not share the folder. Nothing is left in
  // its place when this throws, and what was committed before stays.
  void commit(const std::string& id, Manifest manifest, int ranks);
  // Removes what was begun. Does not throw.
  void abandon(std::int64_t step, const std::string& id) noexcept;

  // Removes checkpoints that are not to be kept, after the newest has been read again and found good, and
  // what attempts that died have left. The newest good one always stays. Returns the steps that were removed.
  std::vector<std::int64_t> collect(const Retention& retention);

 private:
  std::string folder_;
  Disk& disk_;
};

// The folder of one checkpoint: `path` itself when it is one, or the newest that was committed in the store
// `path` or in the folder checkpoints/ of the run `path`. UsageError when there is none.
std::string find_checkpoint(const std::string& path);

}  // namespace lockstep::checkpoint
