// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/weights.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/model/initial_values.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/train/shares.h"

namespace lockstep::train {
namespace {

// First values are made piece by piece: a whole embedding in fp32 would be the largest thing in memory.
constexpr std::size_t kPiece = std::size_t{1} << 18;

}  // namespace

Weights::Weights(const Holding& holding, DType dtype, std::uint64_t seed, int moments)
    : holding_(holding),
      layout_(holding.layout),
      partition_(holding.partition),
      dtype_(dtype),
      memory_(holding.groups.world.allocate(partition_.elements * size_of(dtype))),
      working_(at::from_blob(memory_.bytes().data(), {layout_.elements()}, nn::scalar_type_of(dtype))) {
  std::size_t shares = 0;
  for (const Range& own : partition_.own) {
    share_begins_.push_back(shares);
    shares += own.size();
  }
  const auto elements = static_cast<std::int64_t>(shares);
  if (dtype != DType::fp32) master_ = at::zeros({elements}, at::kFloat);
  for (int i = 0; i < moments; ++i) moments_.push_back(at::zeros({elements}, at::kFloat));

  give_first_values(seed);
}

void Weights::give_first_values(std::uint64_t seed) {
  const auto give = [&](Range elements) {
    for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
      const Range place = elements_of(layout_.places()[i]);
      const Range both = intersection(elements, place);
      kernels::parallel_for((both.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
        const std::size_t begin = both.begin + piece * kPiece;
        std::vector<float> values(std::min(kPiece, both.end - begin));
        model::initial_values(layout_.specs()[i], seed, begin - place.begin, values);
        assign(i, begin - place.begin, values);
      });
    }
  };
  give({0, layout_.owned().begin});
  for (std::size_t bucket = 0; bucket < partition_.buckets.size(); ++bucket) {
    give(partition_.own[bucket]);
    if (partition_.shards_update) {
      holding_.groups.data.all_gather(working(bucket), {.dtype = dtype_});
    }
  }
}

Bytes Weights::working(std::size_t bucket) const {
  return working(partition_.buckets[bucket].elements);
}

Bytes Weights::working(Range elements) const {
  return memory_.bytes().subspan(elements.begin * size_of(dtype_), elements.size() * size_of(dtype_));
}

std::span<float> Weights::share(const at::Tensor& shares, std::size_t bucket) const {
  return nn::floats_of(shares).subspan(share_begins_[bucket], partition_.own[bucket].size());
}

std::span<float> Weights::master(std::size_t bucket) const {
  if (master_.defined()) return share(master_, bucket);
  return memory_.as<float>().subspan(partition_.own[bucket].begin, partition_.own[bucket].size());
}

void Weights::assign(std::size_t parameter, std::size_t first, std::span<const float> values) {
  const std::size_t begin = elements_of(layout_.places()[parameter]).begin + first;
  kernels::from_floats(values, memory_.bytes().data() + begin * size_of(dtype_), dtype_);
  for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
    const Range own = partition_.own[bucket];
    const Range both = intersection(own, {begin, begin + values.size()});
    if (both.empty()) continue;
    std::ranges::copy(values.subspan(both.begin - begin, both.size()),
                      master(bucket).begin() + static_cast<std::ptrdiff_t>(both.begin - own.begin));
  }
}

void Weights::update(const OptimizerStep& how, std::size_t bucket, std::span<const float> gradients,
                     float gradient_scale) {
  const Range own = partition_.own[bucket];
  for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
    const Range both = intersection(own, elements_of(layout_.places()[i]));
    if (both.empty()) continue;
    const auto part_of = [&](auto of_share) { return of_share.subspan(both.begin - own.begin, both.size()); };
    const kernels::Parameters parameters = {
        .master = part_of(master(bucket)),
        .working = master_.defined() ? memory_.bytes().data() + both.begin * size_of(dtype_) : nullptr,
        .working_dtype = dtype_,
        .gradient = part_of(gradients),
        .gradient_scale = gradient_scale};
    std::visit(
        [&](auto step) {
          if (!layout_.specs()[i].decays) step.weight_decay = 0.0F;
          if constexpr (std::is_same_v<decltype(step), kernels::AdamW>) {
            kernels::adamw(step, parameters, part_of(share(moments_[0], bucket)),
                           part_of(share(moments_[1], bucket)));
          } else {
            kernels::sgd(step, parameters, part_of(share(moments_[0], bucket)));
          }
        },
        how);
  }
}

at::Tensor Weights::gather(const at::Tensor& shares) const {
  return gather_whole(holding_, [&](std::size_t bucket) {
    return shares.defined() ? share(shares, bucket) : master(bucket);
  });
}

at::Tensor Weights::gather_working() const {
  return gather_whole(holding_, working_);
}

at::Tensor Weights::gather_master() const {
  return gather(master_);
}

at::Tensor Weights::gather_moment(int index) const {
  return gather(moments_[static_cast<std::size_t>(index)]);
}

}  // namespace lockstep::train
