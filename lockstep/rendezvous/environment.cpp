// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/environment.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/nodelist.h"
#include "lockstep/rendezvous/settings.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::uint64_t kMaxThreads = 4096;
constexpr std::uint64_t kMaxTimeoutSeconds = std::uint64_t{7} * 24 * 3600;
constexpr std::size_t kMaxRunId = 64;
constexpr std::size_t kMaxHostName = 255;

class Resolver {
 public:
  explicit Resolver(const PlacementInputs& inputs) : inputs_(inputs), lookup_(inputs) {}

  Placement run() const {
    Placement placement;
    resolve_identity(placement);
    resolve_master(placement);
    resolve_run(placement);
    resolve_host(placement);
    placement.threads = threads();
    return placement;
  }

  Sourced<int> threads() const {
    Sourced<int> threads;
    auto text = lookup_.any(kThreads);
    // OpenMP allows one number per nesting level; the first is the outermost.
    if (text && text->name.starts_with("OMP_")) text->text = text->text.substr(0, text->text.find(','));
    number(text, threads, 1, kMaxThreads);
    return threads;
  }

 private:
  template <typename T>
  static void number(const std::optional<NamedText>& text, Sourced<T>& into, std::uint64_t least,
                     std::uint64_t most) {
    if (text) into = {static_cast<T>(parse_number(*text, least, most)), text->name};
  }

  static void number(const std::optional<NamedText>& text, Sourced<std::optional<int>>& into,
                     std::uint64_t least, std::uint64_t most) {
    if (text) into = {static_cast<int>(parse_number(*text, least, most)), text->name};
  }

  void resolve_identity(Placement& placement) const {
    const auto rank = lookup_.identity(kRank);
    const auto world = lookup_.identity(kWorld);
    if (!inputs_.hosts.empty()) placement.world = {total_slots(inputs_.hosts), "host file"};
    number(world, placement.world, 1, kMaxWorld);
    number(rank, placement.rank, 0, kMaxWorld - 1);
    check_pair(rank, world, placement);
    resolve_local_world(placement);
    number(lookup_.identity(kLocalRank), placement.local_rank, 0, kMaxWorld - 1);
    number(lookup_.identity(kNodeRank), placement.node_rank, 0, kMaxWorld - 1);
    check_local(placement);
  }

