// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "lockstep/data/sampling/windows.h"
#include "lockstep/model/block.h"

namespace lockstep::train {

// The sequences of a corpus. UsageError when there is no such corpus or it is shorter than one sequence,
// DataError when it is corrupt.
data::Windows open_windows(const std::string& path, std::int64_t vocabulary, std::int64_t length);

// `read` is called with each row and room for its length + 1 tokens.
model::Batch make_batch(std::uint64_t rows, std::int64_t length,
                        const std::function<void(std::uint64_t row, std::span<data::Token>)>& read);

}  // namespace lockstep::train
