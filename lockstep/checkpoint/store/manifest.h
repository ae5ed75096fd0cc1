// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint says about itself (docs/formats/checkpoint.md): which tensors it has, in which files
// their elements are, how far the run has come. Nothing in it depends on the layout that has written it but
// the places of the pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/hash.h"
#include "lockstep/mesh/runs.h"

namespace lockstep::checkpoint {

// A tensor of the training state, fp32 and row-major: "model.NAME" is the value of a parameter,
// "optimizer.MOMENT.NAME" what the optimizer remembers of it.
struct LogicalTensor {
  std::string name;
  std::vector<std::int64_t> shape;

  std::size_t elements() const;
  bool operator==(const LogicalTensor&) const = default;
};

// Elements of a tensor that stand one after the other in a file, as a tensor of one dimension.
struct Piece {
  std::string tensor;   // its name in the manifest
  std::string in_file;  // in the file
  Runs elements;
  Hash hash;  // of its bytes
  bool operator==(const Piece&) const = default;
};

// What one rank has written.
struct ShardFile {
  std::string name;  // beside the manifest
  std::uint64_t bytes = 0;
  Hash hash;
  std::vector<Piece> pieces;
  bool operator==(const ShardFile&) const = default;
};

// How far a run has come: what is needed beside the tensors to go on exactly.
struct Progress {
  std::int64_t step = 0;            // that was completed; 0: before the first one
  std::uint64_t data_position = 0;  // samples that were drawn
  std::int64_t bad_steps = 0;       // skipped, because a gradient was not finite
  std::int64_t bad_in_a_row = 0;    // until now, those that have lowered the loss scale left out
  double loss_scale = 1;
  std::int64_t good_steps = 0;  // since the loss scale has changed
  double loss = 0;              // of the last step
  bool operator==(const Progress&) const = default;
};

// What the last step came to beside its loss, for a run that has to tell of it again.
struct LastStep {
  double gradient_norm = 0;
  double learning_rate = 0;
  double loss_scale = 1;     // that it had
  double seconds = 0;        // that it took
  std::int64_t updated = 1;  // 0: it was skipped
  bool operator==(const LastStep&) const = default;
};

struct Manifest {
  Progress progress;
  std::optional<LastStep> last_step;  // none: nobody knows, or there was no step
  std::int64_t lanes = 1;
  std::int64_t tensor_lanes = 1;
  std::string configuration;           // the resolved run file
  std::string data_digest;             // of samples of the run's data
  std::string tokenizer_digest;        // empty: the run has none
  std::string written_by;              // the layout, for people
  std::string arithmetic;              // what the bits that were computed depend on; empty: nobody knows
  std::vector<LogicalTensor> tensors;  // by name
  std::vector<ShardFile> files;
  bool operator==(const Manifest&) const = default;
};

inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{1} << 28;

std::string to_json(const Manifest& manifest);
// What a rank reports of its file, until all are there.
std::string to_json(const ShardFile& file);

// DataError naming `name` and what is wrong with it: not JSON, another version, names of files that are not
// plain names, numbers out of range, pieces of tensors that it does not list, elements of a tensor that are
// in no piece or in two, tensors or files that come twice. Whatever passes can be read without further checks
// of its arithmetic.
Manifest parse_manifest(std::string_view json, const std::string& name);
ShardFile parse_shard_file(std::string_view json, const std::string& name);

// The same checks of one that was put together here: DataError when ranks have reported pieces that do not
// make up the tensors.
void require_complete(const Manifest& manifest, const std::string& name);
void require_sound(const ShardFile& file, const std::string& name);  // what one file can tell

// [A-Za-z0-9._-]+ that begins with no point, has no two in a row and ends in .safetensors.
bool is_plain_file_name(std::string_view name);

}  // namespace lockstep::checkpoint
