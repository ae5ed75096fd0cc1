// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/cli/bench/agent.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::cli {
namespace {

constexpr std::chrono::seconds kStartLimit{30};

class ThreadCrew : public Crew {
 public:
  explicit ThreadCrew(int ranks) : Crew(ranks, "lockstep") {
    auto endpoints = transport::make_loopback(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads_.emplace_back(
          [this, at = address(), endpoint = std::move(endpoints[static_cast<std::size_t>(rank)])]() mutable {
            serve(comm::Communicator(std::move(endpoint)), at);
          });
    }
    gather([] {}, Deadline::after(kStartLimit));
  }
  ~ThreadCrew() override { dismiss(); }

 private:
  void serve(const comm::Communicator& communicator, const std::filesystem::path& coordinator) {
    try {
      serve_commands(LineSocket::connect(coordinator, "the coordinator"), communicator.rank(),
                     systems_on(communicator, store_));
    } catch (const std::exception& error) {
      log::error(error.what());
    }
  }

  const std::filesystem::path store_ = fresh_gloo_store();
  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

}  // namespace

std::unique_ptr<Crew> start_thread_crew(int ranks) {
  return std::make_unique<ThreadCrew>(ranks);
}

}  // namespace lockstep::cli
