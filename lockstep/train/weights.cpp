// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/weights.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <ATen/ops/zeros.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/kernels/compute/update/split.h"
#include "lockstep/model/initial_values.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/train/shares.h"

namespace lockstep::train {
namespace {

// First values are made piece by piece: a whole embedding in fp32 would be the largest thing in memory.
constexpr std::size_t kPiece = std::size_t{1} << 18;

// Of the group of data-parallel ranks: sums of gradients have the first one.
constexpr std::uint32_t kWeightStream = 1;

}  // namespace

Weights::Weights(const Holding& holding, BufferPool& pool, DType dtype, std::uint64_t seed, int moments)
    : holding_(holding),
      layout_(holding.layout),
      partition_(holding.partition),
      dtype_(dtype),
      working_(holding, nn::scalar_type_of(dtype), holding.shards_weights, pool),
      fetched_(partition_.buckets.size()) {
  std::size_t shares = 0;
  for (const Range& own : partition_.own) {
    share_begins_.push_back(shares);
    shares += own.size();
  }
  const auto elements = static_cast<std::int64_t>(shares);
  if (holding.shards_weights) working_shares_ = at::zeros({elements}, nn::scalar_type_of(dtype));
  if (dtype == DType::bf16) lower_ = at::zeros({elements}, at::kShort);
  if (dtype == DType::fp16) master_ = at::zeros({elements}, at::kFloat);
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
    if (partition_.shards_update && !holding_.shards_weights) gather(bucket).wait();
  }
}

std::span<float> Weights::share(const at::Tensor& shares, std::size_t bucket) const {
  return nn::floats_of(shares).subspan(share_begins_[bucket], partition_.own[bucket].size());
}

Bytes Weights::own_working(std::size_t bucket) const {
  if (!working_shares_.defined()) return working_.bytes(partition_.own[bucket]);
  const std::size_t size = size_of(dtype_);
  return {static_cast<std::byte*>(working_shares_.data_ptr()) + share_begins_[bucket] * size,
          partition_.own[bucket].size() * size};
}

std::span<std::uint16_t> Weights::lower(std::size_t bucket) const {
  return {reinterpret_cast<std::uint16_t*>(lower_.data_ptr<std::int16_t>()) + share_begins_[bucket],
          partition_.own[bucket].size()};
}

std::span<float> Weights::master(std::size_t bucket, std::vector<float>& memory) const {
  if (master_.defined()) return share(master_, bucket);
  const Bytes own = own_working(bucket);
  if (!lower_.defined()) return {reinterpret_cast<float*>(own.data()), own.size() / sizeof(float)};
  memory.resize(partition_.own[bucket].size());
  kernels::join({reinterpret_cast<const std::uint16_t*>(own.data()), memory.size()}, lower(bucket), memory);
  return memory;
}

void Weights::assign(std::size_t parameter, std::size_t first, std::span<const float> values) {
  const std::size_t begin = elements_of(layout_.places()[parameter]).begin + first;
  const Range all = {begin, begin + values.size()};
  const std::size_t size = size_of(dtype_);
  const bool is_borrowed = !layout_.owned().contains(all);
  if (is_borrowed || !holding_.shards_weights) write_working(values, working_.bytes(all));
  for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
    const Range own = partition_.own[bucket];
    const Range both = intersection(own, all);
    if (both.empty()) continue;
    const std::span<const float> mine = values.subspan(both.begin - begin, both.size());
    const std::size_t offset = both.begin - own.begin;
    write_working(mine, own_working(bucket).subspan(offset * size, both.size() * size));
    if (master_.defined()) std::ranges::copy(mine, share(master_, bucket).subspan(offset).begin());
    if (!lower_.defined()) continue;
    const std::span<std::uint16_t> lowers = lower(bucket).subspan(offset, both.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      lowers[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(mine[i]));
    }
  }
}

// Of bf16, rounded as split() rounds.
void Weights::write_working(std::span<const float> values, Bytes where) const {
  if (!lower_.defined()) return kernels::from_floats(values, where.data(), dtype_);
  std::vector<std::uint16_t> unused(values.size());
  kernels::split(values, {reinterpret_cast<std::uint16_t*>(where.data()), values.size()}, unused);
}

void Weights::update(const OptimizerStep& how, std::size_t bucket, std::span<const float> gradients,
                     float gradient_scale) {
  const Range own = partition_.own[bucket];
  for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
    const Range both = intersection(own, elements_of(layout_.places()[i]));
    if (both.empty()) continue;
    const auto part_of = [&](auto of_share) { return of_share.subspan(both.begin - own.begin, both.size()); };
    const Bytes working = own_working(bucket).subspan((both.begin - own.begin) * size_of(dtype_));
    kernels::Parameters parameters = {
        .working_dtype = dtype_, .gradient = part_of(gradients), .gradient_scale = gradient_scale};
    if (dtype_ == DType::fp32) {
      parameters.master = {reinterpret_cast<float*>(working.data()), both.size()};
    } else {
      parameters.working = working.data();
    }
    if (master_.defined()) parameters.master = part_of(share(master_, bucket));
    if (lower_.defined()) parameters.lower = part_of(lower(bucket));
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

comm::Work Weights::gather(std::size_t bucket) const {
  return holding_.groups.data.all_gather_async(working_.bytes(partition_.buckets[bucket].elements),
                                               {.dtype = dtype_});
}

void Weights::fetch(std::size_t bucket) {
  working_.acquire(bucket);
  const Bytes own = own_working(bucket);
  std::memcpy(working_.bytes(partition_.own[bucket]).data(), own.data(), own.size());
  fetched_[bucket] = holding_.groups.data.all_gather_async(
      working_.bytes(partition_.buckets[bucket].elements), {.dtype = dtype_, .stream = kWeightStream});
}

void Weights::use(std::size_t bucket) {
  fetched_[bucket].wait();
  holding_.groups.data.forget_peer_memory();
}

void Weights::drop(std::size_t bucket) {
  working_.release(bucket);
}

at::Tensor Weights::gather_working(bool wanted) const {
  return gather_whole(
      holding_, dtype_, [&](std::size_t bucket) { return own_working(bucket); }, wanted);
}

at::Tensor Weights::gather_master() const {
  std::vector<float> memory;
  return gather_whole(holding_, DType::fp32,
                      [&](std::size_t bucket) { return std::as_bytes(master(bucket, memory)); });
}

at::Tensor Weights::gather_moment(int index) const {
  return gather_whole(holding_, DType::fp32, [&](std::size_t bucket) {
    return std::as_bytes(share(moments_[static_cast<std::size_t>(index)], bucket));
  });
}

}  // namespace lockstep::train
