// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <poll.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/mpi_room.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/process.h"
#include "lockstep/transport/mpi/endpoint.h"

namespace lockstep::cli {
namespace {

using rendezvous::Environment;

constexpr std::chrono::seconds kStartLimit{60};
constexpr std::chrono::seconds kEndLimit{5};

std::string mpi_agent() {
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "lockstep-mpi-agent";
  if (std::filesystem::exists(path)) return path.native();
  throw UsageError(
      fmt::format("--against mpi: {} is missing, because this lockstep was built without MPI; install "
                  "libopenmpi-dev and build again",
                  path.native()));
}

std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe").native();
}

std::string mpirun(const Environment& environment) {
  try {
    return rendezvous::find_program("mpirun", environment);
  } catch (const UsageError&) {
    throw UsageError("mpi needs mpirun, which is in no folder of PATH; install openmpi-bin");
  }
}

class MpiCrew : public Crew {
 public:
  MpiCrew(int ranks, const std::string& name, const std::vector<std::string>& agent,
          rendezvous::SignalInbox& signals)
      : Crew(ranks, name, signals) {
    rendezvous::SpawnOptions spawn{
        .program = {},
        .arguments = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks)},
        .environment = rendezvous::process_environment(),
        .capture_output = false,
        .signal_mask = {}};
    spawn.arguments.insert(spawn.arguments.end(), agent.begin(), agent.end());
    spawn.program = mpirun(spawn.environment);
    if (const auto problem = too_little_room_for_mpi(ranks, spawn.environment)) throw UsageError(*problem);
    spawn.environment[kBenchSocketVariable] = address().native();
    spawn.environment[kBenchStoreVariable] = gloo_store_.path().native();
    spawn.environment["OMPI_MCA_btl_vader_backing_directory"] = folder_.path().native();
    mpirun_.emplace(spawn);
    gather([this] { look(); }, Deadline::after(kStartLimit));
  }

  // mpirun ends its ranks in order when they end by themselves or when it is asked to, not when it is killed.
  ~MpiCrew() override {
    dismiss();
    if (mpirun_ && !ended_within(kEndLimit)) {
      mpirun_->signal(SIGTERM);
      ended_within(kEndLimit);
    }
  }

 private:
  void look() {
    if (const auto& status = mpirun_->poll()) {
      throw UsageError(fmt::format("mpirun {} before all {} ranks had called in: see above why",
                                   status->to_string(), ranks()));
    }
  }

  bool ended_within(std::chrono::seconds limit) {
    pollfd ended{.fd = mpirun_->pid_fd(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(limit).count()));
    return mpirun_->poll().has_value();
  }

  const TemporaryFolder gloo_store_;
  // Files of MPI that are left when its ranks are killed go with this folder.
  const TemporaryFolder folder_{mpi_memory_folder(rendezvous::process_environment())};
  std::optional<rendezvous::ChildProcess> mpirun_;
};

}  // namespace

std::unique_ptr<Crew> start_crew_over_mpi(int ranks, rendezvous::SignalInbox& signals) {
  if (!transport::mpi_available()) {
    throw UsageError(
        "--transport mpi: this lockstep was built without MPI; install libopenmpi-dev and build again");
  }
  return std::make_unique<MpiCrew>(
      ranks, "lockstep", std::vector<std::string>{this_program(), "bench", "agent", "mpi"}, signals);
}

std::unique_ptr<Crew> start_mpi_opponent(int ranks, rendezvous::SignalInbox& signals) {
  return std::make_unique<MpiCrew>(ranks, "mpi", std::vector<std::string>{mpi_agent()}, signals);
}

}  // namespace lockstep::cli
