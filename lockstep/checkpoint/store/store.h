// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a run, in one folder: step-N/ for each, and `latest`, which names the newest.
//
// A checkpoint becomes one in these steps, and is believed only after the last: every rank writes its shard
// into step-N.partial-ID/ (shard_writer.h); the leader reads their reports and writes manifest.json, and
// COMMIT, which holds the hash of the manifest; the folder is renamed to step-N; `latest` is replaced. Every
// step is on the disk before the next begins. When there is a step-N already, it is called step-N.old-ID
// meanwhile and counts as before. A checkpoint ends with the removal of its COMMIT. Two writers may do all
// this at the same time, for the same step too: what either has reported stays, or one that replaces it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/base/disk.h"
#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/store/blocks.h"
#include "lockstep/checkpoint/store/folder_name.h"
#include "lockstep/checkpoint/store/manifest.h"

namespace lockstep::checkpoint {

// What is kept beside the newest good one.
struct Retention {
  std::int64_t last = 2;   // so many of the newest, at least 1
  std::int64_t every = 0;  // also those of steps that this divides; 0: no others
};

// A folder of a store.
struct Listed {
  std::int64_t step = 0;
  std::string path;
  bool operator==(const Listed&) const = default;
};

// One that is no checkpoint.
struct Incomplete {
  Listed folder;
  std::string reason;       // "was never committed"
  bool is_partial = false;  // it had no chance to be one, whatever is in it
};

class CheckpointStore {
 public:
  // `folder` need not be there until something is written. The disk must outlive this.
  explicit CheckpointStore(std::string folder, Disk& disk = real_disk());

  const std::string& folder() const { return folder_; }

  // Those that were committed, the newest first; whether their contents are good is not known yet. A step is
  // there twice while, or after a crash because, it was being replaced; the one that replaces is first.
  std::vector<Listed> committed() const;
  // What attempts are writing, or have left when they died.
  std::vector<Incomplete> incomplete() const;

  // --- To make one. `id` tells apart attempts, also those of a run that died: [A-Za-z0-9-]+.
  std::string staging_folder(std::int64_t step, const std::string& id) const;
  // On the leader, before any rank writes: makes the folder.
  void begin(std::int64_t step, const std::string& id);
  // On the leader, when all ranks have written: reads `ranks` reports from the staging folder, puts them into
  // the manifest and makes it the newest checkpoint. One of that step that was committed before is replaced.
  // UsageError when a report or a file is missing, which it is when ranks do not share the folder; DataError
  // when what the ranks report does not make up the tensors. Nothing is left in its place when this throws,
  // and what was committed before stays. Once it is committed it does not throw any more, nor call
  // `between_blocks`: when `latest` cannot be replaced, a warning is logged.
  void commit(
      const std::string& id, Manifest manifest, int ranks, const BetweenBlocks& between_blocks = [] {});
  // Removes what was begun. Does not throw.
  void abandon(std::int64_t step, const std::string& id) noexcept;

  // Removes what attempts that died have left, those of this object excepted: for a moment when nobody else
  // writes.
  void remove_leftovers();
  // Removes checkpoints that are not to be kept, while the next one may be written. Those of `last` count
  // only after they have been read again and found good, by this object once; bad ones are named in a
  // warning, and removed when a newer one is good. The newest good one always stays, and so does the one that
  // this object has committed last, whatever is newer; without a good one nothing is removed. Returns the
  // steps that were removed. What ends it early leaves more than was to be kept, and nothing else.
  std::vector<std::int64_t> collect(
      const Retention& retention, const BetweenBlocks& between_blocks = [] {});

 private:
  std::string path_of(const FolderName& name) const;
  void put_in_place(std::int64_t step, const std::string& id, const Hash& manifest,
                    const BetweenBlocks& between_blocks);
  void settle(std::int64_t step, const std::string& id) noexcept;
  void remove_checkpoint(const std::string& path);
  bool is_good(const std::string& path, const BetweenBlocks& between_blocks);

  std::string folder_;
  Disk& disk_;
  std::set<std::string> under_way_;   // staging folders of this object
  std::optional<std::int64_t> last_;  // step that was committed by this object
  std::map<std::string, Hash> good_;  // by path, the manifest of those that were read again
};

// The store that `path` names: a store itself, or a run with one in its folder checkpoints/. None when it is
// neither.
std::optional<std::string> find_store(const std::string& path);

// Whether `path` looks like a checkpoint, a store or a run that saves, whatever find_checkpoint() finds
// there.
bool holds_checkpoints(const std::string& path);

// The folder of one checkpoint: `path` itself when it is one, or the newest that was committed in the store
// `path` or in the folder checkpoints/ of the run `path`. UsageError when there is none.
std::string find_checkpoint(const std::string& path);

}  // namespace lockstep::checkpoint
