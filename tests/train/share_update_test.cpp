// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/share_update.h"

#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/model/gpt/model.h"
#include "lockstep/train/partition.h"

namespace lockstep::train {
namespace {

constexpr kernels::Sgd kHow = {.learning_rate = 0.5F, .momentum = 0.5F, .weight_decay = 0.125F};  // all exact

// All parameters of a small model, and what fills up the last block.
class ShareUpdate : public ::testing::Test {
 protected:
  struct State {
    std::vector<float> values;
    std::vector<float> moment;
    bool operator==(const State&) const = default;
  };

  State first() const {
    State state;
    for (std::size_t i = 0; i < elements_; ++i) {
      state.values.push_back(static_cast<float>(i % 97) - 40.0F);
      state.moment.push_back(static_cast<float>(i % 89) - 30.0F);
    }
    return state;
  }

  void update(State& state, Range run) const {
    const auto part = [&](std::vector<float>& all) { return std::span(all).subspan(run.begin, run.size()); };
    const std::vector<float> gradients(run.size(), 2.0F);
    update_share(kHow, layout_, run, {.master = part(state.values), .moments = {part(state.moment)}},
                 gradients, 0.5F);
  }

  const model::FlatLayout layout_{model::gpt::make(
      {.layers = 3, .width = 16, .heads = 2, .ffn_width = 32, .vocabulary = 61, .positions = 9})};
  const std::size_t elements_ = static_cast<std::size_t>(layout_.elements());
};

// update_share() finds those of a run by that.
TEST_F(ShareUpdate, ParametersAreInOrder) {
  std::size_t end = 0;
  for (const model::Place& place : layout_.places()) {
    EXPECT_GE(elements_of(place).begin, end);
    end = elements_of(place).end;
  }
  EXPECT_LE(end, elements_);
}

TEST_F(ShareUpdate, EveryElementIsUpdatedAsItsParameterIs) {
  const State before = first();
  State after = before;
  update(after, {0, elements_});
  State expected = before;
  for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
    const float decay = layout_.specs()[i].decays ? kHow.weight_decay : 0.0F;
    const Range all = elements_of(layout_.places()[i]);
    for (std::size_t e = all.begin; e < all.end; ++e) {
      const std::span<float> value(&expected.values[e], 1);
      const float gradient = 1.0F;
      kernels::sgd_reference({.learning_rate = 0.5F, .momentum = 0.5F, .weight_decay = decay},
                             {.master = value, .gradient = {&gradient, 1}}, {&expected.moment[e], 1});
    }
  }
  EXPECT_TRUE(after == expected);
  EXPECT_FALSE(after == before);
}

// Runs that begin and end in parameters, between them and at their ends, or have nothing.
TEST_F(ShareUpdate, InAnyRunsIsTheSame) {
  State whole = first();
  update(whole, {0, elements_});
  for (const std::size_t length : {1, 7, 64, 1000}) {
    State runs = first();
    for (std::size_t begin = 0; begin < elements_; begin += length) {
      update(runs, {begin, begin});
      update(runs, {begin, std::min(begin + length, elements_)});
    }
    EXPECT_TRUE(runs == whole) << length;
  }
}

}  // namespace
}  // namespace lockstep::train
