// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/nn/tensor_view.h"

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

data::DenseSamples open_dense(const std::string& path, std::int64_t classes, std::int64_t inputs) {
  data::DenseSamples samples(path, static_cast<std::uint64_t>(classes));
  if (samples.features() != static_cast<std::size_t>(inputs)) {
    throw UsageError(fmt::format(
        "{} has {} columns beside the class, but training.seq_len asks for {} inputs; set it to {}", path,
        samples.features(), inputs, samples.features()));
  }
  return samples;
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

model::Batch make_dense_batch(std::uint64_t rows, std::int64_t columns,
                              const std::function<std::int32_t(std::uint64_t row, std::span<float>)>& read) {
  model::Batch batch;
  batch.features = at::empty({static_cast<std::int64_t>(rows), columns}, at::kFloat);
  batch.targets = at::empty({static_cast<std::int64_t>(rows)}, at::kInt);
  const std::span<float> features = nn::floats_of(batch.features);
  const auto width = static_cast<std::size_t>(columns);
  for (std::uint64_t row = 0; row < rows; ++row) {
    batch.targets.data_ptr<std::int32_t>()[row] = read(row, features.subspan(row * width, width));
  }
  return batch;
}

}  // namespace lockstep::train
