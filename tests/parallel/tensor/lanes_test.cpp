// SPDX-License-Identifier: Apache-2.0
//
// Whoever computes the tensor lanes: hidden states, losses and all gradients have the same bits.
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/kernels/compute/threads.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/gpt/shard_rules.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/model/llama/shard_rules.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/fan.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/parallel/tensor/divided_model.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/parallel/tensor/shared_gradients.h"
#include "lockstep/parallel/tensor/team.h"

#include "tests/support/ranks.h"

namespace lockstep::parallel {
namespace {

using model::ParameterSpec;

constexpr std::int64_t kVocabulary = 1003, kLength = 33;
constexpr float kScale = 0.01F;

struct Setting {
  bool is_gpt = false;
  std::int64_t kv_heads = 4;
  bool tied = false;
  float dropout = 0.1F;
  at::ScalarType dtype = at::kFloat;
  int lanes = 4;
  bool divides_tokens = false;
  std::int64_t sequences = 3;
  std::int64_t length = kLength;
  int threads = 1;
  std::int64_t layers = 5;
};

std::string description(const Setting& setting) {
  return fmt::format("{}, {} kv heads, {}, {} lanes, {} x {} tokens, {}", setting.is_gpt ? "gpt" : "llama",
                     setting.kv_heads, c10::toString(setting.dtype), setting.lanes, setting.sequences,
                     setting.length, setting.divides_tokens ? "divided" : "not divided");
}

DividedSizes sizes_of(const Setting& setting) {
  return {.heads = 8, .kv_heads = setting.is_gpt ? 8 : setting.kv_heads, .ffn_width = 72};
}

std::span<const model::ShardRule> rules_of(const Setting& setting) {
  return setting.is_gpt ? model::gpt::shard_rules() : model::llama::shard_rules();
}

model::Model model_of(const Setting& setting) {
  if (setting.is_gpt) {
    return model::gpt::make({.layers = setting.layers,
                             .width = 48,
                             .heads = 8,
                             .ffn_width = 72,
                             .vocabulary = kVocabulary,
                             .positions = setting.length + 3,
                             .dropout = setting.dropout});
  }
  return model::llama::make({.layers = setting.layers,
                             .width = 40,
                             .heads = 8,
                             .kv_heads = setting.kv_heads,
                             .head_width = 6,
                             .ffn_width = 72,
                             .vocabulary = kVocabulary,
                             .positions = setting.length,
                             .dropout = setting.dropout,
                             .tied = setting.tied});
}

model::Batch batch_of(const Setting& setting, int number) {
  const std::int64_t length = setting.length;
  const at::Tensor tokens = at::empty({setting.sequences, length + 1}, at::kInt);
  for (int i = 0; i < tokens.numel(); ++i) {
    tokens.data_ptr<std::int32_t>()[i] = (number * 7919 + i * i * 31 + i) % kVocabulary;
  }
  model::Batch batch = {tokens.narrow(1, 0, length).clone(), tokens.narrow(1, 1, length).clone()};
  batch.targets[0][1] = -1;
  batch.samples.seed = 5;
  for (std::int64_t i = 0; i < setting.sequences; ++i) {
    batch.samples.numbers.push_back(static_cast<std::uint64_t>(number * setting.sequences + i));
  }
  return batch;
}

// Nothing is zero or one: nothing may hide.
void fill(ParameterSpec spec, const LaneShard& shard, const at::Tensor& part) {
  const double centre = spec.initial == model::Initial::ones ? 1.0 : 0.0;
  spec.initial = model::Initial::normal;
  spec.deviation = 0.1F;
  const at::Tensor values = at::empty({part.numel()}, at::kFloat);
  initial_part(spec, shard, 7, 0, nn::floats_of(values));
  part.view({-1}).copy_(values.add(centre));
}

// What a rank has of a model: values and gradients of the lanes that it computes.
class Share {
 public:
  Share(const model::Model& model, const Setting& setting, const nn::LaneShare& share)
      : share_(share),
        model_(model, rules_of(setting), sizes_of(setting), share.lanes),
        layout_(model_.of_lane(), std::vector<Range>{{0, model.blocks.size()}}, kernels::kSquaresBlock,
                model_.held(share.first, share.count)),
        values_(at::zeros({layout_.elements()}, setting.dtype)),
        gradients_(at::zeros({layout_.elements()}, at::kFloat)),
        parameters_(layout_, values_, gradients_) {
    for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
      fill(model_.whole(layout_.specs()[i].name), shard(i), part(values_, i));
    }
  }

  const model::Parameters& parameters() const { return parameters_; }
  nn::DividedHead head() const { return {parameters_.heads(), kVocabulary}; }

  // As evaluation computes it, which has no memory for gradients.
  at::Tensor loss_of(const at::Tensor& hidden, const at::Tensor& targets, const nn::Lanes& lanes) const {
    const at::Tensor nothing = at::empty({1}, at::kFloat).expand({layout_.elements()});
    const model::Parameters only_values(layout_, values_, nothing);
    return nn::head_loss(hidden, {only_values.heads(), kVocabulary}, targets, lanes);
  }

