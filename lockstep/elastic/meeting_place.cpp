// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/meeting_place.h"

#include <atomic>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/rendezvous/background.h"
#include "lockstep/rendezvous/server.h"

namespace lockstep::elastic {
namespace {

// The members bring their own patience, and the generation ends when they have none.
constexpr std::chrono::hours kLongest{1};

}  // namespace

class MeetingPlace::Meeting {
 public:
  explicit Meeting(const rendezvous::ServerOptions& options)
      : generation_(options.generation),
        server_(options),
        port_(server_->address().port),
        serving_([this](const std::stop_token& stop) { serve(stop); }) {}

  std::uint16_t port() const { return port_; }
  void request_stop() { serving_.request_stop(); }
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }

 private:
  void serve(const std::stop_token& stop) {
    try {
      server_->serve(Deadline::after(kLongest), stop);
    } catch (const Error& error) {
      // The members give up by themselves.
      log::warning(fmt::format("the meeting of generation {} failed: {}", generation_, error.what()));
    }
    // Whoever comes now is turned away at once, instead of waiting for an answer.
    server_.reset();
    has_ended_.store(true, std::memory_order_release);
  }

  std::uint64_t generation_;
  std::optional<rendezvous::Server> server_;
  std::uint16_t port_;
  std::atomic<bool> has_ended_ = false;
  rendezvous::Background serving_;  // the last: it uses the others
};

MeetingPlace::MeetingPlace(transport::Address listen, transport::Credentials credentials)
    : listen_(std::move(listen)), credentials_(std::move(credentials)) {
  listen_.port = 0;
}

MeetingPlace::~MeetingPlace() = default;

std::uint16_t MeetingPlace::open(Generation generation, int members) {
  close();
  meeting_ = std::make_unique<Meeting>(rendezvous::ServerOptions{.listen = listen_,
                                                                 .world = members,
                                                                 .run = credentials_.me.run,
                                                                 .generation = generation,
                                                                 .secret = credentials_.secret,
                                                                 .tls = credentials_.tls});
  return meeting_->port();
}

// Waiting for the end of its thread would hold up everybody else.
void MeetingPlace::close() {
  std::erase_if(ending_, [](const std::unique_ptr<Meeting>& meeting) { return meeting->has_ended(); });
  if (!meeting_) return;
  meeting_->request_stop();
  ending_.push_back(std::move(meeting_));
}

}  // namespace lockstep::elastic
