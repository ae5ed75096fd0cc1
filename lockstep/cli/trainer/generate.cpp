// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <memory>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/interruption.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/rank.h"
#include "lockstep/data/tokenizer/tokenizer.h"
#include "lockstep/data/tokenizer/utf8.h"
#include "lockstep/model/choose_token.h"
#include "lockstep/model/decoder.h"
#include "lockstep/train/model_folder.h"

namespace lockstep::cli {
namespace {

struct GenerateFlags {
  std::string folder;
  std::string prompt;
  std::int64_t max_tokens = 200;
  std::uint64_t seed = 1;
  model::Sampling sampling = {.temperature = 0.8, .top_k = 200};
};

// A document also begins behind the end of another one.
std::optional<data::Token> begin_of_text(const checkpoint::SpecialTokens& special) {
  if (special.begin_of_text || special.ends_of_text.empty()) return special.begin_of_text;
  return special.ends_of_text.front();
}

bool ends_text(const train::LoadedModel& loaded, data::Token token) {
  const std::vector<std::uint32_t>& ends = loaded.special_tokens().ends_of_text;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

// What may be chosen: a vocabulary may be larger than what the tokenizer has words for, and have holes.
std::vector<data::Token> choices(const train::LoadedModel& loaded, const data::Tokenizer& tokenizer) {
  std::vector<data::Token> tokens;
  for (data::Token token = 0; token < static_cast<std::uint64_t>(loaded.spec().vocab_size); ++token) {
    if (tokenizer.has(token) || ends_text(loaded, token)) tokens.push_back(token);
  }
  return tokens;
}

// What the model reads first: the prompt, or the begin of a document.
std::vector<std::int32_t> first_tokens(const GenerateFlags& flags, const data::Tokenizer& tokenizer,
                                       const train::LoadedModel& loaded) {
  const std::size_t valid = data::valid_utf8_prefix(flags.prompt);
  if (valid < flags.prompt.size()) {
    throw UsageError(fmt::format("--prompt is not valid UTF-8: see its byte {}", valid));
  }
  const std::vector<data::Token> encoded = tokenizer.encode(flags.prompt);
  std::vector<std::int32_t> tokens(encoded.begin(), encoded.end());
  if (const auto begin = begin_of_text(loaded.special_tokens()); tokens.empty() && begin) {
    tokens.push_back(static_cast<std::int32_t>(*begin));
  }
  if (tokens.empty())
    throw UsageError("--prompt is empty, and the model has no token that begins a document");
  const spec::Model& spec = loaded.spec();
  const auto highest = *std::max_element(tokens.begin(), tokens.end());
  if (highest >= spec.vocab_size) {
    throw UsageError(fmt::format("{}: the tokenizer has token {}, but the model only {} tokens", flags.folder,
                                 highest, spec.vocab_size));
  }
  if (static_cast<std::int64_t>(tokens.size()) >= spec.max_seq_len) {
    throw UsageError(fmt::format("--prompt has {} tokens, which leaves no room in the {} places of the model",
                                 tokens.size(), spec.max_seq_len));
  }
  return tokens;
}

int generate(const GenerateFlags& flags) {
  const Interruption interruption("the text is not complete; the same command makes it again");
  prepare_alone();
  const train::LoadedModel loaded(flags.folder);
  const std::unique_ptr<data::Tokenizer> tokenizer = data::load_tokenizer(flags.folder);
  std::vector<std::int32_t> unread = first_tokens(flags, *tokenizer, loaded);
  // The last token is never read.
  const std::int64_t places = static_cast<std::int64_t>(unread.size()) + flags.max_tokens - 1;
  model::Decoder decoder(loaded.model(), loaded.parameters(), std::min(places, loaded.spec().max_seq_len));
  const std::vector<data::Token> tokens = choices(loaded, *tokenizer);
  std::vector<float> logits(tokens.size());
  std::string text = flags.prompt;
  print(std::cout, text);
  const auto may_go_on = [&](std::int64_t made) {
    return made < flags.max_tokens && decoder.length() < loaded.spec().max_seq_len &&
           !interruption.has_come();
  };
  for (std::int64_t i = 0; may_go_on(i); ++i) {
    const std::vector<float> all = decoder.read(unread);
    std::transform(tokens.begin(), tokens.end(), logits.begin(),
                   [&](data::Token token) { return all[token]; });
    const std::uint64_t random = philox64(flags.seed, 0, static_cast<std::uint64_t>(i));
    const data::Token token = tokens[model::choose_token(logits, flags.sampling, random)];
    if (ends_text(loaded, token)) break;
    const std::size_t printed = text.size();
    tokenizer->decode(std::span(&token, 1), text);
    print(std::cout, text.substr(printed));
    unread = {static_cast<std::int32_t>(token)};
  }
  print(std::cout, "\n");
  interruption.check();
  return kDone;
}

}  // namespace

void add_generate(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("generate", kGenerateSummary);
  command->footer(
      "FOLDER is a Hugging Face folder of a GPT-2 or LLaMA with its tokenizer.json, such as the folder "
      "model/\n"
      "that `lockstep train` leaves. The text appears as it is made, and ends with the model's token for "
      "that,\n"
      "after --max-tokens, or when the model has no more places. The same seed gives the same text.");
  const auto flags = std::make_shared<GenerateFlags>();  // shared by the options and the action
  command->add_option("FOLDER", flags->folder, "Folder of the model")->required();
  command->add_option("--prompt", flags->prompt, "Text to go on from (default: a new document)");
  command->add_option("--max-tokens", flags->max_tokens, "Tokens to make at most (default 200)")
      ->check(whole_number(1, 1 << 24));
  command
      ->add_option("--temperature", flags->sampling.temperature,
                   "Above 1: more varied; below: more likely; 0: always the most likely token (default 0.8)")
      ->check(number(0, 1000));
  command
      ->add_option("--top-k", flags->sampling.top_k,
                   "Choose among so many of the likeliest tokens; 0: all (default 200)")
      ->check(whole_number(0, 1 << 24));
  command
      ->add_option("--top-p", flags->sampling.top_p,
                   "Choose among the likeliest tokens that together have this probability (default 1)")
      ->check(number(1e-6, 1));
  command->add_option("--seed", flags->seed, "Of the random numbers (default 1)")
      ->check(whole_number(0, INT64_MAX));
  command->callback([flags, &invocation] { invocation.action = [flags] { return generate(*flags); }; });
}

}  // namespace lockstep::cli
