// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/weights.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/kernels/compute/update/split.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/train/shares.h"
#include "lockstep/train/working_values.h"

namespace lockstep::train {
namespace {

// First values are made piece by piece: a whole embedding in fp32 would be the largest thing in memory.
constexpr std::size_t kPiece = std::size_t{1} << 18;

// Of the group of ranks that share: sums of gradients have the first one.
constexpr std::uint32_t kWeightStream = 1;

}  // namespace

Weights::Weights(const Holding& holding, BufferPool& pool, const Options& options)
    : holding_(holding),
      layout_(holding.layout),
      partition_(holding.partition),
      dtype_(options.dtype),
      moments_(options.moments),
      working_(holding, nn::scalar_type_of(dtype_), holding.shards_weights, pool),
      state_(std::make_unique<OptimizerState>(
          partition_, OptimizerState::Options{.dtype = dtype_,
                                              .moments = options.moments,
                                              .folder = options.offload_folder,
                                              .registered = options.has_journal ? &pool : nullptr})),
      fetched_(partition_.buckets.size()) {
  std::size_t shares = 0;
  for (const Range& own : partition_.own) {
    share_begins_.push_back(shares);
    shares += own.size();
  }
  if (holding.shards_weights) {
    working_shares_ = pool.take(shares * size_of(dtype_));
    std::ranges::fill(working_shares_->bytes(), std::byte{0});
  }
  if (options.has_journal) {
    std::vector<std::size_t> elements;
    for (const Range& own : partition_.own) elements.push_back(own.size());
    const JournalShape shape(elements, array_widths(), JournalShape::chunk_for(kernels::threads()));
    journal_ = std::make_unique<UpdateJournal>(shape, pool.take(shape.bytes()));
  }
}

Weights::~Weights() {
  for (comm::Work& work : fetched_) work.cancel();
}

void Weights::give_first_values(std::uint64_t seed) {
  // `take` gets elements of the layout with their values, piece by piece, on any thread.
  const auto make = [&](Range elements, const std::function<void(Range, std::span<const float>)>& take) {
    for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
      const Range place = elements_of(layout_.places()[i]);
      const Range both = intersection(elements, place);
      if (both.empty()) continue;
      const parallel::LaneShard shard = holding_.shard(i);
      kernels::parallel_for((both.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
        const std::size_t begin = both.begin + piece * kPiece;
        std::vector<float> values(std::min(kPiece, both.end - begin));
        parallel::initial_part(holding_.whole_of(i), shard, seed, begin - place.begin, values);
        take({begin, begin + values.size()}, values);
      });
    }
  };
  make({0, layout_.owned().begin}, [&](Range elements, std::span<const float> values) {
    write_working(values, dtype_, working_.bytes(elements));
  });
  for (std::size_t bucket = 0; bucket < partition_.buckets.size(); ++bucket) {
    const OpenState state(*state_, bucket);
    make(partition_.own[bucket], [&](Range elements, std::span<const float> values) {
      assign_share(bucket, state.part(), elements, values);
    });
    if (partition_.shards_update && !holding_.shards_weights) gather(bucket).wait();
  }
}

Bytes Weights::own_working(std::size_t bucket) const {
  if (!working_shares_) return working_.bytes(partition_.own[bucket]);
  const std::size_t size = size_of(dtype_);
  return working_shares_->bytes().subspan(share_begins_[bucket] * size, partition_.own[bucket].size() * size);
}

void Weights::copy_master(std::size_t bucket, Range elements, std::span<float> to) const {
  const ConstBytes own = own_working(bucket).subspan(elements.begin * size_of(dtype_));
  if (dtype_ == DType::fp32) {
    std::memcpy(to.data(), own.data(), to.size_bytes());
    return;
  }
  const OpenState open(*state_, bucket);
  const StatePart& state = open.part();
  if (!state.master.empty()) {
    std::ranges::copy(state.master.subspan(elements.begin, elements.size()), to.begin());
  } else {
    kernels::join({reinterpret_cast<const std::uint16_t*>(own.data()), to.size()},
                  state.lower.subspan(elements.begin, elements.size()), to);
  }
}

void Weights::copy_moment(int index, std::size_t bucket, Range elements, std::span<float> to) const {
  const OpenState open(*state_, bucket);
  const std::span<const float> all = open.part().moments[static_cast<std::size_t>(index)];
  std::ranges::copy(all.subspan(elements.begin, elements.size()), to.begin());
}

void Weights::copy_quantity(int quantity, std::size_t bucket, Range elements, std::span<float> to) const {
  if (quantity == 0) return copy_master(bucket, elements, to);
  copy_moment(quantity - 1, bucket, elements, to);
}

void Weights::assign(std::size_t parameter, std::size_t first, std::span<const float> values) {
  const std::size_t begin = elements_of(layout_.places()[parameter]).begin + first;
  const Range all = {begin, begin + values.size()};
  const bool is_borrowed = !layout_.owned().contains(all);
  if (is_borrowed || !holding_.shards_weights) write_working(values, dtype_, working_.bytes(all));
  for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
    const Range both = intersection(partition_.own[bucket], all);
    if (both.empty()) continue;
    const OpenState state(*state_, bucket);
    assign_share(bucket, state.part(), both, values.subspan(both.begin - begin, both.size()));
  }
}

