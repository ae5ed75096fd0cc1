// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/choose_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

// The most likely tokens first, no more than top_k.
std::vector<std::size_t> by_likelihood(std::span<const float> logits, std::size_t top_k) {
  std::vector<std::size_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  const std::size_t count = top_k == 0 ? tokens.size() : std::min(top_k, tokens.size());
  std::partial_sort(
      tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count), tokens.end(),
      [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  tokens.resize(count);
  return tokens;
}

}  // namespace

std::size_t choose_token(std::span<const float> logits, const Sampling& sampling, std::uint64_t random) {
  LOCKSTEP_CHECK(!logits.empty());
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    throw UsageError("the model's logits are not finite: its weights are not those of a trained model");
  }
  const bool greedy = sampling.temperature <= 0;
  const std::vector<std::size_t> tokens = by_likelihood(logits, greedy ? 1 : sampling.top_k);
  if (greedy) return tokens.front();
  std::vector<double> sums;  // of the probabilities up to each token, before they are made to sum to 1
  double sum = 0;
  for (const std::size_t token : tokens) {
    sum += std::exp((static_cast<double>(logits[token]) - logits[tokens.front()]) / sampling.temperature);
    sums.push_back(sum);
  }
  const auto kept = std::lower_bound(sums.begin(), sums.end() - 1, sampling.top_p * sum);
  const double wanted = static_cast<double>(random >> 11) * 0x1p-53 * *kept;
  return tokens[static_cast<std::size_t>(std::upper_bound(sums.begin(), kept, wanted) - sums.begin())];
}

}  // namespace lockstep::model
