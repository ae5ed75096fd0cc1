// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lockstep/spec/check.h"

namespace lockstep::spec {
namespace {

// 8/3 of the width has three matrices cost what two of 4 widths do (N. Shazeer 2020, arXiv:2002.05202).
std::int64_t default_ffn_width(const Model& model) {
  constexpr std::int64_t kMultiple = 256;
  if (model.name != ModelFamily::llama) return 4 * model.width;
  return (8 * model.width + 3 * kMultiple - 1) / (3 * kMultiple) * kMultiple;
}

}  // namespace

void fill_model(RunSpec& run) {
  Model& model = run.model;
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.head_width == 0) model.head_width = std::max<std::int64_t>(1, model.width / model.heads);
  if (model.ffn_width == 0) model.ffn_width = default_ffn_width(model);
  if (model.max_seq_len == 0) model.max_seq_len = run.training.seq_len;
}

}  // namespace lockstep::spec