  // What the lanes here have of each gradient at its place in the whole parameter, zero elsewhere.
  std::map<std::string, at::Tensor> gradients(const comm::Communicator& group) const {
    sum_shared(group);
    std::map<std::string, at::Tensor> whole;
    for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
      const std::string& name = layout_.specs()[i].name;
      at::Tensor& gradient = whole[name];
      if (!gradient.defined()) gradient = at::zeros(model_.whole(name).shape, at::kFloat);
      const at::Tensor mine = part(gradients_, i);
      put_part(shard(i), {0, static_cast<std::size_t>(mine.numel())}, mine, gradient);
    }
    return whole;
  }

 private:
  at::Tensor part(const at::Tensor& all, std::size_t index) const {
    const auto [first, count] = layout_.places()[index];
    return all.narrow(0, first, count);
  }

  LaneShard shard(std::size_t index) const {
    return model_.shard(layout_.specs()[index].name, layout_.lane_of(index));
  }

  void sum_shared(const comm::Communicator& group) const {
    std::map<int, std::map<std::string, std::vector<at::Tensor>>> by_sharing;
    for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
      const std::string& name = layout_.specs()[i].name;
      if (const int sharing = model_.sharing(name); sharing > 1) {
        by_sharing[sharing][name].push_back(part(gradients_, i));
      }
    }
    std::vector<int> numbers;
    for (const auto& [sharing, gradients] : by_sharing) numbers.push_back(sharing);
    const SharedGradients shared(group, share_.lanes, numbers);
    for (const auto& [sharing, by_name] : by_sharing) {
      std::vector<std::vector<at::Tensor>> gradients;
      for (const auto& [name, lanes] : by_name) gradients.push_back(lanes);
      shared.sum(gradients, sharing);
    }
  }

  nn::LaneShare share_;
  DividedModel model_;
  model::FlatLayout layout_;
  at::Tensor values_;
  at::Tensor gradients_;
  model::Parameters parameters_;
};

struct Outcome {
  std::vector<at::Tensor> hidden;  // before the head, by micro-batch
  std::vector<at::Tensor> losses;
  std::vector<at::Tensor> losses_alone;
  std::map<std::string, at::Tensor> gradients;
};

// Two micro-batches; null: without lanes, as one device computes.
Outcome computed(const Setting& setting, const comm::Communicator& group, const nn::LaneTeam* team) {
  kernels::set_threads(setting.threads);
  const model::Model model = model_of(setting);
  const Share share(model, setting, team == nullptr ? nn::LaneShare() : team->share());
  const model::Parameters& parameters = share.parameters();
  Outcome outcome;
  for (int number = 0; number < 2; ++number) {
    model::Batch batch = batch_of(setting, number);
    batch.team = team;
    const nn::Lanes lanes = batch.lanes();
    std::vector<model::BlockPass> passes;
    at::Tensor hidden, again;
    for (std::size_t i = 0; i < model.blocks.size(); ++i) {
      passes.push_back(model::forward(*model.blocks[i], hidden, batch, parameters.of_block(i)));
      hidden = passes.back().output.detach();
      again = model::forward_only(*model.blocks[i], again, batch, parameters.of_block(i));
    }
    EXPECT_TRUE(again.equal(hidden)) << "what is not recorded has the same bits";
    outcome.hidden.push_back(nn::gather_tokens(hidden, lanes).clone());
    outcome.losses_alone.push_back(share.loss_of(hidden, batch.targets, lanes));
    const nn::HeadLoss loss =
        nn::head_loss_with_gradients(hidden, share.head(), batch.targets, kScale, lanes);
    outcome.losses.push_back(loss.losses);
    at::Tensor gradient = loss.x_gradient;
    for (std::size_t i = model.blocks.size(); i-- > 0;) gradient = backward(std::move(passes[i]), gradient);
  }
  outcome.gradients = share.gradients(group);
  return outcome;
}

// The gradients of several ranks, each having a part of those that are divided.
std::map<std::string, at::Tensor> merged(const std::vector<Outcome>& ranks) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, gradient] : ranks[0].gradients) {
    all[name] = gradient.clone();
    for (const Outcome& rank : ranks) {
      const at::Tensor& theirs = rank.gradients.at(name);
      const at::Tensor both = all[name].ne(0).logical_and(theirs.ne(0));
      EXPECT_TRUE(all[name].masked_select(both).equal(theirs.masked_select(both))) << name;
      all[name] = theirs.where(theirs.ne(0), all[name]);
    }
  }
  return all;
}

