// SPDX-License-Identifier: Apache-2.0
//
// Where parameters lie in flat memory, of a whole model and of chunks of it.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/model/parameters.h"

namespace lockstep::model {
namespace {

constexpr std::size_t kUnit = 3 * kernels::kSquaresBlock;

Model small_gpt() {
  return gpt::make(
      {.layers = 3, .width = 40, .heads = 4, .ffn_width = 160, .vocabulary = 301, .positions = 16});
}

Model untied_llama() {
  return llama::make({.layers = 2,
                      .width = 16,
                      .heads = 2,
                      .kv_heads = 2,
                      .head_width = 8,
                      .ffn_width = 32,
                      .vocabulary = 61,
                      .positions = 8,
                      .tied = false});
}

// What a chunk owns lies in the whole layout where the parameters of the same names do.
void expect_same_places(const FlatLayout& part, const FlatLayout& whole) {
  for (std::size_t i = part.borrows_head() ? 1 : 0; i < part.specs().size(); ++i) {
    const auto first = static_cast<std::size_t>(part.places()[i].first);
    for (const auto& [elements, in_whole, is_copy] : part.segments()) {
      if (first < elements.begin || first >= elements.end) continue;
      EXPECT_EQ(whole.at(in_whole + first - elements.begin).name, part.specs()[i].name);
      EXPECT_EQ((in_whole + first - elements.begin) % kernels::kSquaresBlock, first % kernels::kSquaresBlock);
    }
  }
}

TEST(FlatLayout, SegmentsBeginWhereBlocksOfSquaresDo) {
  const Model model = small_gpt();
  const FlatLayout whole(model);
  ASSERT_EQ(whole.segments().size(), 6U) << "five blocks, and a head that has nothing of its own";
  for (const auto& [elements, in_whole, is_copy] : whole.segments()) {
    EXPECT_EQ(elements.begin % kernels::kSquaresBlock, 0U);
    EXPECT_EQ(elements.begin, in_whole);
  }
  EXPECT_EQ(whole.elements_of_whole(), static_cast<std::size_t>(whole.elements()));
  EXPECT_EQ(whole.owned(), (Range{0, whole.elements_of_whole()}));
  EXPECT_TRUE(is_tied(model));
}

TEST(FlatLayout, ChunksOfAllStagesAreTheWholeModelOnce) {
  for (const bool tied : {true, false}) {
    const Model model = tied ? small_gpt() : untied_llama();
    const FlatLayout whole(model);
    std::vector<int> held(whole.elements_of_whole());
    const std::size_t blocks = model.blocks.size();
    const std::vector<std::vector<Range>> stages = {{{0, 1}, {3, blocks}}, {{1, 2}, {2, 3}}};
    for (const std::vector<Range>& chunks : stages) {
      const FlatLayout part(model, chunks, kUnit);
      ASSERT_EQ(part.chunks().size(), chunks.size());
      for (const Range& chunk : part.chunks()) EXPECT_EQ(chunk.begin % kUnit, 0U);
      for (const auto& [elements, in_whole, is_copy] : part.segments()) {
        for (std::size_t i = 0; i < elements.size(); ++i) ++held[in_whole + i];
      }
      expect_same_places(part, whole);
    }
    EXPECT_EQ(std::ranges::count(held, 1), static_cast<std::ptrdiff_t>(held.size()));
  }
}

TEST(FlatLayout, TheLastStageBorrowsATiedHead) {
  const Model model = small_gpt();
  const FlatLayout last(model, std::vector<Range>{{3, 5}}, kUnit);
  EXPECT_TRUE(last.borrows_head());
  EXPECT_EQ(last.specs()[last.head()].name, "wte.weight");
  EXPECT_EQ(last.places()[last.head()].first, 0);
  EXPECT_EQ(last.owned().begin % kUnit, 0U);
  EXPECT_GE(last.owned().begin, static_cast<std::size_t>(301 * 40));
  EXPECT_TRUE(last.of_block(0).empty());
  const FlatLayout both(model, std::vector<Range>{{0, 1}, {4, 5}}, kUnit);
  EXPECT_FALSE(both.borrows_head()) << "it has the table itself";
  const FlatLayout own(untied_llama(), std::vector<Range>{{2, 4}}, kUnit);
  EXPECT_FALSE(own.borrows_head());
  EXPECT_EQ(own.specs()[own.head()].name, "lm_head.weight");
}

// A block that uses what the first one has.
class Sharing final : public Block {
 public:
  explicit Sharing(ParameterSpec shared) : shared_(std::move(shared)) {}
  std::vector<ParameterSpec> parameters() const override { return {shared_}; }
  at::Tensor forward(const at::Tensor& hidden, const Batch&, BlockParameters) const override {
    return hidden;
  }

