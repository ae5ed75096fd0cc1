// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/bytes.h"

namespace lockstep::data {

// What the begin of a NumPy file says of the matrix that follows.
struct NpyHeader {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t data_offset = 0;  // bytes from the begin of the file to the first value
};

// Reads versions 1 to 3 of the format, little-endian float32 in C order and two dimensions. The size of the
// data is not compared with that of the file. DataError naming `path` and the offset otherwise.
NpyHeader read_npy_header(ConstBytes file, const std::string& path);

}  // namespace lockstep::data
