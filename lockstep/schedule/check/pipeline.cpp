// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/pipeline.h"

#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "lockstep/schedule/pipeline/message.h"
#include "lockstep/schedule/pipeline/play.h"
#include "lockstep/schedule/pipeline/timeline.h"

namespace lockstep::schedule {
namespace {

using MaybeViolation = std::optional<PipelineViolation>;

const PipelineProgram& program_of(const Pipeline& pipeline, Rank rank) {
  return pipeline.programs[static_cast<std::size_t>(rank)];
}

// --- The frame of the programs.

std::optional<std::string> wrong_frame(const Pipeline& pipeline) {
  const auto& [placement, micro_batches, programs] = pipeline;
  const auto in_range = [](int value, int most) { return value >= 1 && value <= most; };
  if (!in_range(placement.stages, kMaxPipelineStages) || !in_range(micro_batches, kMaxMicroBatches) ||
      !in_range(placement.chunks, kMaxVirtualStages) ||
      std::int64_t{micro_batches} * placement.parts() > kMaxPipelinePasses) {
    return "the numbers of stages, chunks and micro-batches are not within their limits";
  }
  if (placement.shape == PlacementShape::v_shape && placement.chunks != 2)
    return "a V has two chunks per stage";
  if (programs.size() != static_cast<std::size_t>(placement.stages)) {
    return fmt::format("there are {} programs for {} stages", programs.size(), placement.stages);
  }
  return std::nullopt;
}

// --- The passes of one rank.

class RankChecker {
 public:
  RankChecker(const Pipeline& pipeline, Rank rank)
      : pipeline_(pipeline),
        rank_(rank),
        states_(static_cast<std::size_t>(pipeline.placement.chunks) *
                static_cast<std::size_t>(pipeline.micro_batches)),
        next_(static_cast<std::size_t>(pipeline.placement.chunks)) {}

  MaybeViolation run() {
    const PipelineProgram& program = program_of(pipeline_, rank_);
    for (std::size_t i = 0; i < program.size(); ++i) {
      if (auto reason = wrong_with(program[i])) return PipelineViolation{rank_, i, *std::move(reason)};
    }
    if (auto reason = missing()) return PipelineViolation{rank_, program.size(), *std::move(reason)};
    return std::nullopt;
  }

 private:
  enum class State : std::uint8_t { untouched, forwarded, input_made, done };
  // The micro-batches that are due on a chunk.
  struct Next {
    int forward = 0;
    int input = 0;
    int weight = 0;
  };

  std::optional<std::string> wrong_with(const PipelineEntry& entry) {
    if (entry.chunk < 0 || entry.chunk >= pipeline_.placement.chunks) {
      return fmt::format("there is no chunk {}", entry.chunk);
    }
    if (entry.micro_batch < 0 || entry.micro_batch >= pipeline_.micro_batches) {
      return fmt::format("there is no micro-batch {}", entry.micro_batch);
    }
    if (entry.pass > Pass::backward_weight) return "there is no such pass";
    if (auto reason = advance(entry)) return reason;
    return wrong_order(entry);
  }

  std::optional<std::string> advance(const PipelineEntry& entry) {
    State& state =
        states_[static_cast<std::size_t>(entry.chunk) * static_cast<std::size_t>(pipeline_.micro_batches) +
                static_cast<std::size_t>(entry.micro_batch)];
    if (entry.pass == Pass::forward) {
      if (state != State::untouched) return told(entry, "passes forward twice");
      state = State::forwarded;
    } else if (entry.pass == Pass::backward_weight) {
      if (state == State::done) return told(entry, "adds its weight gradient twice");
      if (state != State::input_made)
        return told(entry, "adds its weight gradient before its input gradient");
      state = State::done;
    } else {
      if (state == State::untouched) return told(entry, "passes backward before it passes forward");
      if (state != State::forwarded) return told(entry, "passes backward twice");
      state = entry.pass == Pass::backward ? State::done : State::input_made;
    }
    return std::nullopt;
  }

  std::optional<std::string> wrong_order(const PipelineEntry& entry) {
    Next& next = next_[static_cast<std::size_t>(entry.chunk)];
    const auto out_of_turn = [&](int& due, std::string_view what) -> std::optional<std::string> {
      if (entry.micro_batch == due++) return std::nullopt;
      return told(entry, fmt::format("{} when micro-batch {} is due", what, due - 1));
    };
    if (entry.pass == Pass::forward) return out_of_turn(next.forward, "passes forward");
    if (entry.makes_input_gradient()) {
      if (auto reason = out_of_turn(next.input, "makes its input gradient")) return reason;
    }
    return entry.adds_weight_gradient() ? out_of_turn(next.weight, "adds its weight gradient") : std::nullopt;
  }

