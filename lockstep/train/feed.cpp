// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/feed.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/corpus.h"

namespace lockstep::train {
namespace {

data::Windows windows_of(const spec::Corpus& corpus, const Feed::Options& options) {
  data::Windows windows(
      data::open_corpus(corpus.path, {.vocab_size = static_cast<std::uint64_t>(options.vocabulary)}),
      static_cast<std::uint64_t>(options.length));
  if (windows.count() == 0) {
    throw UsageError(
        fmt::format("{}: the corpus is shorter than one sequence of {} tokens; choose a smaller "
                    "training.seq_len or a larger corpus",
                    corpus.path, options.length));
  }
  return windows;
}

std::unique_ptr<data::Sampler> sampler_of(spec::Sharding sharding, const data::SamplerOptions& options) {
  switch (sharding) {
    case spec::Sharding::sample:
      return data::shard_by_sample(options);
    case spec::Sharding::batch:
      return data::shard_by_batch(options);
    case spec::Sharding::feature:
      break;
  }
  throw UsageError(
      "data.sharding = \"feature\" divides the columns of dense samples; text has none: use sample or batch");
}

}  // namespace

Feed::Feed(const Options& options) : rows_(options.shape.rows), length_(options.length) {
  if (options.corpora.empty()) {
    throw UsageError(
        "data.train is empty: name the corpus to train on, as `lockstep prepare` has written it");
  }
  data::SamplerOptions sampling;
  for (const spec::Corpus& corpus : options.corpora) {
    windows_.push_back(windows_of(corpus, options));
    sampling.parts.push_back({.samples = windows_.back().count(), .weight = corpus.weight});
  }
  sampling.seed = options.seed;
  sampling.shape = options.shape;
  sampler_ = sampler_of(options.sharding, sampling);
}

model::Batch Feed::batch(std::uint64_t position, int lane, int micro_batch) const {
  const at::Tensor window = at::empty({static_cast<std::int64_t>(rows_), length_ + 1}, at::kInt);
  static_assert(sizeof(data::Token) == sizeof(std::int32_t));
  auto* tokens = reinterpret_cast<data::Token*>(window.data_ptr<std::int32_t>());
  const auto width = static_cast<std::size_t>(length_) + 1;
  for (std::uint64_t row = 0; row < rows_; ++row) {
    const data::Piece piece = sampler_->at(position, {.lane = static_cast<std::uint64_t>(lane),
                                                      .micro_batch = static_cast<std::uint64_t>(micro_batch),
                                                      .row = row});
    windows_[piece.part].read(piece.sample, {tokens + row * width, width});
  }
  return {window.narrow(1, 0, length_).contiguous(), window.narrow(1, 1, length_).contiguous()};
}

}  // namespace lockstep::train
