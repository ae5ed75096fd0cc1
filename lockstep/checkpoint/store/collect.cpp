// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/store/commit_file.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/checkpoint/store/store.h"

namespace lockstep::checkpoint {

bool CheckpointStore::is_good(const std::string& path, const BetweenBlocks& between_blocks) {
  const std::optional<Hash> manifest = read_commit(path);
  const auto known = good_.find(path);
  if (manifest && known != good_.end() && known->second == *manifest) return true;
  try {
    Checkpoint(path).verify(between_blocks);
  } catch (const Error& error) {
    log::warning(fmt::format("a checkpoint is bad: {}", error.what()));
    return false;
  }
  if (manifest) good_[path] = *manifest;
  return true;
}

void CheckpointStore::remove_leftovers() {
  for (const Incomplete& found : incomplete()) {
    const std::string& path = found.folder.path;
    if (under_way_.contains(path)) continue;
    if (found.is_partial || !may_be_committed(path)) remove_checkpoint(path);
  }
}

std::vector<std::int64_t> CheckpointStore::collect(const Retention& retention,
                                                   const BetweenBlocks& between_blocks) {
  LOCKSTEP_CHECK(retention.last >= 1 && retention.every >= 0);
  std::vector<Listed> unwanted;
  std::set<std::int64_t> good_steps;
  const auto is_wanted = [&](const Listed& entry) {
    if (good_steps.contains(entry.step)) return false;  // what was replaced by a good one
    if (std::ssize(good_steps) >= retention.last) {
      return retention.every != 0 && entry.step % retention.every == 0;
    }
    if (!is_good(entry.path, between_blocks)) return good_steps.empty();
    good_steps.insert(entry.step);
    return true;
  };
  for (const Listed& entry : committed()) {
    if (!is_wanted(entry)) unwanted.push_back(entry);
  }
  if (good_steps.empty()) return {};
  LOCKSTEP_FAILPOINT("checkpoint.collect.begun");
  std::vector<std::int64_t> removed;
  for (const Listed& entry : unwanted) {
    if (last_ && entry.path == path_of({*last_, FolderName::Kind::plain, {}})) continue;
    between_blocks();
    remove_checkpoint(entry.path);
    good_.erase(entry.path);
    if (!good_steps.contains(entry.step)) removed.push_back(entry.step);
  }
  return removed;
}

}  // namespace lockstep::checkpoint
