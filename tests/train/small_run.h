// SPDX-License-Identifier: Apache-2.0
//
// A run that takes a moment.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/corpus/megatron_writer.h"
#include "lockstep/spec/load.h"

#include "tests/support/files.h"

namespace lockstep::train {

// Returns the path.
inline std::string write_corpus(const test::TemporaryFolder& folder, const std::vector<data::Token>& tokens) {
  data::MegatronWriter writer(folder.path("c"), data::TokenType::uint16);
  writer.add(tokens, true);
  writer.finish();
  return folder.path("c");
}

// 2000 tokens below 61.
inline std::string small_corpus(const test::TemporaryFolder& folder) {
  std::vector<data::Token> tokens;
  for (std::uint32_t i = 0; i < 2000; ++i) tokens.push_back(i * i % 61);
  return write_corpus(folder, tokens);
}

// Trains and validates on `corpus`; `flags` as on the command line.
inline spec::RunSpec small_run(const std::string& corpus, const std::string& family,
                               const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--data.train", corpus,         "--data.validation",
                                  corpus,         "--model.name", family};
  if (family != "mlp") all.insert(all.end(), {"--model.heads", "4", "--model.ffn_width", "64"});
  all.insert(all.end(), flags.begin(), flags.end());
  return spec::parse_run(R"(
      [model]
      layers = 2
      width = 32
      vocab_size = 61
      [training]
      steps = 3
      seq_len = 16
      micro_batch_size = 2
      global_batch_size = 4
      threads = 1
      [validation]
      freq = 1
      steps = 3)",
                         "run.toml", all);
}

}  // namespace lockstep::train
