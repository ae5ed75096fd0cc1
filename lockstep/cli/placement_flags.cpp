// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/placement_flags.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/rendezvous/host_id.h"

namespace lockstep::cli {
namespace {

constexpr const char* kGroup = "Placement (default: from the environment, see docs/launching.md)";

}  // namespace

void PlacementFlags::add_to(CLI::App& command) {
  for (std::string_view name : rendezvous::setting_names()) {
    command
        .add_option_function<std::string>(
            fmt::format("--{}", name),
            [this, name](const std::string& value) { settings_[std::string(name)] = value; },
            std::string(rendezvous::setting_help(name)))
        ->group(kGroup);
  }
  command.add_option("--hostfile", host_file_, "Lines of `host slots=8`: gives the world and the master")
      ->group(kGroup);
}

rendezvous::Placement PlacementFlags::resolve() const {
  rendezvous::PlacementInputs inputs;
  inputs.environment = rendezvous::process_environment();
  inputs.command_line = settings_;
  inputs.detected_host_id = rendezvous::detect_host_id();
  if (!host_file_.empty()) inputs.hosts = rendezvous::load_hostfile(host_file_);
  return rendezvous::resolve_placement(inputs);
}

}  // namespace lockstep::cli
