// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>

#include "lockstep/elastic/membership.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::elastic {
namespace {

constexpr const char* kCoordinator = "LOCKSTEP_COORDINATOR";
constexpr const char* kMember = "LOCKSTEP_MEMBER";

// All members of a generation are there when it begins; if one of them is not connected soon, another
// generation begins sooner than a long wait ends.
constexpr std::chrono::seconds kMeetingTime{10};

}  // namespace

std::optional<Membership::Options> membership_from_environment() {
  const rendezvous::Environment environment = rendezvous::process_environment();
  const auto coordinator = environment.find(kCoordinator);
  if (coordinator == environment.end() || coordinator->second.empty()) return std::nullopt;
  const rendezvous::Placement placement = rendezvous::placement_from_environment();
  Membership::Options options;
  options.coordinator = transport::parse_address(coordinator->second);
  options.credentials.me.role = "elastic";
  options.credentials.me.run = placement.run.value;
  options.credentials.secret = transport::Secret::from_environment();
  options.credentials.tls = transport::tls_from_environment();
  options.host = placement.host_id.value;
  if (const auto member = environment.find(kMember); member != environment.end()) {
    options.id = rendezvous::parse_number({kMember, member->second}, 1, std::numeric_limits<MemberId>::max());
  }
  return options;
}

rendezvous::Placement placement_of(const Place& place, const rendezvous::Placement& base) {
  const std::string source = "coordinator";
  rendezvous::Placement placement = base;
  placement.rank = {place.rank, source};
  placement.world = {static_cast<int>(place.members.size()), source};
  placement.local_rank = {std::nullopt, source};
  placement.local_world = {std::nullopt, source};
  placement.node_rank = {std::nullopt, source};
  placement.master_port = {place.rendezvous_port, source};
  placement.served_by_rank0 = {false, source};
  placement.generation = {place.generation, source};
  placement.timeout = {std::min(base.timeout.value, kMeetingTime), source};
  return placement;
}

}  // namespace lockstep::elastic
