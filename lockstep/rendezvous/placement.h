// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/transport/connect/address.h"

namespace lockstep::rendezvous {

inline constexpr std::uint16_t kDefaultPort = 29'500;

// A value and where it came from: "--rank", "LOCKSTEP_RANK", "RANK (torchrun)", "SLURM_PROCID", "default".
template <typename T>
struct Sourced {
  T value{};
  std::string source = "default";
};

// Where a process stands in a run, and how it finds the others.
struct Placement {
  Sourced<Rank> rank;                      // < world
  Sourced<int> world{1};                   // 1 to kMaxWorld
  Sourced<std::optional<int>> local_rank;  // none: counted by host when the ranks meet
  Sourced<std::optional<int>> local_world;
  Sourced<std::optional<int>> node_rank;
  Sourced<std::string> master_host{"127.0.0.1"};
  Sourced<std::uint16_t> master_port{kDefaultPort};
  Sourced<bool> served_by_rank0{true};  // false: a launcher serves at the master address
  Sourced<std::string> run{"default"};  // 1 to 64 of [A-Za-z0-9._-]
  Sourced<std::uint64_t> generation;    // how often the run was restarted
  Sourced<std::string> host_id;
  Sourced<std::string> address;  // of this host, as peers reach it; empty: that of the route to the master
  Sourced<int> threads;          // per process; 0: the cores of the host divided by its ranks
  Sourced<std::chrono::seconds> timeout{std::chrono::seconds(300)};  // for all ranks to meet

  transport::Address master() const { return {master_host.value, master_port.value, {}}; }
};

// One line per value, for people: `name` as in the flag without dashes.
struct PlacementLine {
  std::string_view name;
  std::string value;
  std::string source;
};
std::vector<PlacementLine> describe(const Placement& placement);

}  // namespace lockstep::rendezvous
