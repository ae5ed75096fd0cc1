// SPDX-License-Identifier: Apache-2.0
//
// NumPy files for tests, as NumPy 1.24 writes them.
#pragma once

#include <string>
#include <vector>

#include "tests/data/tokens.h"

namespace lockstep::data::testing {

inline const std::string kNpyFields = "{'descr': '<f4', 'fortran_order': False, 'shape': (SHAPE), }";

// Version 1.0; the header is filled with spaces so that the data begins at a multiple of 64.
inline std::string npy(const std::string& fields, const std::string& data) {
  std::string header = fields + std::string((64 - (10 + fields.size() + 1) % 64) % 64, ' ') + "\n";
  return "\x93NUMPY" + bytes_of<std::uint8_t>({1, 0}) +
         bytes_of<std::uint16_t>({static_cast<std::uint16_t>(header.size())}) + header + data;
}

// All rows have the same length.
inline std::string npy(const std::vector<std::vector<float>>& rows) {
  std::string fields = kNpyFields;
  fields.replace(fields.find("SHAPE"), 5,
                 std::to_string(rows.size()) + ", " + std::to_string(rows.front().size()));
  std::string data;
  for (const auto& row : rows) data += bytes_of(row);
  return npy(fields, data);
}

}  // namespace lockstep::data::testing
