// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <poll.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/rendezvous/process.h"

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

std::string mpirun(const Environment& environment) {
  try {
    return rendezvous::find_program("mpirun", environment);
  } catch (const UsageError&) {
    throw UsageError("--against mpi: there is no mpirun; install openmpi-bin");
  }
}

class MpiCrew : public Crew {
 public:
  explicit MpiCrew(int ranks) : Crew(ranks, "mpi") {
    rendezvous::SpawnOptions spawn{.program = {},
                                   .arguments = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n",
                                                 std::to_string(ranks), mpi_agent()},
                                   .environment = rendezvous::process_environment(),
                                   .capture_output = false,
                                   .signal_mask = {}};
    spawn.program = mpirun(spawn.environment);
    spawn.environment[kBenchSocketVariable] = address().native();
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
      throw CommError(fmt::format("mpirun {} before all {} ranks were there", status->to_string(), ranks()));
    }
  }

  bool ended_within(std::chrono::seconds limit) {
    pollfd ended{.fd = mpirun_->pid_fd(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(limit).count()));
    return mpirun_->poll().has_value();
  }

  std::optional<rendezvous::ChildProcess> mpirun_;
};

}  // namespace

std::unique_ptr<Crew> start_mpi_crew(int ranks) {
  return std::make_unique<MpiCrew>(ranks);
}

}  // namespace lockstep::cli
