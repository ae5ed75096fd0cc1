// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/lanes.h"

#include <algorithm>

namespace lockstep::nn {
namespace {

// From here on a product loses little by being cut (docs/algorithms.md, "Tensor lanes").
constexpr std::int64_t kPieceTokens = 256;
// More pieces would hide no more, and each is a message.
constexpr std::int64_t kMaxPieces = 8;

}  // namespace

LaneRun lane_run(std::int64_t total, int lanes, int lane) {
  const std::int64_t full = (total + lanes - 1) / lanes;
  const std::int64_t begin = std::min(total, lane * full);
  return {begin, std::min(total - begin, full)};
}

std::vector<LanePiece> lane_pieces(std::int64_t tokens, int lanes) {
  const std::int64_t run = lane_run(tokens, lanes, 0).count;
  if (lanes == 1 || run < kPieceTokens) return {{.tokens = {0, tokens}}};
  const std::int64_t most = std::max<std::int64_t>(1, kMaxPieces / lanes);
  const int parts = static_cast<int>(std::min(most, run / kPieceTokens));
  std::vector<LanePiece> pieces;
  for (int part = 0; part < parts; ++part) {
    for (int lane = 0; lane < lanes; ++lane) {
      const LaneRun whole = lane_run(tokens, lanes, lane);
      const LaneRun piece = lane_run(whole.count, parts, part);
      if (piece.count > 0) pieces.push_back({{whole.first + piece.first, piece.count}, lane});
    }
  }
  return pieces;
}

std::int64_t Lanes::run() const {
  return several() ? lane_run(tokens, team->share().lanes, 0).count : tokens;
}

LaneRun Lanes::held() const {
  if (!divide_tokens()) return {0, tokens};
  const LaneShare share = team->share();
  const LaneRun first = lane_run(tokens, share.lanes, share.first);
  const LaneRun last = lane_run(tokens, share.lanes, share.first + share.count - 1);
  return {first.first, last.first + last.count - first.first};
}

LaneRun Lanes::run_here(int index) const {
  if (!several()) return {0, tokens};
  const LaneRun run = run_of(tokens, index);
  return {run.first - held().first, run.count};
}

LaneRun Lanes::run_of(std::int64_t total, int index) const {
  return several() ? lane_run(total, team->share().lanes, team->share().first + index) : LaneRun{0, total};
}

}  // namespace lockstep::nn
