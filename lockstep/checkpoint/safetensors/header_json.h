// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

// What the JSON of a header says, before anybody has checked that it fits together.
struct DeclaredTensor {
  std::string type;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> data_offsets;
};

struct DeclaredHeader {
  std::map<std::string, DeclaredTensor, std::less<>> tensors;
  std::map<std::string, std::string> metadata;
};

// DataError naming the file and the offset, which counts from the begin of the file: `json` stands behind 8
// bytes. Takes memory in proportion to the text, whatever the text is.
DeclaredHeader read_header_json(std::string_view json, const std::string& name);

}  // namespace lockstep::checkpoint
