// SPDX-License-Identifier: Apache-2.0
//
// One rank of Open MPI as an opponent: `lockstep bench collectives --against mpi` starts this program by
// mpirun and gives it commands. Between them it sleeps outside of MPI, whose calls would keep a core busy.
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>

#include <fmt/format.h>
#include <mpi.h>
#include <sys/prctl.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/agent.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/memory.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/bench/values.h"

namespace lockstep::cli {
namespace {

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return MPI_FLOAT;
    case DType::fp64:
      return MPI_DOUBLE;
    case DType::int32:
      return MPI_INT32_T;
    case DType::int64:
      return MPI_INT64_T;
    case DType::uint8:
      return MPI_UINT8_T;
    case DType::bf16:
    case DType::fp16:
      break;
  }
  throw UsageError(
      fmt::format("MPI has no {}; measure another dtype, or leave mpi out of --against", name_of(dtype)));
}

int mpi_count(const Case& what) {
  const std::size_t count = what.bytes / size_of(what.dtype);
  if (count > INT_MAX)
    throw UsageError(fmt::format("MPI_Allreduce takes at most {} elements, not {}", INT_MAX, count));
  return static_cast<int>(count);
}

class MpiTrial : public Trial {
 public:
  explicit MpiTrial(const Case& what)
      : dtype_(what.dtype), type_(mpi_type(what.dtype)), count_(mpi_count(what)), data_(what.bytes) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  void fill() override { fill_values(data_.bytes(), dtype_, rank_, all()); }
  bool is_correct() const override {
    return holds_sum(data_.bytes(), dtype_, ranks_, all(), Comparison::rounding);
  }
  void clear() override { std::memset(data_.bytes().data(), 0, data_.bytes().size()); }
  // Errors end the program: MPI's default, and its users'.
  void run_once() override {
    MPI_Allreduce(MPI_IN_PLACE, data_.bytes().data(), count_, type_, MPI_SUM, MPI_COMM_WORLD);
  }
  void meet() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  Range all() const { return {0, static_cast<std::size_t>(count_)}; }

  DType dtype_;
  MPI_Datatype type_;
  int count_;
  PlainMemory data_;
  int rank_ = 0;
  int ranks_ = 1;
};

std::unique_ptr<Trial> make_trial(const Case& what) {
  if (what.op != schedule::Op::all_reduce) {
    throw UsageError("MPI is measured in all_reduce only; leave mpi out of --against for other operations");
  }
  return std::make_unique<MpiTrial>(what);
}

void serve() {
  const char* coordinator = std::getenv(kBenchSocketVariable);
  if (coordinator == nullptr)
    throw UsageError("lockstep-mpi-agent is started by lockstep bench collectives --against mpi");
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  serve_commands(LineSocket::connect(coordinator, "the coordinator"), rank, {{"mpi", make_trial}});
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  // Without mpirun MPI_Finalize would wait for ever.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    lockstep::cli::serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep-mpi-agent: %s\n", error.what());
    code = 70;
  }
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
