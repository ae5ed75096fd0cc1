// SPDX-License-Identifier: Apache-2.0
//
// Takes the place of wire.cpp in a build without MPI.
#include "lockstep/base/error.h"
#include "lockstep/transport/mpi/wire.h"

namespace lockstep::transport::mpi {

bool wire_available() {
  return false;
}

std::unique_ptr<Wire> open_wire(Deadline) {
  throw UsageError(
      "the mpi transport is not in this build; install Open MPI (Debian: libopenmpi-dev openmpi-bin) and "
      "configure "
      "with -D LOCKSTEP_MPI=ON");
}

}  // namespace lockstep::transport::mpi
