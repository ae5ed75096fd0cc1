// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/interruption.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/rank.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/model_folder.h"
#include "lockstep/train/same_tokenizer.h"

namespace lockstep::cli {
namespace {

constexpr std::int64_t kLongestByDefault = 2048;

struct EvalFlags {
  std::string folder;
  std::string data;
  std::int64_t seq_len = 0;
  std::int64_t sequences = 0;
  bool json = false;
};

std::int64_t length_of(const EvalFlags& flags, const spec::Model& model) {
  if (flags.seq_len == 0) return std::min(model.max_seq_len, kLongestByDefault);
  if (flags.seq_len > model.max_seq_len) {
    throw UsageError(fmt::format("--seq-len {} is longer than the {} places that the model has",
                                 flags.seq_len, model.max_seq_len));
  }
  return flags.seq_len;
}

int eval(const EvalFlags& flags) {
  const Interruption interruption("the loss is not known yet; the same command begins anew");
  prepare_alone();
  train::require_tokenizer_of_model(flags.folder, {flags.data});
  const train::LoadedModel loaded(flags.folder);
  const std::int64_t length = length_of(flags, loaded.spec());
  const train::EvaluationResult result = train::evaluate(loaded.model(), loaded.parameters(),
                                                         {.corpus = flags.data,
                                                          .vocabulary = loaded.spec().vocab_size,
                                                          .length = length,
                                                          .max_sequences = flags.sequences,
                                                          .between = [&] { interruption.check(); }});
  if (!std::isfinite(result.loss)) {
    throw DataError(fmt::format(
        "{}: the loss is not finite: the model has weights that are not, or too large", flags.folder));
  }
  const double perplexity = std::exp(result.loss);
  if (flags.json) {
    const nlohmann::ordered_json report = {{"model", flags.folder},   {"data", flags.data},
                                           {"loss", result.loss},     {"perplexity", perplexity},
                                           {"tokens", result.tokens}, {"seq_len", length}};
    print(std::cout, report.dump() + "\n");
  } else {
    print(std::cout, fmt::format("loss {:.4f}, perplexity {:.2f}, over {} tokens in sequences of {}\n",
                                 result.loss, perplexity, result.tokens, length));
  }
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("eval", kEvalSummary);
  command->footer(
      "FOLDER is a Hugging Face folder of a GPT-2 or LLaMA, such as the folder model/ that `lockstep train`\n"
      "leaves. The loss is the mean over all tokens, in nats; the perplexity is its exponential.");
  const auto flags = std::make_shared<EvalFlags>();  // shared by the options and the action
  command->add_option("FOLDER", flags->folder, "Folder of the model")->required();
  command->add_option("--data", flags->data, "Corpus, as `lockstep prepare` has written it")->required();
  command
      ->add_option("--seq-len", flags->seq_len,
                   "Tokens of a sequence (default: the model's longest, at most 2048)")
      ->check(whole_number(1, 1 << 24));
  command->add_option("--sequences", flags->sequences, "The first so many sequences only (default: all)")
      ->check(whole_number(1, std::int64_t{1} << 40));
  command->add_flag("--json", flags->json, "Print the result as JSON");
  command->callback([flags, &invocation] { invocation.action = [flags] { return eval(*flags); }; });
}

}  // namespace lockstep::cli
