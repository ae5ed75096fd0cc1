// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/checkpoint/safetensors/file.h"
#include "lockstep/checkpoint/store/manifest.h"

namespace lockstep::checkpoint {

// A committed checkpoint, read by tensor and element, whoever has written it. For one thread.
class Checkpoint {
 public:
  // Reads the manifest and the headers of all files. UsageError when there is no such folder; DataError naming
  // the file when it was not committed, or anything in it is missing, has another size or contradicts the
  // manifest.
  explicit Checkpoint(const std::string& folder);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  bool has(const std::string& tensor) const;
  const LogicalTensor& tensor(const std::string& name) const;  // which it has

  // The elements of a tensor that it has. The first time that a piece is touched its hash is compared: DataError
  // naming file and tensor when it is not what was written.
  void read(const std::string& tensor, Range elements, std::span<float> values);
  // Compares the hashes of all files and pieces; DataError as above.
  void verify();

 private:
  struct Source {
    const Piece* piece = nullptr;
    std::size_t file = 0;
    ConstBytes bytes;
    bool is_verified = false;
  };
  void verify(Source& source) const;

  std::string path_;
  Manifest manifest_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, std::vector<Source>> sources_;  // by tensor, in ascending order of the first element
};

// One hash over all tensors (name, shape, values) and the progress of the run, in an order that no layout
// changes: runs of the same configuration have the same after the same step, whoever has trained them.
Hash logical_hash(Checkpoint& checkpoint);

}  // namespace lockstep::checkpoint
