// SPDX-License-Identifier: Apache-2.0
//
// The head and its loss when the vocabulary is divided among lanes (docs/algorithms.md, "Tensor lanes"). For
// each chunk of tokens a lane computes its logits and says three numbers of each token; when those of all
// lanes are known, it turns its logits into gradients. Bits depend on the number of lanes, not on who
// computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// The rows of the ids from `first` on; there may be none.
struct HeadLane {
  ConstMatrix weight;  // of the dtype of x
  std::uint32_t first = 0;
  Matrix weight_gradient = {};  // fp32, like the weight: added to. Not used when only the loss is asked for
};

// What lanes tell each other of a token.
enum LaneStatistic : std::size_t {
  highest_logit,  // -infinity if the lane has no rows
  sum_of_exponentials,
  target_logit,  // -infinity if the target is another lane's
  lane_statistics
};

struct DividedHead {
  ConstMatrix x;  // all tokens x width
  std::span<const std::uint32_t> targets;
  std::uint32_t vocabulary = 0;    // rows of all lanes
  std::size_t lanes = 1;           // a power of two
  std::size_t first_lane = 0;      // of those here, which follow each other
  std::span<const HeadLane> here;  // a power of two of them
  // Gets lanes x lane_statistics x (tokens of the chunk) floats, of which those of the lanes here are filled
  // in, and fills in the others. Called for one chunk after the other. May throw.
  std::function<void(std::span<float>)> exchange;
};

// losses[i] = -log(probability of targets[i]), in nats, of all tokens. UsageError when shapes do not fit or a
// target is not in the vocabulary.
void lane_head_loss(const DividedHead& head, std::span<float> losses);

// The gradients of scale * (sum of the losses): `x_gradient` (like x, its rows without gaps) becomes the sum
// over the lanes here (lanes/sum.h), those of the weights are added.
void lane_head_loss(const DividedHead& head, std::span<float> losses, float scale, const Matrix& x_gradient);

// What the lanes say of one token together: the tree over the lanes, each node (m, s) of (a, s_a), (b, s_b)
// being m = max(a, b), s = s_a exp(a - m) + s_b exp(b - m). `statistics`: lanes x lane_statistics x tokens.
struct TokenSoftmax {
  float highest;
  float sum;
  float target;
};
TokenSoftmax softmax_over_lanes(std::span<const float> statistics, std::size_t lanes, std::size_t token);

}  // namespace lockstep::kernels
