// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/dropout.h"

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

void drop(const at::Tensor& in, float probability, std::int64_t key, at::ArrayRef<std::int64_t> streams,
          const at::Tensor& out) {
  for (std::int64_t i = 0; i < in.size(0); ++i) {
    kernels::dropout({.probability = probability,
                      .key = static_cast<std::uint64_t>(key),
                      .stream = static_cast<std::uint64_t>(streams[static_cast<std::size_t>(i)])},
                     matrix_of(in.select(0, i)), matrix_of(out.select(0, i)));
  }
}

struct DropElements : torch::autograd::Function<DropElements> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double probability,
                            std::int64_t key, const std::vector<std::int64_t>& streams) {
    context->saved_data["probability"] = probability;
    context->saved_data["key"] = key;
    context->saved_data["streams"] = streams;
    return dropped(x, probability, key, streams);
  }
  // A mask is its own transpose.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto& saved = context->saved_data;
    return {dropped(gradients[0], saved["probability"].toDouble(), saved["key"].toInt(),
                    saved["streams"].toIntVector()),
            {},
            {},
            {}};
  }
  static at::Tensor dropped(const at::Tensor& x, double probability, std::int64_t key,
                            const std::vector<std::int64_t>& streams) {
    at::Tensor out = at::empty(x.sizes(), x.options());
    drop(as_rows(x), static_cast<float>(probability), key, streams, out);
    return out;
  }
};

}  // namespace

at::Tensor dropout(const at::Tensor& x, const DropoutPlace& where, const Samples& samples) {
  if (where.probability == 0.0F || samples.numbers.empty()) return x;
  LOCKSTEP_CHECK(x.size(0) == static_cast<std::int64_t>(samples.numbers.size()), "a number for each sample");
  const auto key = static_cast<std::int64_t>(philox64(samples.seed, kPurpose, 0));
  std::vector<std::int64_t> streams;
  for (const std::uint64_t sample : samples.numbers) {
    streams.push_back(static_cast<std::int64_t>(stream_of(sample, where)));
  }
  if (has_kernels(x)) return DropElements::apply(x, where.probability, key, streams);
  const at::Tensor mask = at::ones(x.sizes(), at::kFloat);
  drop(mask, where.probability, key, streams, mask);
  return x.mul(mask.to(x.options()));
}

}  // namespace lockstep::nn
