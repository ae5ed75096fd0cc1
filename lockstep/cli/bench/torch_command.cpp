// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/torch_command.h"

#include <algorithm>

#include <fmt/format.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/spec/choices.h"
#include "lockstep/spec/workload.h"

namespace lockstep::cli {

void require_torch_can(const spec::RunSpec& run, int workers, std::string_view flag) {
  const spec::Workload workload = spec::workload_of(run, workers);
  const bool plain = run.training.dtype != DType::fp16 && run.model.name != spec::ModelFamily::mlp &&
                     run.model.dropout == 0 && run.model.rope_scaling == spec::RopeScaling::none &&
                     run.optimizer.name == spec::OptimizerKind::adamw && workload.lanes == workers &&
                     workload.micro_batches_per_lane == 1 &&
                     run.model.head_width * run.model.heads == run.model.width;
  if (!plain) {
    throw UsageError(
        fmt::format("{} trains gpt and llama in fp32 or bf16 with AdamW, without dropout and rope_scaling, "
                    "one micro-batch per "
                    "worker and step: choose that, or leave it out",
                    flag));
  }
}

std::int64_t torch_threads(const spec::RunSpec& run, int workers) {
  const std::int64_t given = run.training.threads;
  return given > 0 ? given : std::max(1, usable_cores() / workers);
}

rendezvous::Environment torch_environment(std::int64_t threads) {
  const std::string count = std::to_string(threads);
  return {{"OMP_NUM_THREADS", count}, {"OPENBLAS_NUM_THREADS", count}};
}

std::vector<std::string> torch_flags(const spec::RunSpec& run, std::int64_t threads) {
  const spec::Model& model = run.model;
  const spec::Training& training = run.training;
  const auto name = [](auto value) {
    return std::string(spec::names_of(value).at(static_cast<std::size_t>(value)));
  };
  std::vector<std::string> flags;
  const auto add = [&](const char* flag, const std::string& value) {
    flags.insert(flags.end(), {flag, value});
  };
  add("--family", name(model.name));
  add("--dtype", name(training.dtype));
  add("--layers", std::to_string(model.layers));
  add("--heads", std::to_string(model.heads));
  add("--kv_heads", std::to_string(model.kv_heads));
  add("--width", std::to_string(model.width));
  add("--ffn_width", std::to_string(model.ffn_width));
  add("--positions", std::to_string(model.max_seq_len));
  add("--vocabulary", std::to_string(model.vocab_size));
  add("--theta", std::to_string(model.rope_theta));
  add("--tokens", std::to_string(training.seq_len));
  add("--batch", std::to_string(training.micro_batch_size));
  add("--steps", std::to_string(training.steps));
  add("--threads", std::to_string(threads));
  if (!model.tied_embeddings) flags.emplace_back("--untied");
  return flags;
}

}  // namespace lockstep::cli
