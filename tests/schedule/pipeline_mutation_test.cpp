// SPDX-License-Identifier: Apache-2.0
//
// Pipelines with one mistake, and what the checker says about them.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/pipeline/message.h"

#include "tests/schedule/pipelines.h"

namespace lockstep::schedule {
namespace {

constexpr PipelineSizes kSmall = {4, 5, 3};

// Calls `body` with the rank and the number of every entry.
template <typename Body>
void for_each_entry(const Pipeline& pipeline, Body&& body) {
  for (std::size_t rank = 0; rank < pipeline.programs.size(); ++rank) {
    for (std::size_t i = 0; i < pipeline.programs[rank].size(); ++i) body(rank, i);
  }
}

void expect_refused(const Pipeline& mutant, const PipelineSpec& spec) {
  ASSERT_TRUE(check_pipeline(mutant).violation) << shown(spec) << "\n" << shown(mutant);
}

TEST(PipelineMutation, ADroppedEntryIsMissed) {
  for_each_pipeline(kSmall, [](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    for_each_entry(pipeline, [&](std::size_t rank, std::size_t i) {
      Pipeline mutant = pipeline;
      mutant.programs[rank].erase(mutant.programs[rank].begin() + static_cast<std::ptrdiff_t>(i));
      expect_refused(mutant, spec);
    });
  });
}

TEST(PipelineMutation, ARepeatedEntryIsRefusedWhereItIs) {
  for_each_pipeline(kSmall, [](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    for_each_entry(pipeline, [&](std::size_t rank, std::size_t i) {
      Pipeline mutant = pipeline;
      PipelineProgram& program = mutant.programs[rank];
      program.insert(program.begin() + static_cast<std::ptrdiff_t>(i), program[i]);
      const auto violation = check_pipeline(mutant).violation;
      ASSERT_TRUE(violation) << shown(mutant);
      ASSERT_EQ(violation->rank, static_cast<Rank>(rank)) << shown(mutant);
      ASSERT_EQ(violation->entry, i + 1) << shown(mutant);
    });
  });
}

TEST(PipelineMutation, AnEntryOnAnotherRankIsRefused) {
  for_each_pipeline(kSmall, [](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    for_each_entry(pipeline, [&](std::size_t rank, std::size_t i) {
      for (std::size_t other = 0; other < pipeline.programs.size(); ++other) {
        if (other == rank) continue;
        Pipeline mutant = pipeline;
        PipelineProgram& from = mutant.programs[rank];
        PipelineProgram& to = mutant.programs[other];
        to.insert(to.begin() + static_cast<std::ptrdiff_t>(std::min(i, to.size())), from[i]);
        from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
        expect_refused(mutant, spec);
      }
    });
  });
}

TEST(PipelineMutation, AnotherMicroBatchChunkOrPassIsRefused) {
  for_each_pipeline(kSmall, [](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    for_each_entry(pipeline, [&](std::size_t rank, std::size_t i) {
      const PipelineEntry entry = pipeline.programs[rank][i];
      const auto with = [&](const PipelineEntry& other) {
        if (other == entry) return;
        Pipeline mutant = pipeline;
        mutant.programs[rank][i] = other;
        expect_refused(mutant, spec);
      };
      for (int other = -1; other <= spec.micro_batches; ++other) with({entry.pass, other, entry.chunk});
      for (int other = -1; other <= pipeline.placement.chunks; ++other) {
        with({entry.pass, entry.micro_batch, other});
      }
      for (const Pass other : kPasses) with({other, entry.micro_batch, entry.chunk});
    });
  });
}

// The checker's twin: by the definitions alone, without care for time. Plays the passes by trying all ranks
// again and again, with queues for streams.
class Definition {
 public:
  explicit Definition(const Pipeline& pipeline) : pipeline_(pipeline) {}

  bool accepts() {
    std::vector<std::size_t> reached(pipeline_.programs.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < reached.size(); ++rank) {
        const PipelineProgram& program = pipeline_.programs[rank];
        if (reached[rank] == program.size() || !runs(static_cast<Rank>(rank), program[reached[rank]]))
          continue;
        ++reached[rank];
        moved = true;
      }
    }
    for (std::size_t rank = 0; rank < reached.size(); ++rank) {
      if (reached[rank] != pipeline_.programs[rank].size()) return false;
    }
    return std::all_of(queues_.begin(), queues_.end(),
                       [](const auto& queue) { return queue.second.empty(); });
  }

