// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/dropout.h"

#include <algorithm>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/kernels/compute/dropout/dropout.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

// Keeps the numbers of dropout apart from all others that are made from a run's seed.
constexpr std::uint64_t kPurpose = 0x64726f706f757473;

// One number for each (sample, layer, place), without collisions.
std::uint64_t stream_of(std::uint64_t sample, const DropoutPlace& where) {
  LOCKSTEP_CHECK(sample >> 44 == 0 && where.layer >> 16 == 0 && where.place >> 4 == 0,
                 "a place of dropout is outside of its limits");
  return sample << 20 | where.layer << 4 | where.place;
}

// Samples that follow each other, each of as many rows as the others, of which the first and the last may be
// there in part.
struct Streams {
  float probability = 0.0F;
  std::uint64_t key = 0;
  std::vector<std::uint64_t> numbers = {};  // of the streams, one per sample
  std::int64_t rows_each = 0;
  LaneRun rows = {};  // that are there, of all rows of the samples
};

void drop(const at::Tensor& in, const Streams& streams, const at::Tensor& out) {
  const std::int64_t end = streams.rows.first + streams.rows.count;
  for (std::int64_t row = streams.rows.first; row < end;) {
    const std::int64_t sample = row / streams.rows_each;
    const std::int64_t count = std::min(end, (sample + 1) * streams.rows_each) - row;
    const auto first = static_cast<std::uint64_t>(row % streams.rows_each);
    const std::int64_t from = row - streams.rows.first;
    kernels::dropout({.probability = streams.probability,
                      .key = streams.key,
                      .stream = streams.numbers[static_cast<std::size_t>(sample)],
                      .first = first * static_cast<std::uint64_t>(in.size(-1))},
                     matrix_of(in.narrow(0, from, count)), matrix_of(out.narrow(0, from, count)));
    row += count;
  }
}

at::Tensor dropped(const at::Tensor& x, const Streams& streams) {
  at::Tensor out = at::empty(x.sizes(), x.options());
  drop(x.reshape({-1, x.size(-1)}), streams, out.view({-1, x.size(-1)}));
  return out;
}

struct DropElements : torch::autograd::Function<DropElements> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Streams& streams) {
    context->saved_data["streams"] = keep(streams);
    return dropped(x, streams);
  }
  // A mask is its own transpose.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {dropped(gradients[0], kept<Streams>(context->saved_data["streams"])), {}};
  }
};

Streams streams_of(const at::Tensor& x, const DropoutPlace& where, const Samples& samples,
                   const Lanes& lanes) {
  const auto count = static_cast<std::int64_t>(samples.numbers.size());
  Streams streams = {.probability = where.probability, .key = philox64(samples.seed, kPurpose, 0)};
  for (const std::uint64_t sample : samples.numbers) streams.numbers.push_back(stream_of(sample, where));
  const std::int64_t rows = x.numel() / std::max<std::int64_t>(1, x.size(-1));
  streams.rows = lanes.divide_tokens() ? lanes.held() : LaneRun{0, rows};
  streams.rows_each = (lanes.divide_tokens() ? lanes.tokens : rows) / count;
  LOCKSTEP_CHECK(rows == streams.rows.count && (lanes.divide_tokens() || x.size(0) == count),
                 "a number for each sample");
  return streams;
}

}  // namespace

at::Tensor dropout(const at::Tensor& x, const DropoutPlace& where, const Samples& samples,
                   const Lanes& lanes) {
  if (where.probability == 0.0F || samples.numbers.empty()) return x;
  require_kernels_for_lanes(x, lanes);
  const Streams streams = streams_of(x, where, samples, lanes);
  if (has_kernels(x)) return DropElements::apply(x, streams);
  const at::Tensor mask = at::ones({streams.rows.count, x.size(-1)}, at::kFloat);
  drop(mask, streams, mask);
  return x.mul(mask.view(x.sizes()).to(x.options()));
}

}  // namespace lockstep::nn