void Weights::assign_moment(int index, std::size_t parameter, std::size_t first,
                            std::span<const float> values) {
  const std::size_t begin = elements_of(layout_.places()[parameter]).begin + first;
  for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
    const Range own = partition_.own[bucket];
    const Range both = intersection(own, {begin, begin + values.size()});
    if (both.empty()) continue;
    const OpenState open(*state_, bucket);
    std::ranges::copy(
        values.subspan(both.begin - begin, both.size()),
        open.part().moments[static_cast<std::size_t>(index)].subspan(both.begin - own.begin).begin());
  }
}

void Weights::assign_share(std::size_t bucket, const StatePart& state, Range elements,
                           std::span<const float> values) const {
  const std::size_t offset = elements.begin - partition_.own[bucket].begin;
  const std::size_t size = size_of(dtype_);
  write_working(values, dtype_, own_working(bucket).subspan(offset * size, elements.size() * size));
  if (!state.master.empty()) std::ranges::copy(values, state.master.subspan(offset).begin());
  if (state.lower.empty()) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    state.lower[offset + i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]));
  }
}

void Weights::update(const OptimizerStep& how, std::size_t bucket, std::span<const float> gradients,
                     float gradient_scale) {
  const OpenState open(*state_, bucket);
  const StatePart& state = open.part();
  const Bytes working = own_working(bucket);
  ShareState share = {.master = state.master,
                      .working = working.data(),
                      .working_dtype = dtype_,
                      .lower = state.lower,
                      .moments = state.moments};
  if (dtype_ == DType::fp32) {
    share.working = nullptr;
    share.master = {reinterpret_cast<float*>(working.data()), partition_.own[bucket].size()};
  }
  const Range own = partition_.own[bucket];
  if (journal_ == nullptr) {
    update_share(how, layout_, own, share, gradients, gradient_scale);
  } else {
    journal_->update(bucket, arrays_of(bucket, state), [&](Range part) {
      update_share(how, layout_, {own.begin + part.begin, own.begin + part.end}, part_of(share, part),
                   gradients.subspan(part.begin, part.size()), gradient_scale);
    });
  }
  LOCKSTEP_FAILPOINT_VALUES("train.update", std::as_writable_bytes(state.moments.front()));
}

std::vector<std::size_t> Weights::array_widths() const {
  std::vector<std::size_t> widths = {size_of(dtype_)};
  if (dtype_ == DType::bf16) widths.push_back(sizeof(std::uint16_t));
  if (dtype_ == DType::fp16) widths.push_back(sizeof(float));
  widths.insert(widths.end(), static_cast<std::size_t>(moments_), sizeof(float));
  return widths;
}

ShareArrays Weights::arrays_of(std::size_t bucket, const StatePart& state) const {
  ShareArrays arrays = {own_working(bucket)};
  if (dtype_ == DType::bf16) arrays.push_back(std::as_writable_bytes(state.lower));
  if (dtype_ == DType::fp16) arrays.push_back(std::as_writable_bytes(state.master));
  for (const std::span<float> moment : state.moments) arrays.push_back(std::as_writable_bytes(moment));
  return arrays;
}

ShareArrays Weights::arrays(std::size_t bucket) const {
  return arrays_of(bucket, OpenState(*state_, bucket).part());
}

void Weights::begin_journal() const {
  std::vector<ShareArrays> buckets;
  for (std::size_t bucket = 0; bucket < partition_.buckets.size(); ++bucket)
    buckets.push_back(arrays(bucket));
  journal_->begin(buckets);
}

bool Weights::are_intact(elastic::Activity* activity) const {
  if (journal_ == nullptr) return true;
  for (std::size_t bucket = 0; bucket < partition_.buckets.size(); ++bucket) {
    const ShareArrays here = arrays(bucket);
    if (!journal_->is_intact(bucket, {here.begin(), here.end()})) return false;
    if (activity != nullptr) activity->get_on();
  }
  return true;
}

comm::Work Weights::gather(std::size_t bucket) const {
  return holding_.groups.sharing.all_gather_async(working_.bytes(partition_.buckets[bucket].elements),
                                                  {.dtype = dtype_});
}

void Weights::fetch(std::size_t bucket) {
  working_.acquire(bucket);
  const Bytes own = own_working(bucket);
  std::memcpy(working_.bytes(partition_.own[bucket]).data(), own.data(), own.size());
  fetched_[bucket] = holding_.groups.sharing.all_gather_async(
      working_.bytes(partition_.buckets[bucket].elements), {.dtype = dtype_, .stream = kWeightStream});
}

void Weights::use(std::size_t bucket) {
  fetched_[bucket].wait();
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
  return gather_whole(holding_, DType::fp32, [&](std::size_t bucket) {
    memory.resize(partition_.own[bucket].size());
    copy_master(bucket, {0, memory.size()}, memory);
    return ConstBytes(std::as_bytes(std::span(memory)));
  });
}

}  // namespace lockstep::train
