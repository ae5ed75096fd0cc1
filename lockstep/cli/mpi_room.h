// SPDX-License-Identifier: Apache-2.0
//
// The ranks of Open MPI on one host talk through files in a shared-memory filesystem. One that is too small
// makes it print its own pages of text and go on over sockets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/rendezvous/environment.h"

namespace lockstep::cli {

// Pure. Whether mpirun of Open MPI started this process, or another launcher that speaks its language, PMIx.
// What it is told by (OMPI_MCA_...) may be set anywhere.
bool started_by_mpi(const rendezvous::Environment& environment);

// Where those files are to be: where the environment says (OMPI_MCA_btl_vader_backing_directory), or else in
// memory, unless nothing can be written there.
std::filesystem::path mpi_memory_folder(const rendezvous::Environment& environment);

// Pure. What Open MPI makes there for so many ranks of one host, at least one; 0 when the environment
// (OMPI_MCA_btl) says by what ranks talk.
std::uint64_t mpi_memory_bytes(int ranks, const rendezvous::Environment& environment);

// The sentence to end with, or none when there is room for them.
std::optional<std::string> too_little_room_for_mpi(int ranks, const rendezvous::Environment& environment);

}  // namespace lockstep::cli
