// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <iostream>
#include <memory>
#include <numeric>

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/rendezvous/hostfile.h"
#include "lockstep/rendezvous/launcher.h"

namespace lockstep::cli {
namespace {

using rendezvous::HostSlots;
using rendezvous::LaunchOptions;
using rendezvous::LaunchResult;

struct LaunchFlags {
  int workers = 0;     // 0: not given
  int nodes = 0;       // 0: not given
  int node_rank = -1;  // not given
  std::string host_file;
  std::string master_host;
  int master_port = rendezvous::kDefaultPort;
  std::string run = "default";
  bool prefix = false;
  double grace_seconds = 5;
};

// Hosts of equal size when only their number is given; the first host is the master unless told otherwise.
std::vector<HostSlots> hosts_from(const LaunchFlags& flags) {
  if (!flags.host_file.empty()) return rendezvous::load_hostfile(flags.host_file);
  const int workers = std::max(1, flags.workers);
  if (flags.nodes > kMaxWorld / workers) {
    throw UsageError(
        fmt::format("{} hosts with {} ranks each are {} ranks, but a world has at most {}: lower "
                    "--nnodes or -n",
                    flags.nodes, workers, flags.nodes * workers, kMaxWorld));
  }
  return std::vector<HostSlots>(static_cast<std::size_t>(flags.nodes), HostSlots{flags.master_host, workers});
}

void require_place(int node_rank, std::size_t hosts) {
  if (static_cast<std::size_t>(node_rank) < hosts) return;
  throw UsageError(fmt::format("--node-rank is {}, but there {} {}: they count from 0", node_rank,
                               hosts == 1 ? "is" : "are", counted(hosts, "host")));
}

LaunchOptions::Hosts place_among(const std::vector<HostSlots>& hosts, const LaunchFlags& flags) {
  if (flags.node_rank < 0) {
    throw UsageError(
        fmt::format("--node-rank is missing: say which of the {} hosts this is, from 0 for the first to {}",
                    hosts.size(), hosts.size() - 1));
  }
  require_place(flags.node_rank, hosts.size());
  const auto here = hosts.begin() + flags.node_rank;
  const std::string& master = flags.master_host.empty() ? hosts.front().host : flags.master_host;
  if (master.empty()) throw UsageError("several hosts need --master-addr: the address of the first one");
  return {.world = rendezvous::total_slots(hosts),
          .first_rank = std::accumulate(hosts.begin(), here, 0,
                                        [](int sum, const HostSlots& host) { return sum + host.slots; }),
          .node_rank = flags.node_rank,
          .master = {master, static_cast<std::uint16_t>(flags.master_port), {}},
          .run = flags.run};
}

void check_hosts(const LaunchFlags& flags) {
  const bool has_file = !flags.host_file.empty();
  if (flags.workers > 0 && has_file) {
    throw UsageError("give either -n or --hostfile: the file says how many ranks each host starts");
  }
  if (flags.nodes > 0 && has_file) {
    throw UsageError("give either --nnodes or --hostfile: the file says which hosts there are");
  }
  if (flags.node_rank >= 0 && flags.nodes == 0 && !has_file) {
    throw UsageError(
        fmt::format("--node-rank {} says which of several hosts this is: give their number with --nnodes, or "
                    "their list with --hostfile, or leave it out",
                    flags.node_rank));
  }
  if (flags.nodes == 1 && flags.node_rank >= 0) require_place(flags.node_rank, 1);
}

LaunchOptions options_from(const LaunchFlags& flags, const std::vector<std::string>& command) {
  if (command.empty()) {
    throw UsageError(
        "no program to launch: write it after the flags, as in `lockstep launch -n 4 ./program`");
  }
  LaunchOptions options;
  options.command = command;
  options.environment = rendezvous::process_environment();
  options.prefix_output = flags.prefix;
  options.grace = std::chrono::milliseconds(static_cast<std::int64_t>(flags.grace_seconds * 1000));
  options.workers = std::max(1, flags.workers);
  check_hosts(flags);
  if (flags.nodes > 1 || !flags.host_file.empty()) {
    const std::vector<HostSlots> hosts = hosts_from(flags);
    options.hosts = place_among(hosts, flags);
    options.workers = hosts[static_cast<std::size_t>(options.hosts->node_rank)].slots;
  }
  return options;
}

int launch(const LaunchFlags& flags, const std::vector<std::string>& command) {
  const LaunchResult result = rendezvous::launch(options_from(flags, command));
  if (result.output_error != 0) {
    throw OutputError(fmt::format("cannot write the output of the ranks: {}; they were ended",
                                  std::strerror(result.output_error)));
  }
  if ((!result.all_succeeded || result.output_dropped) && result.interrupted_by != 0)
    throw Interrupted(result.interrupted_by);
  if (result.first_failure) std::cerr << fmt::format("lockstep: {}\n", result.describe_failure());
  return result.exit_code();
}

void add_host_flags(CLI::App& command, LaunchFlags& flags) {
  const char* group = "Several hosts (run one launcher on each, with the same secret)";
  command.add_option("--nnodes", flags.nodes, "Number of hosts")
      ->check(whole_number(1, kMaxWorld))
      ->group(group);
  command.add_option("--node-rank,--node_rank", flags.node_rank, "Which of these hosts this is, from 0")
      ->check(whole_number(0, kMaxWorld - 1))
      ->group(group);
  command.add_option("--hostfile", flags.host_file, "Lines of `host slots=8`; replaces -n and --nnodes")
      ->group(group);
  command.add_option("--master-addr,--master_addr", flags.master_host, "Address of the first host")
      ->group(group);
  command.add_option("--master-port,--master_port", flags.master_port, "Port on the first host")
      ->check(whole_number(1, 65'535))
      ->capture_default_str()
      ->group(group);
  command.add_option("--run-id", flags.run, "Name of the run; the same on all hosts")
      ->capture_default_str()
      ->group(group);
}

// The parser does not know of the program that follows.
class LaunchUsage : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string name) const override {
    return fmt::format("Usage: {} [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n", name);
  }
};

}  // namespace

void add_launch(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("launch", "Start copies of a program on this host as ranks of one run");
  command->prefix_command();
  command->formatter(std::make_shared<LaunchUsage>());
  command->footer(
      "Write the program and its arguments after the flags, as in: lockstep launch -n 4 ./program "
      "--its-flag\n"
      "(with -- before it if its name begins with a dash). No shell reads them.\n\n"
      "The program finds its rank in RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and "
      "MASTER_PORT,\n"
      "as under torchrun. A secret is made for the run unless LOCKSTEP_SECRET or LOCKSTEP_SECRET_FILE is "
      "set.\n"
      "When a rank fails, the others are ended and the exit code is that of the first failure (128 + signal\n"
      "for one that was killed). Ending the launcher, even with kill -9, ends all ranks.");
  const auto flags = std::make_shared<LaunchFlags>();  // shared by the options and the action
  command->add_option("-n,--workers,--nproc-per-node,--nproc_per_node", flags->workers, "Ranks on this host")
      ->check(whole_number(1, kMaxWorld));
  command->add_flag("--prefix", flags->prefix, "Put the rank before every line of output");
  command
      ->add_option("--grace", flags->grace_seconds,
                   "Seconds the others get to end by themselves after a failure, and again after SIGTERM")
      ->check(number(0, 3600))
      ->capture_default_str();
  add_host_flags(*command, *flags);
  command->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return launch(*flags, invocation.trailing); };
  });
}

}  // namespace lockstep::cli
