// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/mpi/wire.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include "lockstep/base/error.h"

namespace lockstep::transport::mpi {
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(Transfer::request));

constexpr std::chrono::microseconds kPollInterval{100};

MPI_Request request_of(const Transfer& transfer) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &transfer.request, sizeof(MPI_Request));
  return request;
}

void store(Transfer& transfer, MPI_Request request) {
  std::memcpy(&transfer.request, &request, sizeof(MPI_Request));
}

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

// False at the deadline; the request is then left to MPI.
bool finished(MPI_Request& request, Deadline deadline) {
  int done = 0;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
    if (deadline.passed()) {
      return false;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return done != 0;
}

[[noreturn]] void throw_not_all_here(Deadline deadline) {
  throw Timeout(fmt::format("mpi: not every rank of MPI_COMM_WORLD has arrived within {:.1f} s",
                            std::chrono::duration<double>(deadline.waited()).count()));
}

// Padded with zeros, so that equal names are equal bytes.
using HostName = std::array<char, MPI_MAX_PROCESSOR_NAME>;

HostName processor_name() {
  HostName name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  std::fill(name.begin() + length, name.end(), '\0');
  return name;
}

void require_serialized_threads(int level) {
  if (level < MPI_THREAD_SERIALIZED) {
    throw UsageError(
        "MPI was initialized without support for threads; initialize it with MPI_Init_thread and "
        "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, or let this transport do it");
  }
}

// True if MPI was initialized here, so that it is ours to finalize.
bool initialize() {
  int finalized = 0;
  int initialized = 0;
  int level = MPI_THREAD_SINGLE;
  MPI_Finalized(&finalized);
  if (finalized != 0) {
    throw UsageError("MPI was finalized earlier in this process and cannot be started again");
  }
  MPI_Initialized(&initialized);
  if (initialized != 0) {
    MPI_Query_thread(&level);
    require_serialized_threads(level);
    return false;
  }
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  if (code != MPI_SUCCESS) {
    throw UsageError(fmt::format("MPI_Init_thread failed: {}", text_of(code)));
  }
  require_serialized_threads(level);
  return true;
}

class MpiWire final : public Wire {
 public:
  explicit MpiWire(Deadline deadline) : owns_mpi_(initialize()) {
    // MPI writes into it for as long as it wants, also after the deadline.
    auto comm = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_idup(MPI_COMM_WORLD, comm.get(), &request);
    if (!finished(request, deadline)) {
      static_cast<void>(comm.release());
      throw_not_all_here(deadline);
    }
    comm_ = *comm;
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &world_);
    find_ranks_beside_us(deadline);
  }

  Rank rank() const override { return rank_; }
  int world() const override { return world_; }
  bool shares_host(Rank rank) const override { return shares_host_[static_cast<std::size_t>(rank)]; }

  Transfer send(Rank to, int tag, ConstBytes message) override {
    MPI_Request request = MPI_REQUEST_NULL;
    // Synchronous mode, because a plain send may be buffered at the receiver without limit.
    const int code =
        MPI_Issend(message.data(), static_cast<int>(message.size()), MPI_BYTE, to, tag, comm_, &request);
    return started(code, request);
  }

  Transfer receive(Rank from, int tag, Bytes into) override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int source = from == kAnyRank ? MPI_ANY_SOURCE : from;
    const int code =
        MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_BYTE, source, tag, comm_, &request);
    return started(code, request);
  }

  Outcome test(Transfer& transfer) override {
    MPI_Request request = request_of(transfer);
    if (request == MPI_REQUEST_NULL) {
      return {.state = State::failed};
    }
    int done = 0;
    MPI_Status status = {};
    const int code = MPI_Test(&request, &done, &status);
    store(transfer, request);
    if (code != MPI_SUCCESS) {
      return {.state = State::failed};
    }
    return done != 0 ? outcome_of(status) : Outcome{};
  }

  void cancel(Transfer& transfer) override {
    MPI_Request request = request_of(transfer);
    if (request != MPI_REQUEST_NULL) {
      MPI_Cancel(&request);
    }
  }

  bool leave() override {
    if (!leaving_) {
      leaving_ = true;
      MPI_Ibarrier(comm_, &barrier_);
    }
    int done = 0;
    return MPI_Test(&barrier_, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
  }

  void finish() override {
    MPI_Comm_free(&comm_);
    if (owns_mpi_) {
      MPI_Finalize();
    }
  }

 private:
  // Not by MPI_Comm_split_type, which waits without limit for a rank that stops on its way here.
  void find_ranks_beside_us(Deadline deadline) {
    // By rank; also kept for MPI.
    auto names = std::make_unique<std::vector<HostName>>(static_cast<std::size_t>(world_));
    const HostName mine = processor_name();
    (*names)[static_cast<std::size_t>(rank_)] = mine;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, names->data(), sizeof(HostName), MPI_CHAR, comm_,
                   &request);
    if (!finished(request, deadline)) {
      static_cast<void>(names.release());
      throw_not_all_here(deadline);
    }
    for (const HostName& name : *names) shares_host_.push_back(name == mine);
  }

  static Transfer started(int code, MPI_Request request) {
    Transfer transfer;
    store(transfer, code == MPI_SUCCESS ? request : MPI_REQUEST_NULL);
    return transfer;
  }

  static Outcome outcome_of(const MPI_Status& status) {
    int cancelled = 0;
    int bytes = 0;
    MPI_Test_cancelled(&status, &cancelled);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (cancelled != 0 || bytes < 0) {
      return {.state = State::failed};
    }
    return {.state = State::done, .from = status.MPI_SOURCE, .bytes = static_cast<std::size_t>(bytes)};
  }

  bool owns_mpi_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  Rank rank_ = 0;
  int world_ = 1;
  std::vector<bool> shares_host_;  // by rank
  bool leaving_ = false;
  MPI_Request barrier_ = MPI_REQUEST_NULL;
};

}  // namespace

bool wire_available() {
  return true;
}

std::unique_ptr<Wire> open_wire(Deadline deadline) {
  return std::make_unique<MpiWire>(deadline);
}

}  // namespace lockstep::transport::mpi
