// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data {

// A corpus cut into samples of `length` inputs and as many targets: window i is the tokens
// [i * length, (i + 1) * length], both ends included, so neighbours share one token. Every token is a target
// once, but for the first and for fewer than `length` at the end, which no window covers. Documents stand one
// after another in a window, as packed by `lockstep prepare`.
class Windows {
 public:
  Windows(std::shared_ptr<const TokenSource> source,
          std::uint64_t length)  // shared with other lengths of window
      : source_(std::move(source)), length_(length) {
    LOCKSTEP_CHECK(length >= 1, "a window of no tokens");
  }

  std::uint64_t count() const { return source_->size() == 0 ? 0 : (source_->size() - 1) / length_; }

  // `tokens` has room for length + 1: its first `length` are the inputs, its last `length` the targets.
  void read(std::uint64_t index, std::span<Token> tokens) const {
    LOCKSTEP_CHECK(index < count() && tokens.size() == length_ + 1, "a window that does not fit");
    source_->copy(index * length_, tokens);
  }

 private:
  std::shared_ptr<const TokenSource> source_;
  std::uint64_t length_;
};

}  // namespace lockstep::data