 private:
  ParameterSpec shared_;
};

// Of four lanes, as many as ranks hold: the layouts of all ranks together have every lane of every parameter
// once, at the same places of the whole, and what lanes share counts once.
TEST(FlatLayout, LanesHaveSegmentsOfTheirOwn) {
  constexpr int kLanes = 4;
  const Model model = small_gpt();
  const auto sharing = [](const ParameterSpec& spec) { return spec.shape.size() == 1 ? kLanes : 1; };
  std::map<std::pair<std::string, int>, std::size_t> in_whole;
  for (const int ranks : {1, 2, 4}) {
    std::set<std::size_t> counted;
    std::size_t elements_of_whole = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const HeldLanes lanes = {kLanes, rank * kLanes / ranks, kLanes / ranks, sharing};
      const FlatLayout layout(model, std::vector<Range>{{0, model.blocks.size()}}, kUnit, lanes);
      elements_of_whole = layout.elements_of_whole();
      for (std::size_t i = 0; i < layout.specs().size(); ++i) {
        const auto first = static_cast<std::size_t>(layout.places()[i].first);
        const auto segment = std::ranges::find_if(layout.segments(), [&](const FlatLayout::Segment& one) {
          return first >= one.elements.begin && first < one.elements.end;
        });
        ASSERT_NE(segment, layout.segments().end());
        const std::size_t place = segment->in_whole + first - segment->elements.begin;
        const auto [known, is_new] = in_whole.try_emplace({layout.specs()[i].name, layout.lane_of(i)}, place);
        EXPECT_EQ(known->second, place) << "the same place, whoever holds the lane";
        EXPECT_EQ(is_new, ranks == 1);
        EXPECT_EQ(segment->is_copy, sharing(layout.specs()[i]) > 1 && layout.lane_of(i) > 0);
        EXPECT_TRUE(segment->is_copy || counted.insert(place).second) << "counted once";
      }
      const std::size_t of_lane = model.blocks[1]->parameters().size();
      const std::vector<std::size_t>& first_layer = layout.of_block(1);
      ASSERT_EQ(first_layer.size(), of_lane * layout.lanes());
      for (std::size_t i = 0; i < first_layer.size(); ++i) {
        EXPECT_EQ(layout.lane_of(first_layer[i]), lanes.first + static_cast<int>(i / of_lane));
        EXPECT_EQ(layout.specs()[first_layer[i]].name, layout.specs()[first_layer[i % of_lane]].name);
      }
      EXPECT_EQ(layout.heads().size(), layout.lanes());
    }
    EXPECT_EQ(elements_of_whole % kernels::kSquaresBlock, 0U);
    EXPECT_LT(*counted.rbegin(), elements_of_whole);
  }
}

TEST(FlatLayout, EveryLaneOfATiedHeadIsBorrowed) {
  const HeldLanes lanes = {.lanes = 4, .first = 2, .count = 2};
  const FlatLayout last(small_gpt(), std::vector<Range>{{3, 5}}, kUnit, lanes);
  ASSERT_EQ(last.heads(), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(last.lane_of(1), 3);
  EXPECT_EQ(last.places()[1].first, last.places()[0].count);
  EXPECT_GE(last.owned().begin, static_cast<std::size_t>(2 * last.places()[0].count));
}

TEST(FlatLayout, BlocksThatShareAParameterStayOnOneStage) {
  Model model = untied_llama();
  model.blocks.insert(model.blocks.begin() + 2,
                      std::make_unique<Sharing>(model.blocks.front()->parameters().front()));
  EXPECT_NO_THROW(FlatLayout(model, std::vector<Range>{{0, 3}}, kUnit));
  EXPECT_THROW(FlatLayout(model, std::vector<Range>{{1, 5}}, kUnit), UsageError);
}

}  // namespace
}  // namespace lockstep::model
