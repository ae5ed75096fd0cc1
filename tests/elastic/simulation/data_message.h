// SPDX-License-Identifier: Apache-2.0
//
// What workers of one generation send each other while they train.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/elastic/message.h"

#include "tests/elastic/simulation/toy_model.h"

namespace lockstep::elastic::simulation {

struct DataMessage {
  // offer: what a rank holds of the decided step, and the newest checkpoint that it knows (`step`).
  // ready: it has all offers. sum: of its lanes (`value`). saved: its part of a checkpoint. committed: all.
  enum class Kind : std::uint64_t { offer, ready, sum, saved, committed };
  Kind kind = Kind::offer;
  Generation generation = 0;
  int rank = 0;
  std::int64_t step = 0;
  std::uint64_t value = 0;
  Cells cells = {};
};

std::vector<std::byte> to_bytes(const DataMessage& message);
DataMessage data_message(const std::vector<std::byte>& bytes);

}  // namespace lockstep::elastic::simulation