  void resolve_local_world(Placement& placement) const {
    const auto given = lookup_.identity(kLocalWorld);
    number(given, placement.local_world, 1, kMaxWorld);
    if (given || lookup_.launcher() != slurm) return;
    for (std::string_view name : {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES"}) {
      const std::string* nodes = lookup_.in_environment(name);
      if (!nodes) continue;
      if (*nodes == "1") placement.local_world = {placement.world.value, std::string(name)};
      return;
    }
  }

  // A rank without a world, or a world without a rank, is half an environment: guessing the other half would
  // make a run of the wrong size.
  void check_pair(const std::optional<NamedText>& rank, const std::optional<NamedText>& world,
                  const Placement& placement) const {
    if (rank && !world && inputs_.hosts.empty()) {
      throw UsageError(
          fmt::format("{} is set but the number of processes is not: set {}", rank->name, wanted(kWorld)));
    }
    if (!rank && placement.world.value > 1) {
      throw UsageError(fmt::format("{} is {} but the rank of this process is not set: set {}",
                                   placement.world.source, placement.world.value, wanted(kRank)));
    }
    if (placement.rank.value >= placement.world.value) {
      throw UsageError(fmt::format("rank {} from {} is not below the world of {} from {}: ranks count from 0",
                                   placement.rank.value, placement.rank.source, placement.world.value,
                                   placement.world.source));
    }
  }

  std::string wanted(const Field& field) const {
    std::string ours = fmt::format("{} or --{}", field.ours, field.setting);
    const auto launcher = lookup_.launcher();
    if (!launcher) return ours;
    return fmt::format("{} (as {} does), {}", field.theirs[*launcher], kLauncherNames[*launcher], ours);
  }

  static void check_local(const Placement& placement) {
    const auto& [local_rank, rank_source] = placement.local_rank;
    const auto& [local_world, world_source] = placement.local_world;
    if (local_world && *local_world > placement.world.value) {
      throw UsageError(fmt::format("local world {} from {} exceeds the world of {} from {}", *local_world,
                                   world_source, placement.world.value, placement.world.source));
    }
    if (local_rank && *local_rank >= local_world.value_or(placement.world.value)) {
      throw UsageError(fmt::format("local rank {} from {} is not below the local world of {} from {}",
                                   *local_rank, rank_source, local_world.value_or(placement.world.value),
                                   local_world ? world_source : placement.world.source));
    }
  }

  void resolve_master(Placement& placement) const {
    if (!inputs_.hosts.empty()) placement.master_host = {inputs_.hosts.front().host, "host file"};
    if (const auto config = lookup_.by_config(kMasterHost)) set_host(*config, placement.master_host);
    resolve_slurm_master(placement);
    if (const auto text = lookup_.by_launcher(kMasterHost, torchrun)) set_host(*text, placement.master_host);
    stay_on_loopback(placement);
    if (const auto text = lookup_.by_user(kMasterHost)) set_host(*text, placement.master_host);

    const auto port = user_or_torchrun(kMasterPort);
    number(port, placement.master_port, 1, 65'535);
    if (port && port->name.starts_with("MASTER_PORT")) avoid_agent(placement.master_port);
    if (const auto server = lookup_.any(kServer))
      placement.served_by_rank0 = {is_rank0(*server), server->name};
  }

  std::optional<NamedText> user_or_torchrun(const Field& field) const {
    auto text = lookup_.by_user(field);
    return text ? text : lookup_.by_launcher(field, torchrun);
  }

  // Launchers name the host even when all ranks are on it; through loopback they need no secret.
  static void stay_on_loopback(Placement& placement) {
    if (placement.local_world.value != placement.world.value || placement.master_host.source == "default")
      return;
    if (transport::is_loopback(placement.master())) return;
    placement.master_host.source +=
        fmt::format(" is {}, but all ranks are on this host", placement.master_host.value);
    placement.master_host.value = "127.0.0.1";
  }

  void resolve_slurm_master(Placement& placement) const {
    for (std::string_view name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
      if (const std::string* nodes = lookup_.in_environment(name)) {
        placement.master_host = {expand_slurm(name, *nodes).front(), std::string(name)};
        break;
      }
    }
    number(lookup_.by_config(kMasterPort), placement.master_port, 1, 65'535);
    if (const std::string* job = lookup_.in_environment("SLURM_JOB_ID")) {
      const std::uint64_t id = parse_number({"SLURM_JOB_ID", *job}, 0, UINT32_MAX);
      placement.master_port = {static_cast<std::uint16_t>(10'000 + id % 20'000), "SLURM_JOB_ID"};
    }
  }

  static std::vector<std::string> expand_slurm(std::string_view name, const std::string& nodes) {
    try {
      return expand_nodelist(nodes);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", name, error.what()));
    }
  }

  void avoid_agent(Sourced<std::uint16_t>& port) const {
    const std::string* agent = lookup_.in_environment("TORCHELASTIC_USE_AGENT_STORE");
    if (!agent || (*agent != "True" && *agent != "1")) return;
    const bool last = port.value == 65'535;
    port.value = static_cast<std::uint16_t>(last ? port.value - 1 : port.value + 1);
    port.source = fmt::format("MASTER_PORT {} 1 (torchrun's agent uses MASTER_PORT)", last ? '-' : '+');
  }

  static void set_host(const NamedText& text, Sourced<std::string>& into) {
    std::string_view host = text.text;
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    if (host.empty() || host.size() > kMaxHostName || !is_plain(host, "._-:%")) {
      throw UsageError(fmt::format("{} is {}: expected a host name or an address, without a port", text.name,
                                   quote(text.text)));
    }
    into = {std::string(host), text.name};
  }

  static bool is_rank0(const NamedText& text) {
    if (text.text == "rank0") return true;
    if (text.text == "launcher") return false;
    throw UsageError(fmt::format("{} is {}: expected 'rank0' or 'launcher'", text.name, quote(text.text)));
  }

  void resolve_run(Placement& placement) const {
    if (auto text = lookup_.by_user(kRun)) {
      set_run(*text, placement.run);
    } else if (text = lookup_.any(kRun); text) {
      // Launchers write ids in alphabets of their own, such as "prterun-node7-12@1".
      std::replace_if(
          text->text.begin(), text->text.end(),
          [](char c) {
            return !is_plain({&c, 1}, "._-");
          },
          '_');
      set_run(*text, placement.run);
    }
    number(lookup_.any(kGeneration), placement.generation, 0, UINT32_MAX);
    number(lookup_.any(kTimeout), placement.timeout, 1, kMaxTimeoutSeconds);
  }

  static void set_run(const NamedText& text, Sourced<std::string>& into) {
    if (text.text.empty() || text.text.size() > kMaxRunId || !is_plain(text.text, "._-")) {
      throw UsageError(fmt::format("{} is {}: expected 1 to {} letters, digits, '.', '_' or '-'", text.name,
                                   quote(text.text), kMaxRunId));
    }
    into = {text.text, text.name};
  }

  void resolve_host(Placement& placement) const {
    placement.host_id = {inputs_.detected_host_id, "detected"};
    if (const auto text = lookup_.any(kHostId)) {
      if (!is_valid_host_id(text->text)) {
        throw UsageError(fmt::format("{} is {}: expected 1 to {} letters, digits, '.', '_', ':' or '-'",
                                     text->name, quote(text->text), kMaxHostId));
      }
      placement.host_id = {text->text, text->name};
    }
    if (const auto text = lookup_.any(kAddress)) set_host(*text, placement.address);
  }

  const PlacementInputs& inputs_;
  Lookup lookup_;
};

}  // namespace

Environment process_environment() {
  Environment result;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  for (const Field& field : kFields) names.push_back(field.setting);
  return names;
}

std::string setting_help(std::string_view name) {
  for (const Field& field : kFields) {
    if (field.setting == name) return fmt::format("{} ({})", field.meaning, field.ours);
  }
  return "";
}

Placement resolve_placement(const PlacementInputs& inputs) {
  return Resolver(inputs).run();
}

Placement placement_from_environment() {
  PlacementInputs inputs;
  inputs.environment = process_environment();
  inputs.detected_host_id = detect_host_id();
  return resolve_placement(inputs);
}

int resolve_threads(const PlacementInputs& inputs) {
  return Resolver(inputs).threads().value;
}

int threads_from_environment() {
  PlacementInputs inputs;
  inputs.environment = process_environment();
  return resolve_threads(inputs);
}

}  // namespace lockstep::rendezvous
