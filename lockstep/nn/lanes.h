// SPDX-License-Identifier: Apache-2.0
//
// Tensor lanes (docs/algorithms.md, "Tensor lanes"): the fixed pieces in which layers are computed. What
// stands between the first and the last linear function of a branch is computed lane by lane, and the lanes
// are summed in one tree, so that bits do not depend on who computes which lane. Everything in this folder
// that takes `Lanes` computes as if there were none when there is one lane.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// Which lanes are computed here.
struct LaneShare {
  int lanes = 1;  // of all members together, a power of two
  int first = 0;  // of those here, a multiple of `count`
  int count = 1;  // of those here, a power of two and the same for every member
  // Sequence parallelism: between branches a member holds the tokens of its lanes' runs only.
  bool divides_tokens = false;
};

// A sum of several members under way, which needs the memory of its tensor until it has ended. Destroying one
// that was not waited for, as an exception does, ends it and makes the team unusable for all members.
class LaneSum {
 public:
  LaneSum() = default;
  LaneSum(const LaneSum&) = delete;
  LaneSum& operator=(const LaneSum&) = delete;
  virtual ~LaneSum() = default;

  // Returns when it has ended; raises what it failed with.
  virtual void wait() = 0;
};

// The members that compute the lanes of a layer together, each `count` of them. Every member calls the same
// functions in the same order. All work in place on contiguous tensors; where rows are divided, every member
// has an equal number of the first dimension. What is started makes progress while its caller computes; the
// next call may come before it has ended. Errors are those of communication.
class LaneTeam {
 public:
  virtual ~LaneTeam() = default;

  virtual LaneShare share() const = 0;

  // Sums go on in the lane tree: (m0 + m1) + (m2 + m3), each node rounded to the dtype.
  virtual void all_reduce(const at::Tensor& values) const = 0;
  virtual void reduce_scatter(const at::Tensor& rows) const = 0;  // this member's rows are summed
  virtual void all_gather(const at::Tensor& rows) const = 0;      // of which this member's are filled in

  virtual std::unique_ptr<LaneSum> start_all_reduce(const at::Tensor& values) const = 0;
  virtual std::unique_ptr<LaneSum> start_reduce_scatter(const at::Tensor& rows) const = 0;
  // The sum is for the member that computes the lane; the others' values are undefined afterwards.
  virtual std::unique_ptr<LaneSum> start_reduce(const at::Tensor& values, int lane) const = 0;
};

// What a lane has of something that is laid end to end: tokens, or the rows of a vocabulary.
struct LaneRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
// Lanes have equal runs but for the last ones, which may be shorter or empty.
LaneRun lane_run(std::int64_t total, int lanes, int lane);

// Tokens that the last linear function of a branch is computed for at a time: while the product of the next
// piece is computed, the sum of this one over the members is under way.
struct LanePiece {
  LaneRun tokens;
  int lane = 0;  // in whose run they are
};
// All tokens, in the order in which they are computed: neighbours are in the runs of different lanes, so that
// members that divide the tokens take turns in summing. One piece, of all runs, when runs are so short that
// products would suffer. Shapes of products decide about bits: they follow from the arguments alone, and
// nobody asks who computes which lane.
std::vector<LanePiece> lane_pieces(std::int64_t tokens, int lanes);

// The lanes as one micro-batch sees them. Its tokens, sequence after sequence, are cut into a run for each
// lane.
struct Lanes {
  const LaneTeam* team = nullptr;  // null: one lane. Outlives what is recorded
  std::int64_t tokens = 0;         // of the micro-batch

  bool several() const { return team != nullptr && team->share().lanes > 1; }
  bool divide_tokens() const { return several() && team->share().divides_tokens; }
  int here() const { return several() ? team->share().count : 1; }

  std::int64_t run() const;  // tokens of a full run
  LaneRun held() const;      // between branches: all of them, or those of the runs of the lanes here
  // The run of the `index`-th lane here, counted from the first token that is held. Gradients of parameters
  // that all lanes share are sums over these runs, one for each lane here.
  LaneRun run_here(int index) const;
  // What the `index`-th lane here has of something else.
  LaneRun run_of(std::int64_t total, int index) const;
};

}  // namespace lockstep::nn
