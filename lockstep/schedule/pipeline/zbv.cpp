// SPDX-License-Identifier: Apache-2.0
//
// Qi, Wan, Amar, Lin, "Pipeline Parallelism with Controllable Memory" (2024). Chunk 0 is on the first arm of
// the V, chunk 1 on the second, which ends where the first began: rank 0 has the loss, and gradients start
// back without a way through all stages.
#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/schedule/pipeline/generators.h"

namespace lockstep::schedule {
namespace {

// Appends the next micro-batch of a kind and chunk, unless it does not exist.
class Writer {
 public:
  explicit Writer(int micro_batches) : micro_batches_(micro_batches) {}

  void forward(int chunk) { add(Pass::forward, chunk, forward_); }
  void input(int chunk) { add(Pass::backward_input, chunk, input_); }
  void weight(int chunk) { add(Pass::backward_weight, chunk, weight_); }
  void both(int chunk) {
    input(chunk);
    weight(chunk);
  }
  // All weight gradients of the chunk whose input gradients are there.
  void remaining_weights(int chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    while (weight_[c] < input_[c]) weight(chunk);
  }

  PipelineProgram take() { return std::move(program_); }

 private:
  using ByChunk = std::array<int, 2>;

  void add(Pass pass, int chunk, ByChunk& next) {
    const int micro_batch = next[static_cast<std::size_t>(chunk)]++;
    if (micro_batch < micro_batches_) program_.push_back({pass, micro_batch, chunk});
  }

  int micro_batches_;
  PipelineProgram program_;
  ByChunk forward_{}, input_{}, weight_{};
};

}  // namespace

// Written for at least 2p - 1 micro-batches, which fill the V; those that do not exist are left out, as in
// interleaved.cpp.
PipelineProgram zbv_program(const PipelineSpec& spec, Rank rank) {
  const int stages = spec.stages;
  const int micro_batches = std::max(spec.micro_batches, 2 * stages - 1);
  const int from_end = stages - rank;  // stages from this one to the tip of the V, itself included
  Writer write(spec.micro_batches);

  // The first micro-batch goes down to the tip and comes back up.
  for (int i = 0; i < 2 * from_end - 1; ++i) write.forward(0);
  // It goes on to rank 0, where the loss is, and its gradient starts back.
  for (int i = 0; i < rank; ++i) {
    write.forward(1);
    write.forward(0);
  }
  // Gradients go down to the tip and come back up.
  for (int i = 0; i < from_end; ++i) {
    write.forward(1);
    write.both(1);
  }
  // Steady: one micro-batch in for one out, on both arms.
  int left_in = micro_batches - (2 * stages - 1 - rank);
  for (int i = 0; i < micro_batches - stages; ++i) {
    if (left_in-- > 0) write.forward(0);
    write.both(0);
    write.forward(1);
    write.both(1);
  }
  // Other stages wait for input gradients only: these first, and weight gradients in the gaps and at the end.
  for (int i = 0; i < rank; ++i) {
    write.input(0);
    write.input(1);
  }
  for (int i = 0; i < from_end; ++i) write.both(0);
  write.remaining_weights(1);
  write.remaining_weights(0);
  return write.take();
}

}  // namespace lockstep::schedule
