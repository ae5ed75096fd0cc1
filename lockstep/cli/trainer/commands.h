// SPDX-License-Identifier: Apache-2.0
//
// The commands that compute with libtorch, which takes longer to load than most other commands take to run.
// So they live in a program of their own, lockstep-trainer, and `lockstep` hands over to it.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/cli/commands.h"

namespace lockstep::cli {

// All of them. In lockstep (forward.cpp) they start lockstep-trainer, in lockstep-trainer (commands.cpp) they
// do their work.
void add_trainer_commands(CLI::App& app, Invocation& invocation);

inline constexpr const char* kTrainSummary = "Train the model that a run file describes";
inline constexpr const char* kAgentSummary = "Add workers of this host to a run on another";
inline constexpr const char* kEvalSummary = "Tell the loss of a model on a corpus";
inline constexpr const char* kGenerateSummary = "Let a model write text";
void add_train(CLI::App& app, Invocation& invocation);
void add_agent(CLI::App& app, Invocation& invocation);
void add_eval(CLI::App& app, Invocation& invocation);
void add_generate(CLI::App& app, Invocation& invocation);

inline constexpr const char* kVerifySummary =
    "Compare a run on one process with the same on several, bit for bit";
void add_verify(CLI::App& app, Invocation& invocation);

// `lockstep bench kernels ARGUMENTS...`, as run_bench() (bench.h).
int run_kernel_bench(const std::vector<std::string>& arguments, std::ostream& out);

// `lockstep checkpoint export ARGUMENTS...` and `import`, as the former.
inline constexpr const char* kExportSummary = "Write the weights of a checkpoint as a Hugging Face folder";
inline constexpr const char* kImportSummary = "Make a checkpoint of the weights of a Hugging Face folder";
int run_checkpoint_export(const std::vector<std::string>& arguments);
int run_checkpoint_import(const std::vector<std::string>& arguments);

}  // namespace lockstep::cli