 private:
  bool runs(Rank rank, const PipelineEntry& entry) {
    if (!may_follow(rank, entry)) return false;
    const auto input = input_of(pipeline_.placement, rank, entry);
    if (input && !received(*input)) return false;
    done_.insert({rank, entry.pass, entry.micro_batch, entry.chunk});
    if (const auto output = output_of(pipeline_.placement, rank, entry)) {
      queues_[{output->from, output->to, output->payload}].push_back(*output);
    }
    return true;
  }

  // The order inside a rank.
  bool may_follow(Rank rank, const PipelineEntry& entry) const {
    const auto done = [&](Pass pass, int micro_batch) {
      return done_.contains({rank, pass, micro_batch, entry.chunk});
    };
    if (entry.pass != Pass::forward && !done(Pass::forward, entry.micro_batch)) return false;
    if (entry.pass == Pass::backward_weight && !done(Pass::backward_input, entry.micro_batch)) return false;
    if (entry.micro_batch == 0) return true;
    const auto one_before = [&](Pass half) {
      return done(Pass::backward, entry.micro_batch - 1) || done(half, entry.micro_batch - 1);
    };
    if (entry.pass == Pass::forward) return done(Pass::forward, entry.micro_batch - 1);
    if (entry.makes_input_gradient() && !one_before(Pass::backward_input)) return false;
    return !entry.adds_weight_gradient() || one_before(Pass::backward_weight);
  }

  // Inside a rank anything that was made is there; from another rank only the oldest.
  bool received(const PipelineMessage& message) {
    auto& queue = queues_[{message.from, message.to, message.payload}];
    const auto found = std::find(queue.begin(), queue.end(), message);
    if (found == queue.end()) return false;
    if (message.from != message.to && found != queue.begin()) return false;
    queue.erase(found);
    return true;
  }

