// SPDX-License-Identifier: Apache-2.0
//
// Lines of NAME=value; a name that begins with "--" is a flag, one that begins with '+' is configuration.
#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/rendezvous/environment.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using rendezvous::Placement;

namespace {

void add(rendezvous::PlacementInputs& inputs, std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;
  std::string name(line.substr(0, equals));
  std::string value(line.substr(equals + 1));
  if (name.starts_with("--")) {
    inputs.command_line[name.substr(2)] = std::move(value);
  } else if (name.starts_with('+')) {
    inputs.config[name.substr(1)] = std::move(value);
  } else {
    inputs.environment[std::move(name)] = std::move(value);
  }
}

void require_sound(const Placement& placement) {
  const int world = placement.world.value;
  fuzz::require(world >= 1 && world <= kMaxWorld, "the world is within its limits");
  fuzz::require(placement.rank.value >= 0 && placement.rank.value < world, "the rank is in the world");
  const auto& local_rank = placement.local_rank.value;
  const auto& local_world = placement.local_world.value;
  fuzz::require(!local_rank || *local_rank >= 0, "the local rank is not negative");
  fuzz::require(!local_world || *local_world >= 1, "the local world is not empty");
  fuzz::require(!local_rank || !local_world || *local_rank < *local_world, "the local rank is in its world");
  fuzz::require(!placement.master_host.value.empty(), "there is a master");
  fuzz::require(!placement.run.value.empty() && placement.run.value.size() <= 64, "the run has a name");
  fuzz::require(placement.threads.value >= 0, "threads are not negative");
  fuzz::require(placement.timeout.value.count() > 0, "the meeting takes time");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  rendezvous::PlacementInputs inputs;
  inputs.detected_host_id = "host";
  while (!input.empty()) add(inputs, input.line());
  Placement placement;
  if (!fuzz::accepts<UsageError>([&] { placement = rendezvous::resolve_placement(inputs); })) return 0;
  require_sound(placement);
  fuzz::require(!rendezvous::describe(placement).empty(), "a placement can be shown");
  return 0;
}
