// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// Parameters of a model without zeros (fill_model), tied weights once.
std::int64_t parameter_count(const Model& model);

// The same, piece by piece: of every block of the model, and behind them of a head of its own, 0 when it is
// tied.
std::vector<std::int64_t> block_parameter_counts(const Model& model);

// What one of `lanes` tensor lanes has of each layer, as a model: its heads, its part of the wide layer and
// of the vocabulary, rounded up.
Model lane_of(Model model, std::int64_t lanes);

// Forward and backward of one token in a sequence of `seq_len`: 6 N + 12 L H Q T (layers, heads, head width,
// tokens; A. Chowdhery et al. 2022, arXiv:2204.02311, appendix B). N leaves out tables that are only looked
// up (positions, an untied token embedding), which multiply nothing. Of an mlp: of one sample.
double flops_per_token(const Model& model, std::int64_t seq_len);

// The same, piece by piece: of every block of the model, and behind them of its head.
std::vector<double> block_flops_per_token(const Model& model, std::int64_t seq_len);

}  // namespace lockstep::spec
