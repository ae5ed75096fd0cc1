// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/model_size.h"

#include <algorithm>
#include <numeric>

#include "lockstep/base/error.h"

namespace lockstep::spec {
namespace {

// Parameters by what they do.
struct Parts {
  std::int64_t layers = 0;  // all transformer layers, or all of an mlp
  std::int64_t last_norm = 0;
  std::int64_t lookup_only = 0;  // positions, and the token embedding when the head has weights of its own
  std::int64_t head = 0;         // tied or not
};

// Queries, keys and values, and the way back: weights only.
std::int64_t attention(const Model& model) {
  return model.width * model.head_width * 2 * (model.heads + model.kv_heads);
}

Parts parts_of_gpt(const Model& model) {
  const std::int64_t biases = 3 * model.heads * model.head_width + 2 * model.width + model.ffn_width;
  const std::int64_t layer = attention(model) + 2 * model.width * model.ffn_width + biases + 4 * model.width;
  const std::int64_t embedding = model.vocab_size * model.width;
  return {.layers = model.layers * layer,
          .last_norm = 2 * model.width,
          .lookup_only = model.max_seq_len * model.width + (model.tied_embeddings ? 0 : embedding),
          .head = embedding};
}

Parts parts_of_llama(const Model& model) {
  const std::int64_t layer = attention(model) + 3 * model.width * model.ffn_width + 2 * model.width;
  const std::int64_t embedding = model.vocab_size * model.width;
  return {.layers = model.layers * layer,
          .last_norm = model.width,
          .lookup_only = model.tied_embeddings ? 0 : embedding,
          .head = embedding};
}

Parts parts_of_mlp(const Model& model) {
  return {
      .layers = (model.max_seq_len + 1) * model.width + (model.layers - 1) * (model.width + 1) * model.width,
      .head = model.width * model.vocab_size};
}

Parts parts_of(const Model& model) {
  switch (model.name) {
    case ModelFamily::gpt:
      return parts_of_gpt(model);
    case ModelFamily::llama:
      return parts_of_llama(model);
    case ModelFamily::mlp:
      return parts_of_mlp(model);
  }
  LOCKSTEP_CHECK(false);
  return {};
}

}  // namespace

std::int64_t parameter_count(const Model& model) {
  const Parts parts = parts_of(model);
  return parts.layers + parts.last_norm + parts.lookup_only + parts.head;
}

std::vector<std::int64_t> block_parameter_counts(const Model& model) {
  const Parts parts = parts_of(model);
  if (model.name == ModelFamily::mlp) {
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(model.layers), (model.width + 1) * model.width);
    blocks.front() = (model.max_seq_len + 1) * model.width;
    blocks.push_back(parts.head);
    return blocks;
  }
  const std::int64_t embedding = parts.lookup_only + (model.tied_embeddings ? parts.head : 0);
  std::vector<std::int64_t> blocks = {embedding};
  blocks.insert(blocks.end(), static_cast<std::size_t>(model.layers), parts.layers / model.layers);
  blocks.push_back(parts.last_norm);
  blocks.push_back(model.tied_embeddings ? 0 : parts.head);
  return blocks;
}

Model lane_of(Model model, std::int64_t lanes) {
  model.heads /= lanes;
  model.kv_heads = std::max<std::int64_t>(1, model.kv_heads / lanes);
  model.ffn_width /= lanes;
  model.vocab_size = (model.vocab_size + lanes - 1) / lanes;
  return model;
}

double flops_per_token(const Model& model, std::int64_t seq_len) {
  const std::vector<double> blocks = block_flops_per_token(model, seq_len);
  return std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

std::vector<double> block_flops_per_token(const Model& model, std::int64_t seq_len) {
  const Parts parts = parts_of(model);
  const auto flops = [](std::int64_t parameters) { return 6.0 * static_cast<double>(parameters); };
  if (model.name == ModelFamily::mlp) {
    std::vector<double> blocks(static_cast<std::size_t>(model.layers),
                               flops((model.width + 1) * model.width));
    blocks.front() = flops((model.max_seq_len + 1) * model.width);
    blocks.push_back(flops(parts.head));
    return blocks;
  }
  const auto attended = static_cast<double>(model.heads * model.head_width * seq_len);
  std::vector<double> blocks = {0.0};  // the embedding looks up
  blocks.insert(blocks.end(), static_cast<std::size_t>(model.layers),
                flops(parts.layers / model.layers) + 12.0 * attended);
  blocks.push_back(flops(parts.last_norm));
  blocks.push_back(flops(parts.head));
  return blocks;
}

}  // namespace lockstep::spec
