// SPDX-License-Identifier: Apache-2.0
//
// The variables of Open MPI that say how much memory it takes: one byte of ranks, then the size of a segment
// and, in a second line if there is one, by what ranks talk.
#include "lockstep/cli/mpi_room.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const int ranks = 1 + input.number<std::uint8_t>();
  rendezvous::Environment environment{{"OMPI_MCA_btl_vader_segment_size", std::string(input.line())}};
  if (!input.empty()) environment["OMPI_MCA_btl"] = input.line();
  const std::uint64_t one = cli::mpi_memory_bytes(1, environment);
  const std::uint64_t all = cli::mpi_memory_bytes(ranks, environment);
  fuzz::require(all >= one, "more ranks take no less");
  fuzz::require((one == 0) == environment.contains("OMPI_MCA_btl"), "a rank takes some, unless it is told");
  return 0;
}