  std::optional<std::string> missing() const {
    for (int chunk = 0; chunk < pipeline_.placement.chunks; ++chunk) {
      const int done = next_[static_cast<std::size_t>(chunk)].weight;
      if (done < pipeline_.micro_batches) {
        return fmt::format("micro-batch {} never adds its weight gradient on chunk {}", done, chunk);
      }
    }
    return std::nullopt;
  }

  static std::string told(const PipelineEntry& entry, std::string_view what) {
    return fmt::format("micro-batch {} {} on chunk {}", entry.micro_batch, what, entry.chunk);
  }

  const Pipeline& pipeline_;
  Rank rank_;
  std::vector<State> states_;  // by chunk and micro-batch
  std::vector<Next> next_;     // by chunk
};

// --- All ranks together.

std::string shown(const PipelineMessage& message) {
  return fmt::format("the {} of micro-batch {} for part {}",
                     message.payload == Payload::activation ? "activation" : "gradient", message.micro_batch,
                     message.to_part);
}

using Stream = std::tuple<Rank, Rank, Payload>;  // from, to
Stream stream_of(const PipelineMessage& message) {
  return {message.from, message.to, message.payload};
}

std::map<Stream, std::vector<PipelineMessage>> sent_messages(const Pipeline& pipeline) {
  std::map<Stream, std::vector<PipelineMessage>> sent;
  for (Rank rank = 0; rank < pipeline.placement.stages; ++rank) {
    for (const PipelineEntry& entry : program_of(pipeline, rank)) {
      const auto message = output_of(pipeline.placement, rank, entry);
      if (message && message->to != rank) sent[stream_of(*message)].push_back(*message);
    }
  }
  return sent;
}

MaybeViolation first_mismatch(const Pipeline& pipeline) {
  const auto sent = sent_messages(pipeline);
  std::map<Stream, std::size_t> received;
  for (Rank rank = 0; rank < pipeline.placement.stages; ++rank) {
    const PipelineProgram& program = program_of(pipeline, rank);
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto message = input_of(pipeline.placement, rank, program[i]);
      if (!message || message->from == rank) continue;
      // The passes are complete, so everything that is received is also sent.
      const PipelineMessage& next = sent.at(stream_of(*message))[received[stream_of(*message)]++];
      if (next == *message) continue;
      return PipelineViolation{rank, i,
                               fmt::format("needs {} from rank {}, which sends {} before it", shown(*message),
                                           message->from, shown(next))};
    }
  }
  return std::nullopt;
}

MaybeViolation first_stuck(const Pipeline& pipeline) {
  const Played played = play(pipeline);
  for (Rank rank = 0; rank < pipeline.placement.stages; ++rank) {
    const PipelineProgram& program = program_of(pipeline, rank);
    const std::size_t reached = played.reached[static_cast<std::size_t>(rank)];
    if (reached == program.size()) continue;
    // Only an input can stop a rank.
    const PipelineMessage message = *input_of(pipeline.placement, rank, program[reached]);
    const std::size_t other = played.reached[static_cast<std::size_t>(message.from)];
    return PipelineViolation{
        rank, reached,
        fmt::format("deadlock: waits for {} from rank {}, which itself waits before {}", shown(message),
                    message.from, to_string(program_of(pipeline, message.from)[other]))};
  }
  return std::nullopt;
}

MaybeViolation first_violation(const Pipeline& pipeline) {
  if (auto reason = wrong_frame(pipeline)) return PipelineViolation{0, 0, *std::move(reason)};
  for (Rank rank = 0; rank < pipeline.placement.stages; ++rank) {
    if (auto violation = RankChecker(pipeline, rank).run()) return violation;
  }
  if (auto violation = first_mismatch(pipeline)) return violation;
  return first_stuck(pipeline);
}

}  // namespace

std::string to_string(const PipelineViolation& violation, const Pipeline& pipeline) {
  const auto rank = static_cast<std::size_t>(violation.rank);
  if (rank >= pipeline.programs.size() || violation.entry >= pipeline.programs[rank].size()) {
    return fmt::format("stage {}, at the end: {}", violation.rank, violation.reason);
  }
  return fmt::format("stage {}, pass {} ({}): {}", violation.rank, violation.entry + 1,
                     to_string(pipeline.programs[rank][violation.entry]), violation.reason);
}

PipelineCheck check_pipeline(const Pipeline& pipeline) {
  if (auto violation = first_violation(pipeline)) return {.violation = std::move(violation), .peak_live = {}};
  PipelineCheck check;
  for (const PipelineProgram& program : pipeline.programs) {
    check.peak_live.push_back(peak_live_activations(program));
  }
  return check;
}

}  // namespace lockstep::schedule
