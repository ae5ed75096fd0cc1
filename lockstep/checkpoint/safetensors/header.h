// SPDX-License-Identifier: Apache-2.0
//
// The header of a safetensors file: 8 bytes with its length (little-endian), then JSON that gives each tensor
// a name, a type, a shape and its place in the data behind it. The data has no holes and ends with the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"

namespace lockstep::checkpoint {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

// Texts beside the tensors, such as {"format": "pt"}, which other readers insist on.
using Metadata = std::map<std::string, std::string>;

struct StoredTensor {
  std::string type;  // as the file names it: "BF16"
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the begin of the file
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, StoredTensor, std::less<>> tensors;
  Metadata metadata;
};

// Reads and checks the header of a whole file; `name` is what errors call it. DataError with the offset when
// anything is not as the format has it: types, sizes that do not follow from shapes, holes, overlaps, bytes
// too few or too many, names that come twice.
SafetensorsHeader parse_safetensors(ConstBytes file, const std::string& name);

// The same in two steps, for a file of `file_bytes` that is not in memory: how many bytes stand before its
// data, from its first 8 (all, when it has fewer), and what these bytes say.
std::uint64_t safetensors_data_begin(ConstBytes first, std::uint64_t file_bytes, const std::string& name);
SafetensorsHeader parse_safetensors_header(ConstBytes before_data, std::uint64_t file_bytes,
                                           const std::string& name);

// "F32" and so on; none for types that no tensor of ours has.
std::optional<DType> dtype_of_type(std::string_view type);
std::string_view type_of(DType dtype);

}  // namespace lockstep::checkpoint
