// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/sampling/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

double checked_total(const std::vector<MixturePart>& parts) {
  if (parts.empty()) throw UsageError("there is no corpus to train on");
  double total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!(parts[i].weight > 0) || !std::isfinite(parts[i].weight)) {
      throw UsageError(fmt::format("corpus {} has weight {}: weights are positive", i + 1, parts[i].weight));
    }
    if (parts[i].samples == 0) {
      throw UsageError(fmt::format(
          "corpus {} is shorter than one sample; shorten the sequences or take more text", i + 1));
    }
    total += parts[i].weight;
  }
  return total;
}

// By largest remainder, ties to the first.
std::vector<std::uint64_t> shares_of(const std::vector<MixturePart>& parts, std::uint64_t of) {
  const double total = checked_total(parts);
  std::vector<std::uint64_t> shares;
  std::vector<double> remainders;
  for (const MixturePart& part : parts) {
    const double exact = part.weight / total * static_cast<double>(of);
    shares.push_back(static_cast<std::uint64_t>(exact));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  std::uint64_t left = of - std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) ++shares[order[i % order.size()]];
  return shares;
}

// floor(count * numerator / denominator) for a numerator up to the denominator, which is at most kShares.
std::uint64_t share_of(std::uint64_t count, std::uint64_t numerator, std::uint64_t denominator) {
  return count / denominator * numerator + count % denominator * numerator / denominator;
}

}  // namespace

Mixture::Mixture(const std::vector<MixturePart>& parts, std::uint64_t seed)
    : shares_(shares_of(parts, kShares)) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (shares_[i] == 0) {
      throw UsageError(
          fmt::format("the weight {} of corpus {} is too small beside the others: its share must be at "
                      "least one sample of {}",
                      parts[i].weight, i + 1, kShares));
    }
    shuffles_.emplace_back(parts[i].samples, seed, i);
  }
}

// Of n positions the first part takes floor(n * share), as in Bresenham's line; the others divide what it
// leaves in the same way.
Mixture::Sample Mixture::at(std::uint64_t position) const {
  std::size_t part = 0;
  std::uint64_t left = kShares;
  while (part + 1 < shares_.size()) {
    const std::uint64_t before = share_of(position, shares_[part], left);
    if (share_of(position + 1, shares_[part], left) > before) {
      position = before;
      break;
    }
    position -= before;
    left -= shares_[part];
    ++part;
  }
  return {part, shuffles_[part](position), shuffles_[part].epoch_of(position)};
}

}  // namespace lockstep::data
