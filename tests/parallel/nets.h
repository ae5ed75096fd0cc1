// SPDX-License-Identifier: Apache-2.0
//
// A small network of odd sizes, and what its training must give.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <torch/nn/module.h>

#include "lockstep/schedule/collective/canonical.h"

namespace lockstep::test {

inline constexpr int kInputs = 7;
inline constexpr int kRows = 6;

// Values that depend on the seed alone, between -0.5 and 0.5.
inline at::Tensor values(at::IntArrayRef sizes, int seed, at::ScalarType dtype) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return at::arange(count, at::kDouble).mul(0.7).add(1.3 * seed).sin().mul(0.5).to(dtype).reshape(sizes);
}

// Parameters are registered in another order than backward reaches them.
struct Net : torch::nn::Module {
  Net(int seed, at::ScalarType dtype) {
    out_bias = register_parameter("out_bias", values({5}, seed, dtype));
    in = register_parameter("in", values({13, kInputs}, seed + 1, dtype));
    scale = register_parameter("scale", values({}, seed + 2, dtype));
    out = register_parameter("out", values({13, 5}, seed + 3, dtype).t());  // dense, not row-major
    in_bias = register_parameter("in_bias", values({13}, seed + 4, dtype));
    frozen = register_parameter("frozen", values({3}, seed + 5, dtype), /*requires_grad=*/false);
    seen = register_buffer("seen", values({2}, seed + 6, at::kDouble));
  }

  at::Tensor forward(const at::Tensor& x) {
    seen.add_(x.detach().sum().to(at::kDouble));
    at::Tensor hidden = x.matmul(in.t()).add(in_bias).tanh();
    return hidden.matmul(out.t()).add(out_bias).mul(scale);
  }

  at::Tensor out_bias, in, scale, out, in_bias, frozen, seen;
};

// The first value of every sample's output should be the sum of its inputs.
inline at::Tensor loss_of(Net& net, const at::Tensor& x) {
  const at::Tensor error = net.forward(x).select(1, 0).sub(x.sum(1));
  return error.mul(error).mean();
}

inline at::Tensor samples(int step, int rank, at::ScalarType dtype) {
  return values({kRows, kInputs}, 1000 + 10 * step + rank, dtype);
}

inline at::Tensor all_samples(int step, int world, at::ScalarType dtype) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < world; ++rank) parts.push_back(samples(step, rank, dtype));
  return at::cat(parts);
}

// The bits, whatever the strides.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous();
  const at::Tensor y = b.detach().contiguous();
  return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

// The sum in the canonical order of what ranks first..first+count-1 bring.
inline at::Tensor tree_sum(const std::vector<at::Tensor>& parts, int first, int count) {
  if (count == 1) return parts[static_cast<std::size_t>(first)];
  const int left = schedule::canonical_split(count);
  return tree_sum(parts, first, left).add(tree_sum(parts, first + left, count - left));
}

// What averaging must give: the tree, then one division, in fp32 for the short types.
inline at::Tensor tree_average(const std::vector<at::Tensor>& parts) {
  const int count = static_cast<int>(parts.size());
  const at::Tensor sum = tree_sum(parts, 0, count);
  const bool is_double = sum.scalar_type() == at::kDouble;
  return sum.to(is_double ? at::kDouble : at::kFloat).div(count).to(sum.scalar_type());
}

inline void descend(Net& net) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : net.parameters()) {
    if (parameter.grad().defined()) parameter.detach().sub_(parameter.grad().mul(0.25));
  }
}

}  // namespace lockstep::test