Outcome computed_by(int workers, const Setting& setting) {
  std::vector<Outcome> ranks(static_cast<std::size_t>(workers));
  test::run_ranks(workers, [&](comm::Communicator& group) {
    const TensorTeam team(group, {.lanes = setting.lanes, .divides_tokens = setting.divides_tokens});
    ranks[static_cast<std::size_t>(group.rank())] = computed(setting, group, &team);
  });
  for (const Outcome& rank : ranks) {
    for (std::size_t i = 0; i < rank.losses.size(); ++i) {
      EXPECT_TRUE(rank.losses[i].equal(ranks[0].losses[i])) << "every rank has the losses of all tokens";
      EXPECT_TRUE(rank.losses_alone[i].equal(rank.losses[i]));
    }
  }
  Outcome outcome = ranks[0];
  outcome.gradients = merged(ranks);
  return outcome;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == b.numel() && a.is_contiguous() && b.is_contiguous() && a.nbytes() == b.nbytes() &&
         std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

void expect_same_bits(const Outcome& found, const Outcome& expected) {
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_TRUE(same_bits(found.hidden[i], expected.hidden[i])) << "hidden states of micro-batch " << i;
    EXPECT_TRUE(same_bits(found.losses[i], expected.losses[i])) << "losses of micro-batch " << i;
  }
  for (const auto& [name, gradient] : expected.gradients) {
    EXPECT_TRUE(same_bits(found.gradients.at(name), gradient)) << name;
    EXPECT_GT(gradient.ne(0).sum().item<std::int64_t>(), 0) << name;
  }
}

// By norms: which single elements rounding moves the most differs from processor to processor.
double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const double error = found.to(at::kDouble).sub(expected.to(at::kDouble)).norm().item<double>();
  return error / expected.to(at::kDouble).norm().item<double>();
}

std::vector<Setting> models() {
  return {{.is_gpt = true}, {.kv_heads = 4, .tied = true}, {.kv_heads = 2}, {.kv_heads = 1}};
}

// One process with another number of threads, and all divisions of the work, give what one process gives.
void expect_same_bits_for_all(Setting setting, const std::vector<int>& numbers_of_workers) {
  const Outcome alone = computed_by(1, setting);
  setting.threads = 3;
  for (const bool divides_tokens : {false, true}) {
    setting.divides_tokens = divides_tokens;
    for (const int workers : numbers_of_workers) {
      SCOPED_TRACE(description(setting) + fmt::format(", {} workers", workers));
      expect_same_bits(computed_by(workers, setting), alone);
      setting.threads = 1;
    }
  }
}

class TensorLanesOf : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Model, TensorLanesOf, testing::ValuesIn(models()), [](const auto& of) {
  return of.param.is_gpt ? std::string("Gpt") : fmt::format("LlamaWith{}KeyHeads", of.param.kv_heads);
});

TEST_P(TensorLanesOf, AreTheSameBitsWhoeverComputesThem) {
  Setting setting = GetParam();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    setting.dtype = dtype;
    expect_same_bits_for_all(setting, {1, 2, 4});
  }
}

TEST(TensorLanes, AreTheSameBitsWithFewTokens) {
  // A lane without tokens; a lane without and one with fewer than others.
  expect_same_bits_for_all({.is_gpt = true, .dtype = at::kBFloat16, .sequences = 1, .length = 3}, {1, 4});
  expect_same_bits_for_all({.dtype = at::kBFloat16, .sequences = 1, .length = 5}, {1, 4});
}

TEST(TensorLanes, AreTheSameBitsWhenSumsTravelInPieces) {
  for (const bool is_gpt : {true, false}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      Setting setting = {.is_gpt = is_gpt, .kv_heads = 2, .dtype = dtype, .length = 347, .layers = 2};
      ASSERT_EQ(nn::lane_pieces(setting.sequences * setting.length, setting.lanes).size(), 4U);
      expect_same_bits_for_all(setting, {1, 2, 4});
      setting.lanes = 2;
      ASSERT_EQ(nn::lane_pieces(setting.sequences * setting.length, setting.lanes).size(), 4U);
      expect_same_bits_for_all(setting, {1, 2});
    }
  }
}

TEST(TensorLanes, AreTheSameBitsInHalfPrecision) {
  expect_same_bits_for_all({.kv_heads = 2, .dtype = at::kHalf}, {1, 2});
}

TEST(TensorLanes, OneLaneIsWhatOneDeviceComputes) {
  for (Setting setting : models()) {
    setting.lanes = 1;
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      setting.dtype = dtype;
      expect_same_bits(computed_by(1, setting), computed(setting, comm::Communicator(), nullptr));
    }
  }
}

TEST(TensorLanes, SeveralAreCloseToOne) {
  for (Setting setting : models()) {
    for (const auto& [dtype, limit] : {std::pair{at::kFloat, 2e-5}, {at::kBFloat16, 6e-2}}) {
      setting.dtype = dtype;
      SCOPED_TRACE(description(setting));
      const Outcome found = computed_by(1, setting);
      const Outcome expected = computed(setting, comm::Communicator(), nullptr);
      for (std::size_t i = 0; i < expected.losses.size(); ++i) {
        EXPECT_LE(relative_error(found.losses[i], expected.losses[i]), limit);
      }
      for (const auto& [name, gradient] : expected.gradients) {
        EXPECT_LE(relative_error(found.gradients.at(name), gradient), limit) << name;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::parallel
