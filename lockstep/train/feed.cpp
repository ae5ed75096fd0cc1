// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/feed.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/train/batches.h"

namespace lockstep::train {
namespace {

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

Feed::Feed(const Options& options) : seed_(options.seed), rows_(options.shape.rows), length_(options.length) {
  if (options.corpora.empty()) {
    throw UsageError(
        "data.train is empty: name the corpus to train on, as `lockstep prepare` has written it");
  }
  data::SamplerOptions sampling;
  for (const spec::Corpus& corpus : options.corpora) {
    windows_.push_back(open_windows(corpus.path, options.vocabulary, options.length));
    sampling.parts.push_back({.samples = windows_.back().count(), .weight = corpus.weight});
  }
  sampling.seed = options.seed;
  sampling.shape = options.shape;
  sampler_ = sampler_of(options.sharding, sampling);
}

model::Batch Feed::batch(std::uint64_t position, int lane, int micro_batch) const {
  nn::Samples samples = {.seed = seed_};
  model::Batch batch = make_batch(rows_, length_, [&](std::uint64_t row, std::span<data::Token> tokens) {
    const data::Piece piece = sampler_->at(position, {.lane = static_cast<std::uint64_t>(lane),
                                                      .micro_batch = static_cast<std::uint64_t>(micro_batch),
                                                      .row = row});
    windows_[piece.part].read(piece.sample, tokens);
    samples.numbers.push_back(piece.number);
  });
  batch.samples = std::move(samples);
  return batch;
}

}  // namespace lockstep::train
