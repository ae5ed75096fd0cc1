// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/cli/bench/agent.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/connect.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::cli {
namespace {

constexpr std::chrono::seconds kStartLimit{30};

class ThreadCrew : public Crew {
 public:
  ThreadCrew(int ranks, const std::vector<int>& hosts, rendezvous::SignalInbox& signals)
      : Crew(ranks, "lockstep", signals) {
    const comm::GroupSettings settings{.hosts = hosts, .links = comm::links_from_environment()};
    auto endpoints = transport::make_loopback(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads_.emplace_back([this, settings, at = address(),
                             endpoint = std::move(endpoints[static_cast<std::size_t>(rank)])]() mutable {
        serve(comm::Communicator(std::move(endpoint), settings), at);
      });
    }
    gather([this] { look(); }, Deadline::after(kStartLimit));
  }
  ~ThreadCrew() override { dismiss(); }

 private:
  void serve(const comm::Communicator& communicator, const std::filesystem::path& coordinator) {
    try {
      serve_commands(LineSocket::connect(coordinator, "the coordinator"), communicator.rank(),
                     systems_on(communicator, gloo_store_.path()));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void look() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  const TemporaryFolder gloo_store_;
  std::mutex mutex_;
  std::exception_ptr failure_;         // of the first thread that could not call in; guarded by mutex_
  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

}  // namespace

std::unique_ptr<Crew> start_thread_crew(int ranks, const std::vector<int>& hosts,
                                        rendezvous::SignalInbox& signals) {
  return std::make_unique<ThreadCrew>(ranks, hosts, signals);
}

}  // namespace lockstep::cli