  const Pipeline& pipeline_;
  std::set<std::tuple<Rank, Pass, int, int>> done_;
  std::map<std::tuple<Rank, Rank, Payload>, std::vector<PipelineMessage>> queues_;
};

// Some swaps are harmless, as that of a weight gradient with a forward pass after it; the definition tells.
TEST(PipelineMutation, SwappedEntriesAreRefusedExactlyWhenTheyBreakARule) {
  int refused = 0;
  int accepted = 0;
  for_each_pipeline({3, 4, 2}, [&](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    for_each_entry(pipeline, [&](std::size_t rank, std::size_t i) {
      for (std::size_t j = i + 1; j < pipeline.programs[rank].size(); ++j) {
        Pipeline mutant = pipeline;
        std::swap(mutant.programs[rank][i], mutant.programs[rank][j]);
        const bool good = Definition(mutant).accepts();
        ASSERT_EQ(!check_pipeline(mutant).violation, good) << shown(spec) << "\n" << shown(mutant);
        ++(good ? accepted : refused);
      }
    });
  });
  EXPECT_GT(refused, 10 * accepted);
  EXPECT_GT(accepted, 0);
}

TEST(PipelineMutation, SwappedWeightGradientsAreAlwaysRefused) {
  for_each_pipeline(kSmall, [](const PipelineSpec& spec) {
    const Pipeline pipeline = make_pipeline(spec);
    for_each_entry(pipeline, [&](std::size_t rank, std::size_t i) {
      const PipelineProgram& program = pipeline.programs[rank];
      for (std::size_t j = i + 1; j < program.size(); ++j) {
        const bool alike = program[i].pass == program[j].pass && program[i].chunk == program[j].chunk;
        if (!alike || !program[i].adds_weight_gradient()) continue;
        Pipeline mutant = pipeline;
        std::swap(mutant.programs[rank][i], mutant.programs[rank][j]);
        expect_refused(mutant, spec);
      }
    });
  });
}

// --- What the checker says.

struct Told {
  Pipeline pipeline;
  Rank rank;
  std::size_t entry;
  std::string reason;
};

PipelineEntry f(int micro_batch, int chunk = 0) {
  return {Pass::forward, micro_batch, chunk};
}
PipelineEntry b(int micro_batch, int chunk = 0) {
  return {Pass::backward, micro_batch, chunk};
}
PipelineEntry i(int micro_batch, int chunk = 0) {
  return {Pass::backward_input, micro_batch, chunk};
}
PipelineEntry w(int micro_batch, int chunk = 0) {
  return {Pass::backward_weight, micro_batch, chunk};
}

TEST(PipelineCheck, NamesTheFirstViolation) {
  const Placement one{1, 1}, two{2, 1}, ring{2, 2}, v{2, 2, PlacementShape::v_shape};
  const std::vector<Told> cases = {
      {{one, 1, {}}, 0, 0, "there are 0 programs for 1 stages"},
      {{{0, 1}, 1, {}}, 0, 0, "the numbers of stages, chunks and micro-batches are not within their limits"},
      {{{1, 1, PlacementShape::v_shape}, 1, {{}}}, 0, 0, "a V has two chunks per stage"},
      {{one, 1, {{f(0)}}}, 0, 1, "micro-batch 0 never adds its weight gradient on chunk 0"},
      {{one, 1, {{f(0), i(0)}}}, 0, 2, "micro-batch 0 never adds its weight gradient on chunk 0"},
      {{one, 1, {{b(0), f(0)}}}, 0, 0, "micro-batch 0 passes backward before it passes forward on chunk 0"},
      {{one, 1, {{f(0), f(0)}}}, 0, 1, "micro-batch 0 passes forward twice on chunk 0"},
      {{one, 1, {{f(0), i(0), b(0)}}}, 0, 2, "micro-batch 0 passes backward twice on chunk 0"},
      {{one, 1, {{f(0), w(0)}}},
       0,
       1,
       "micro-batch 0 adds its weight gradient before its input gradient on "
       "chunk 0"},
      {{one, 1, {{f(0), b(0), w(0)}}}, 0, 2, "micro-batch 0 adds its weight gradient twice on chunk 0"},
      {{one, 1, {{f(1)}}}, 0, 0, "there is no micro-batch 1"},
      {{one, 1, {{f(0, 1)}}}, 0, 0, "there is no chunk 1"},
      {{one, 2, {{f(0), f(1), b(1), b(0)}}},
       0,
       2,
       "micro-batch 1 makes its input gradient when micro-batch 0 is due on chunk 0"},
      {{one, 2, {{f(0), f(1), i(0), i(1), w(1), w(0)}}},
       0,
       4,
       "micro-batch 1 adds its weight gradient when micro-batch 0 is due on chunk 0"},
      {{two, 2, {{f(1), f(0), b(0), b(1)}, {f(0), f(1), b(0), b(1)}}},
       0,
       0,
       "micro-batch 1 passes forward when micro-batch 0 is due on chunk 0"},
      {{ring,
        2,
        {{f(0), f(1), f(0, 1), f(1, 1), b(0, 1), b(0), b(1, 1), b(1)},
         {f(0), f(0, 1), f(1), f(1, 1), b(0, 1), b(0), b(1, 1), b(1)}}},
       1,
       1,
       "needs the activation of micro-batch 0 for part 3 from rank 0, which sends the activation of "
       "micro-batch 1 for part 1 before it"},
      {{two, 2, {{f(0), b(0), f(1), b(1)}, {f(0), f(1), b(0), b(1)}}},
       0,
       1,
       "deadlock: waits for the gradient of micro-batch 0 for part 0 from rank 1, which itself waits before "
       "F1"},
      {{ring, 1, {{f(0, 1), f(0), b(0, 1), b(0)}, {f(0, 1), f(0), b(0, 1), b(0)}}},
       0,
       0,
       "deadlock: waits for the activation of micro-batch 0 for part 2 from rank 1, which itself waits "
       "before F0.1"},
      {{v, 1, {{f(0), f(0, 1), b(0, 1), b(0)}, {f(0, 1), f(0), b(0, 1), b(0)}}},
       0,
       1,
       "deadlock: waits for the activation of micro-batch 0 for part 3 from rank 1, which itself waits "
       "before F0.1"},
  };
  for (const Told& told : cases) {
    const auto violation = check_pipeline(told.pipeline).violation;
    ASSERT_TRUE(violation) << told.reason;
    EXPECT_EQ(violation->reason, told.reason);
    EXPECT_EQ(violation->rank, told.rank) << told.reason;
    EXPECT_EQ(violation->entry, told.entry) << told.reason;
  }
}

TEST(PipelineCheck, AcceptsPassesThatAreSplitHereAndWholeThere) {
  const Pipeline pipeline = {{2, 1}, 2, {{f(0), f(1), i(0), w(0), b(1)}, {f(0), b(0), f(1), i(1), w(1)}}};
  const PipelineCheck check = check_pipeline(pipeline);
  EXPECT_FALSE(check.violation);
  EXPECT_EQ(check.peak_live, (std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace lockstep::schedule
