// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/input_file.h"
#include "lockstep/checkpoint/store/blocks.h"
#include "lockstep/checkpoint/store/manifest.h"
#include "lockstep/mesh/range.h"

namespace lockstep::checkpoint {

// A committed checkpoint, read by tensor and element, whoever has written it. Keeps nothing of the files in
// memory. For one thread.
class Checkpoint {
 public:
  // Reads the manifest and the headers of all files. UsageError when there is no such folder; DataError
  // naming the file when it was not committed, or anything in it is missing, has another size or contradicts
  // the manifest.
  explicit Checkpoint(const std::string& folder);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  const Hash& manifest_hash() const { return manifest_hash_; }  // which says what all of it is
  bool has(const std::string& tensor) const;
  const LogicalTensor& tensor(const std::string& name) const;  // which it has

  // The elements of a tensor that it has. The first time that a piece is touched its hash is compared:
  // DataError naming file and tensor when it is not what was written; `values` are of no use then.
  void read(const std::string& tensor, Range elements, std::span<float> values);
  // Compares the hashes of all files and pieces; DataError as above.
  void verify(const BetweenBlocks& between_blocks = [] {});

 private:
  // Where a piece is.
  struct Source {
    const Piece* piece = nullptr;
    const InputFile* file = nullptr;
    std::uint64_t offset = 0;
    bool is_verified = false;
  };
  std::vector<Source> open_shard(const ShardFile& shard);
  void require_hash(const Source& source, const Hash& found) const;
  void read(Source& source, Range elements, std::span<float> values) const;
  void verify(std::vector<Source*> sources, const ShardFile& shard,
              const BetweenBlocks& between_blocks) const;

  std::string path_;
  Hash manifest_hash_;
  Manifest manifest_;
  std::vector<InputFile> files_;                                     // as in the manifest
  std::map<std::string, std::vector<Source>, std::less<>> sources_;  // by tensor
};

// One hash over all tensors (name, shape, values) and the progress of the run, in an order that no layout
// changes: runs of the same configuration have the same after the same step, whoever has trained them.
Hash logical_hash(Checkpoint& checkpoint);

}  // namespace lockstep::checkpoint
