// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/corpus.h"

namespace lockstep::train {

data::Windows open_windows(const std::string& path, std::int64_t vocabulary, std::int64_t length) {
  data::Windows windows(data::open_corpus(path, {.vocab_size = static_cast<std::uint64_t>(vocabulary)}),
                        static_cast<std::uint64_t>(length));
  if (windows.count() == 0) {
    throw UsageError(
        fmt::format("{}: the corpus is shorter than one sequence of {} tokens; choose shorter sequences or a "
                    "larger corpus",
                    path, length));
  }
  return windows;
}

model::Batch make_batch(std::uint64_t rows, std::int64_t length,
                        const std::function<void(std::uint64_t row, std::span<data::Token>)>& read) {
  const at::Tensor window = at::empty({static_cast<std::int64_t>(rows), length + 1}, at::kInt);
  static_assert(sizeof(data::Token) == sizeof(std::int32_t));
  auto* tokens = reinterpret_cast<data::Token*>(window.data_ptr<std::int32_t>());
  const auto width = static_cast<std::size_t>(length) + 1;
  for (std::uint64_t row = 0; row < rows; ++row) read(row, {tokens + row * width, width});
  return {window.narrow(1, 0, length).contiguous(), window.narrow(1, 1, length).contiguous()};
}

}  // namespace lockstep::train
