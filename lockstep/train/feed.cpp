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
      return data::shard_by_feature(options);
  }
  LOCKSTEP_CHECK(false);
  return nullptr;
}

}  // namespace

Feed::Feed(const Options& options) : seed_(options.seed), rows_(options.shape.rows), length_(options.length) {
  if (options.corpora.empty()) {
    throw UsageError(
        "data.train is empty: name the corpus to train on, as `lockstep prepare` has written it, or the "
        "NumPy "
        "file of an mlp");
  }
  data::SamplerOptions sampling;
  for (const spec::Corpus& corpus : options.corpora) {
    sampling.parts.push_back(open(corpus, options));
  }
  sampling.seed = options.seed;
  sampling.shape = options.shape;
  sampling.features = static_cast<std::size_t>(options.length);
  sampler_ = sampler_of(options.sharding, sampling);
}

data::MixturePart Feed::open(const spec::Corpus& corpus, const Options& options) {
  if (options.dense) {
    dense_.push_back(open_dense(corpus.path, options.vocabulary, options.length));
    return {.samples = dense_.back().count(), .weight = corpus.weight};
  }
  windows_.push_back(open_windows(corpus.path, options.vocabulary, options.length));
  return {.samples = windows_.back().count(), .weight = corpus.weight};
}

model::Batch Feed::batch(std::uint64_t position, int lane, int micro_batch) const {
  nn::Samples samples = {.seed = seed_};
  const auto piece_of = [&](std::uint64_t row) {
    const data::Piece piece = sampler_->at(position, {.lane = static_cast<std::uint64_t>(lane),
                                                      .micro_batch = static_cast<std::uint64_t>(micro_batch),
                                                      .row = row});
    samples.numbers.push_back(piece.number);
    return piece;
  };
  model::Batch batch;
  if (dense_.empty()) {
    batch = make_batch(rows_, length_, [&](std::uint64_t row, std::span<data::Token> tokens) {
      const data::Piece piece = piece_of(row);
      windows_[piece.part].read(piece.sample, tokens);
    });
  } else {
    batch = make_dense_batch(rows_, length_, [&](std::uint64_t row, std::span<float> features) {
      const data::Piece piece = piece_of(row);
      return dense_[piece.part].read(piece.sample, piece.features, features);
    });
  }
  batch.samples = std::move(samples);
  return batch;
}

}  // namespace lockstep::train
