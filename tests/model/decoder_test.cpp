// SPDX-License-Identifier: Apache-2.0
//
// Reading on with a cache gives the logits of reading everything at once.
#include "lockstep/model/decoder.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/model/pass.h"

#include "tests/model/values.h"

namespace lockstep::model {
namespace {

constexpr std::int64_t kLength = 23;

Model gpt_model() {
  return gpt::make(
      {.layers = 2, .width = 48, .heads = 3, .ffn_width = 96, .vocabulary = 101, .positions = kLength});
}
Model llama_model() {
  return llama::make({.layers = 2,
                      .width = 48,
                      .heads = 6,
                      .kv_heads = 2,
                      .head_width = 8,
                      .ffn_width = 80,
                      .vocabulary = 101,
                      .positions = kLength});
}

std::vector<std::int32_t> some_tokens() {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < kLength; ++i) tokens.push_back(i * i * 31 % 101);
  return tokens;
}

// The logits after each of the tokens, by one pass over all of them in fp32 and then ATen.
at::Tensor full_logits(const Model& model, const Parameters& parameters, std::vector<std::int32_t> tokens) {
  const Batch batch = {at::from_blob(tokens.data(), {1, kLength}, at::kInt), {}};
  at::Tensor hidden;
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    hidden = forward_only(*model.blocks[i], hidden, batch, parameters.of_block(i));
  }
  return hidden[0].matmul(parameters.head().value.t()).detach().to(at::kFloat).contiguous();
}

void expect_same_logits(const Model& model, at::ScalarType type, double limit) {
  const FlatLayout layout(model);
  const Parameters parameters(layout, some_values(layout).to(type),
                              at::zeros({layout.elements()}, at::kFloat));
  const std::vector<std::int32_t> tokens = some_tokens();
  const at::Tensor expected = full_logits(model, parameters, tokens);
  const double scale = expected.abs().max().item<double>();
  for (const std::size_t piece : {1, 5, 23}) {
    Decoder decoder(model, parameters, kLength);
    for (std::size_t first = 0; first < tokens.size(); first += piece) {
      const std::size_t count = std::min(piece, tokens.size() - first);
      const std::vector<float> logits = decoder.read(std::span(tokens).subspan(first, count));
      const at::Tensor row = expected[decoder.length() - 1];
      ASSERT_EQ(logits.size(), 101U);
      for (std::size_t i = 0; i < logits.size(); ++i) {
        ASSERT_NEAR(logits[i], row.data_ptr<float>()[i], limit * scale) << decoder.length() << ", " << i;
      }
    }
    EXPECT_THROW(decoder.read(std::span(tokens).first(1)), UsageError) << "there is no place left";
  }
}

TEST(Decoder, GptAgreesWithOnePass) {
  expect_same_logits(gpt_model(), at::kFloat, 1e-5);
  expect_same_logits(gpt_model(), at::kBFloat16, 4e-2);
}

TEST(Decoder, LlamaAgreesWithOnePass) {
  expect_same_logits(llama_model(), at::kFloat, 1e-5);
  expect_same_logits(llama_model(), at::kBFloat16, 4e-2);
}

}  // namespace
}  // namespace lockstep::model
