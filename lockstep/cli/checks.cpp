// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/diagnosis.h"
#include "lockstep/cli/mpi_room.h"
#include "lockstep/comm/connect.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/process.h"
#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/connect/secret.h"
#include "lockstep/transport/connect/tls.h"
#include "lockstep/transport/mpi/endpoint.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kTrialBytes = 1 << 20;

TransportCheck check_shm() {
  const transport::Descriptor memory(::memfd_create("lockstep-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  void* mapped = MAP_FAILED;
  if (memory && ::ftruncate(memory.get(), kTrialBytes) == 0) {
    mapped = ::mmap(nullptr, kTrialBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  }
  if (mapped == MAP_FAILED)
    return {"shm", false, fmt::format("cannot map a memory file: {}", std::strerror(errno))};
  ::munmap(mapped, kTrialBytes);
  return {"shm", true, "mapped a memory file"};
}

TransportCheck check_tcp() {
  try {
    const transport::Listener trial({"127.0.0.1", 0, {}},
                                    {.me = {"doctor", -1, "doctor", 0}, .secret = {}, .tls = nullptr});
    return {"tcp", true, fmt::format("listened on {}", trial.address().to_string())};
  } catch (const Error& error) {
    return {"tcp", false, error.what()};
  }
}

TransportCheck check_mpi() {
  return transport::mpi_available() ? TransportCheck{"mpi", true, "built in"}
                                    : TransportCheck{"mpi", false, "not built in"};
}

}  // namespace

std::vector<TransportCheck> check_transports() {
  return {check_shm(), check_tcp(), check_mpi()};
}

std::string check_serving(const rendezvous::Placement& placement) {
  try {
    rendezvous::try_to_serve(placement);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string check_mpi_room(int ranks) {
  const rendezvous::Environment environment = rendezvous::process_environment();
  if (!transport::mpi_available()) return "";
  try {
    rendezvous::find_program("mpirun", environment);
  } catch (const UsageError&) {
    return "";
  }
  return too_little_room_for_mpi(ranks, environment).value_or("");
}

SecretCheck check_secret() {
  SecretCheck result;
  if (std::getenv("LOCKSTEP_SECRET")) result.origin = SecretCheck::Origin::value;
  if (const auto file = transport::Secret::file_in_environment()) {
    result.origin = SecretCheck::Origin::file;
    result.file = *file;
  }
  try {
    transport::Secret::from_environment();
    result.tls = transport::tls_from_environment() != nullptr;
  } catch (const UsageError& error) {
    result.problem = error.what();
  }
  return result;
}

LinkModelCheck check_link_model() {
  LinkModelCheck result;
  if (const char* file = std::getenv("LOCKSTEP_LINK_MODEL")) result.file = file;
  try {
    comm::links_from_environment();
  } catch (const Error& error) {
    result.problem = fmt::format("LOCKSTEP_LINK_MODEL: {}", error.what());
  }
  return result;
}

}  // namespace lockstep::cli
