// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/model_size.h"

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

double flops_per_token(const Model& model, std::int64_t seq_len) {
  const Parts parts = parts_of(model);
  const auto multiplied = static_cast<double>(parts.layers + parts.last_norm + parts.head);
  if (model.name == ModelFamily::mlp) return 6.0 * multiplied;
  const auto attended = static_cast<double>(model.layers * model.heads * model.head_width);
  return 6.0 * multiplied + 12.0 * attended * static_cast<double>(seq_len);
}

}  // namespace lockstep::spec
