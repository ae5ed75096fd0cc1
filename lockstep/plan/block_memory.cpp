// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/block_memory.h"

#include <algorithm>

#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"

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

// What a worker computes of each layer, and for how many tokens.
struct Share {
  spec::Model model;      // its heads, its part of the wide layer and of the vocabulary
  Rows rows;              // all tokens
  std::int64_t here = 1;  // tensor lanes
  bool is_divided = false;
  Rows held = {};  // those that it holds between layers
};

Share share_of(const spec::RunSpec& run) {
  const std::int64_t lanes = spec::tensor_lanes(run.parallelism);
  const std::int64_t here = lanes / run.parallelism.tensor;
  const bool is_mlp = run.model.name == spec::ModelFamily::mlp;
  const std::int64_t rows = run.training.micro_batch_size * (is_mlp ? 1 : run.training.seq_len);
  Share share = {.model = lanes > 1 ? spec::lane_of(run.model, lanes) : run.model,
                 .rows = {static_cast<std::uint64_t>(rows), size_of(run.training.dtype)},
                 .here = here,
                 .is_divided = lanes > 1};
  for (std::int64_t* size :
       {&share.model.heads, &share.model.kv_heads, &share.model.ffn_width, &share.model.vocab_size}) {
    *size *= here;
  }
  share.held = share.rows;
  if (run.parallelism.sequence_parallel) {
    share.held.count = static_cast<std::uint64_t>((rows + lanes - 1) / lanes * here);
  }
  return share;
}

// Of a norm, beside its input and output: mean and reciprocal deviation.
constexpr std::int64_t kNormFloats = 2;

// Two normed inputs, queries, keys and values, what attention made of them, the hidden state between, the
// wide layer before and after its activation. Attention keeps a float for each head.
BlockMemory gpt_layer(const Share& share) {
  const std::int64_t width = share.model.width;
  const std::int64_t attention = 4 * share.model.heads * share.model.head_width;
  const std::int64_t ffn = share.model.ffn_width;
  return {.output = share.held.bytes(width),
          .inner = share.rows.bytes(2 * width + attention + 2 * ffn, share.model.heads) +
                   share.held.bytes(width, 2 * kNormFloats),
          .work = share.rows.bytes((share.here + 1) * width + ffn)};
}

BlockMemory llama_layer(const Share& share) {
  const std::int64_t width = share.model.width;
  const std::int64_t ffn = share.model.ffn_width;
  const std::int64_t attention = 2 * (share.model.heads + share.model.kv_heads) * share.model.head_width;
  return {.output = share.held.bytes(width),
          .inner = share.rows.bytes(2 * width + attention + 3 * ffn, share.model.heads) +
                   share.held.bytes(width, 2 * kNormFloats),
          .work = share.rows.bytes((share.here + 1) * width + 2 * ffn)};
}

// Between the embedding and the last norm; they keep what comes out, and the norm its figures.
std::vector<BlockMemory> transformer(const Share& share, const BlockMemory& layer) {
  const std::uint64_t hidden = share.held.bytes(share.model.width);
  std::vector<BlockMemory> blocks(static_cast<std::size_t>(share.model.layers) + 2, layer);
  blocks.front() = {.output = hidden, .inner = 0, .work = share.rows.bytes(share.model.width)};
  blocks.back() = {.output = hidden, .inner = share.held.bytes(0, kNormFloats), .work = hidden};
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

std::vector<BlockMemory> block_memory(const spec::RunSpec& run) {
  const Share share = share_of(run);
  switch (run.model.name) {
    case spec::ModelFamily::gpt:
      return transformer(share, gpt_layer(share));
    case spec::ModelFamily::llama:
      return transformer(share, llama_layer(share));
    case spec::ModelFamily::mlp:
      return mlp(share.model, share.rows);
  }
  LOCKSTEP_CHECK(false);
  return {};
}

std::uint64_t head_memory(const spec::RunSpec& run) {
  const Share share = share_of(run);
  const std::uint64_t chunk = std::min<std::uint64_t>(share.rows.count, kernels::kLossChunk);
  return chunk * static_cast<std::uint64_t>(share.model.vocab_size) * sizeof(float) +
         share.rows.bytes((share.is_divided ? 2 : 1) * share.model.width);
}

}  // namespace lockstep::plan
