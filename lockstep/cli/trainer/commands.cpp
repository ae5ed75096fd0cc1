// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/commands.h"

namespace lockstep::cli {

void add_trainer_commands(CLI::App& app, Invocation& invocation) {
  add_train(app, invocation);
  add_agent(app, invocation);
  add_verify(app, invocation);
  add_eval(app, invocation);
  add_generate(app, invocation);
}

}  // namespace lockstep::cli
