// SPDX-License-Identifier: Apache-2.0
//
// What workers of one generation send each other while they train.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/checkpoint/store/save_round.h"
#include "lockstep/elastic/message.h"

#include "tests/elastic/simulation/toy_model.h"

namespace lockstep::elastic::simulation {

struct DataMessage {
  // offer: what a rank has kept (`pieces`, `cells`) of `step`. candidate: the checkpoint of `step` is tried
  // next, the `round`-th; kNoStep: there is none to try. tried: whether it is good (`value`). ready: it has
  // what it needs. sum: of its lanes for `step` (`value`), and what it has to tell of the checkpoint under
  // way. tidings: only that, in the `round`-th exchange.
  enum class Kind : std::uint64_t { offer, candidate, tried, ready, sum, tidings };
  Kind kind = Kind::offer;
  Generation generation = 0;
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t round = 0;
  std::uint64_t value = 0;
  checkpoint::SaveTidings tidings = {};
  std::vector<Range> pieces = {};
  Cells cells = {};
};

std::vector<std::byte> to_bytes(const DataMessage& message);
DataMessage data_message(const std::vector<std::byte>& bytes);

}  // namespace lockstep::elastic::simulation
