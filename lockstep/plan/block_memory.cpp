// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/block_memory.h"

#include <algorithm>

#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/loss/head_loss.h"

namespace lockstep::plan {
namespace {

using schedule::BlockMemory;

// A row is what a block computes for one token, or for one sample of an mlp.
struct Rows {
  std::uint64_t count = 0;
  std::uint64_t element_bytes = 0;

  // `values` of the dtype and `floats` in fp32, for every row.
  std::uint64_t bytes(std::int64_t values, std::int64_t floats = 0) const {
    return count * (static_cast<std::uint64_t>(values) * element_bytes +
                    static_cast<std::uint64_t>(floats) * sizeof(float));
  }
};

Rows rows_of(const spec::Model& model, const spec::Training& training) {
  const std::int64_t per_sample = model.name == spec::ModelFamily::mlp ? 1 : training.seq_len;
  return {.count = static_cast<std::uint64_t>(training.micro_batch_size * per_sample),
          .element_bytes = size_of(training.dtype)};
}

// Of a norm, beside its input and output: mean and reciprocal deviation.
constexpr std::int64_t kNormFloats = 2;

// Two normed inputs, queries, keys and values, what attention made of them, the hidden state between, the
// wide layer before and after its activation. Attention keeps a float for each head.
BlockMemory gpt_layer(const spec::Model& model, const Rows& rows) {
  const std::int64_t width = model.width;
  const std::int64_t ffn = model.ffn_width;
  return {.output = rows.bytes(width),
          .inner = rows.bytes(7 * width + 2 * ffn, 2 * kNormFloats + model.heads),
          .work = rows.bytes(2 * width + ffn)};
}

BlockMemory llama_layer(const spec::Model& model, const Rows& rows) {
  const std::int64_t width = model.width;
  const std::int64_t ffn = model.ffn_width;
  const std::int64_t attention = 2 * (model.heads + model.kv_heads) * model.head_width;
  return {.output = rows.bytes(width),
          .inner = rows.bytes(3 * width + attention + 3 * ffn, 2 * kNormFloats + model.heads),
          .work = rows.bytes(2 * width + 2 * ffn)};
}

// Between the embedding and the last norm; they keep what comes out, and the norm its figures.
std::vector<BlockMemory> transformer(const spec::Model& model, const Rows& rows, const BlockMemory& layer) {
  const std::uint64_t hidden = rows.bytes(model.width);
  std::vector<BlockMemory> blocks(static_cast<std::size_t>(model.layers) + 2, layer);
  blocks.front() = {.output = hidden, .inner = 0, .work = hidden};
  blocks.back() = {.output = hidden, .inner = rows.bytes(0, kNormFloats), .work = hidden};
  return blocks;
}

std::vector<BlockMemory> mlp(const spec::Model& model, const Rows& rows) {
  const std::uint64_t hidden = rows.bytes(model.width);
  std::vector<BlockMemory> blocks(static_cast<std::size_t>(model.layers),
                                  {.output = hidden, .inner = hidden, .work = hidden});
  // The features come in fp32.
  if (rows.element_bytes < sizeof(float)) blocks.front().inner += rows.bytes(model.max_seq_len);
  return blocks;
}

}  // namespace

std::vector<BlockMemory> block_memory(const spec::Model& model, const spec::Training& training) {
  const Rows rows = rows_of(model, training);
  switch (model.name) {
    case spec::ModelFamily::gpt:
      return transformer(model, rows, gpt_layer(model, rows));
    case spec::ModelFamily::llama:
      return transformer(model, rows, llama_layer(model, rows));
    case spec::ModelFamily::mlp:
      return mlp(model, rows);
  }
  LOCKSTEP_CHECK(false);
  return {};
}

std::uint64_t head_memory(const spec::Model& model, const spec::Training& training) {
  const Rows rows = rows_of(model, training);
  const std::uint64_t chunk = std::min<std::uint64_t>(rows.count, kernels::kLossChunk);
  return chunk * static_cast<std::uint64_t>(model.vocab_size) * sizeof(float) + rows.bytes(model.width);
}

}  // namespace lockstep::plan
