// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::metrics {

// The checksum of RFC 3720 (polynomial of Castagnoli).
std::uint32_t crc32c(std::string_view bytes);

// As it stands in record files, where a checksum of bytes that hold checksums would be weak: turned right by
// 15 bits, plus a constant.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep::metrics
