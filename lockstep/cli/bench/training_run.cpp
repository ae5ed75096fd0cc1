// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/training_run.h"

#include "lockstep/base/philox.h"
#include "lockstep/cli/workers.h"
#include "lockstep/data/corpus/megatron_writer.h"

namespace lockstep::cli {

void write_random_corpus(const std::string& prefix, const spec::RunSpec& run, std::int64_t tokens) {
  const auto vocabulary = static_cast<std::uint64_t>(run.model.vocab_size);
  std::vector<data::Token> text(static_cast<std::size_t>(tokens) + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<data::Token>(philox64(1, 0, i) % vocabulary);
  }
  data::MegatronWriter writer(prefix, data::type_for_vocabulary(vocabulary));
  writer.add(text, true);
  writer.finish();
}

void run_workers(std::vector<std::string> command, const Workers& workers,
                 const rendezvous::Environment& more) {
  rendezvous::LaunchOptions options;
  options.command = {"/bin/sh", "-c", "exec \"$@\" >/dev/null", "sh"};
  options.command.insert(options.command.end(), command.begin(), command.end());
  options.workers = workers.count;
  options.pretended_hosts = workers.pretended_hosts;
  options.environment = rendezvous::process_environment();
  for (const auto& [name, value] : more) options.environment[name] = value;
  require_success(rendezvous::launch(options));
}

}  // namespace lockstep::cli
