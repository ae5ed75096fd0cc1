// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "lockstep/data/dense/dense_samples.h"
#include "lockstep/data/sampling/windows.h"
#include "lockstep/model/block.h"

namespace lockstep::train {

// The sequences of a corpus. UsageError when there is no such corpus or it is shorter than one sequence,
// DataError when it is corrupt.
data::Windows open_windows(const std::string& path, std::int64_t vocabulary, std::int64_t length);

// The samples of a NumPy file. UsageError when there is no such file or it has not `inputs` + 1 columns,
// DataError when it is corrupt.
data::DenseSamples open_dense(const std::string& path, std::int64_t classes, std::int64_t inputs);

// `read` is called with each row and room for its length + 1 tokens.
model::Batch make_batch(std::uint64_t rows, std::int64_t length,
                        const std::function<void(std::uint64_t row, std::span<data::Token>)>& read);

// The same for dense samples; `read` fills the columns of a row and returns its class.
model::Batch make_dense_batch(std::uint64_t rows, std::int64_t columns,
                              const std::function<std::int32_t(std::uint64_t row, std::span<float>)>& read);

}  // namespace lockstep::train
