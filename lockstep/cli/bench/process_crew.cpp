// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <list>
#include <optional>
#include <stop_token>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/agent.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/rendezvous/background.h"
#include "lockstep/rendezvous/process.h"
#include "lockstep/rendezvous/server.h"
#include "lockstep/rendezvous/worker_environment.h"

namespace lockstep::cli {
namespace {

using rendezvous::Environment;

constexpr std::chrono::seconds kStartLimit{60};

rendezvous::WorkerGroup group_of(int ranks) {
  return {.world = ranks,
          .first_rank = 0,
          .local_world = ranks,
          .node_rank = 0,
          .master = {"127.0.0.1", 0, {}},
          .run = fmt::format("bench-{}", ::getpid()),
          .secret = transport::Secret::generate(),
          .cores = usable_cores()};
}

rendezvous::ServerOptions server_options(const rendezvous::WorkerGroup& group) {
  return {.listen = group.master,
          .world = group.world,
          .run = group.run,
          .generation = 0,
          .secret = group.secret,
          .tls = transport::tls_from_environment(),
          .linger = std::chrono::milliseconds(500)};
}

class ProcessCrew : public Crew {
 public:
  ProcessCrew(const RankProcesses& what, rendezvous::SignalInbox& signals)
      : Crew(what.ranks, "lockstep", signals), group_(group_of(what.ranks)), server_(server_options(group_)) {
    group_.master.port = server_.address().port;
    rendezvous::SpawnOptions spawn{
        .program = std::filesystem::read_symlink("/proc/self/exe").native(),
        .arguments = {"lockstep", "bench", "agent", std::string(name_of(what.carrier))},
        .environment = {},
        .capture_output = false,
        .signal_mask = {}};
    for (Rank rank = 0; rank < what.ranks; ++rank) {
      spawn.environment = worker_environment(common_environment(), group_, rank);
      if (!what.pretended_hosts.empty()) {
        const int host = what.pretended_hosts[static_cast<std::size_t>(rank)];
        spawn.environment["LOCKSTEP_HOST_ID"] = fmt::format("pretended-{}", host);
      }
      children_.emplace_back(spawn);
    }
    serving_.emplace(
        [this](const std::stop_token& stop) { server_.serve(Deadline::after(kStartLimit), stop); });
    gather_ranks();
  }
  ~ProcessCrew() override { dismiss(); }

 private:
  Environment common_environment() const {
    Environment environment = rendezvous::process_environment();
    environment[kBenchSocketVariable] = address().native();
    environment[kBenchStoreVariable] = gloo_store_.path().native();
    return environment;
  }

  // Ranks that cannot meet may report that before the server has ended, whose failure is why.
  void gather_ranks() {
    try {
      gather([this] { look_at_children(); }, Deadline::after(kStartLimit));
    } catch (const CommError&) {
      serving_->stop();
      require_server();
      throw;
    }
  }

  void require_server() const {
    if (serving_->failed()) serving_->rethrow();
  }

  void look_at_children() {
    require_server();
    Rank rank = 0;
    for (rendezvous::ChildProcess& child : children_) {
      if (const auto& status = child.poll()) {
        throw CommError(fmt::format("rank {} of lockstep (pid {}) {} before it had called in", rank,
                                    child.pid(), status->to_string()));
      }
      ++rank;
    }
  }

  rendezvous::WorkerGroup group_;
  rendezvous::Server server_;
  const TemporaryFolder gloo_store_;
  std::list<rendezvous::ChildProcess> children_;
  std::optional<rendezvous::Background> serving_;  // last: joined before what it uses goes
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) {
    throw UsageError(
        fmt::format("lockstep bench agent is started by lockstep bench collectives, which sets {}", name));
  }
  return value;
}

}  // namespace

std::unique_ptr<Crew> start_process_crew(const RankProcesses& what, rendezvous::SignalInbox& signals) {
  return std::make_unique<ProcessCrew>(what, signals);
}

void run_process_agent(comm::Carrier carrier) {
  const std::string store = variable(kBenchStoreVariable);
  const std::string address = variable(kBenchSocketVariable);
  std::optional<comm::Communicator> world;
  std::exception_ptr failure;
  try {
    world = comm::connect_from_environment({.carrier = carrier});
  } catch (...) {
    failure = std::current_exception();
  }
  LineSocket coordinator = LineSocket::connect(address, "the coordinator");
  if (failure) return report_failure(std::move(coordinator), failure);
  serve_commands(std::move(coordinator), world->rank(), systems_on(*world, store));
}

}  // namespace lockstep::cli
