// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/agent_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/elastic/message_codec.h"
#include "lockstep/elastic/pause.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/open_files.h"

namespace lockstep::elastic {
namespace {

// So long a try to reach the coordinator may keep this process from ending.
constexpr std::chrono::milliseconds kTryTime{500};
constexpr std::chrono::seconds kTimeForBrief{10};
constexpr std::size_t kRememberedEnds = 64;

transport::Descriptor open_event() {
  transport::Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) rendezvous::cannot("watch a thread");
  return event;
}

}  // namespace

AgentLink::AgentLink(Options options)
    : options_(std::move(options)), news_(open_event()), wake_(open_event()) {
  options_.credentials.me.rank = kAgentRank;
  ControlChannel first = connect(options_.reconnect_timeout);
  hear_brief(first);
  thread_ = std::jthread([this, channel = std::move(first)](const std::stop_token& stop) mutable {
    run(std::move(channel), stop);
  });
}

void AgentLink::hear_brief(ControlChannel& channel) {
  const Deadline limit = Deadline::after(kTimeForBrief);
  bool is_here = false;
  while (!is_here) {
    if (limit.passed()) throw Timeout("the coordinator has said nothing about its run");
    pollfd entry = {channel.fd(), channel.events(), 0};
    if (!channel.has_more()) ::poll(&entry, 1, static_cast<int>(kTryTime.count()));
    for (const auto& [type, body] : channel.receive()) {
      const ToAgent order = decode_to_agent(type, body);
      const auto* brief = std::get_if<Brief>(&order);
      if (brief != nullptr && !is_here) brief_ = brief->text;
      is_here = is_here || brief != nullptr;
      put(order);
    }
  }
}

AgentLink::~AgentLink() {
  thread_.request_stop();
  ::eventfd_write(wake_.get(), 1);
}

ControlChannel AgentLink::connect(std::chrono::nanoseconds time) const {
  return {transport::dial(options_.coordinator, options_.credentials, Deadline::after(time)).connection,
          Sender::coordinator};
}

// --- The thread

void AgentLink::run(ControlChannel channel, const std::stop_token& stop) {
  std::optional<ControlChannel> present = std::move(channel);
  while (present) {
    try {
      return listen(*present, stop);
    } catch (const DataError& error) {
      put(Over{false, fmt::format("the coordinator is not understood: {}", error.what())});
      return;
    } catch (const Error& error) {
      log::warning(fmt::format("the connection to the coordinator has ended: {}", error.what()));
      present.reset();  // before there is another one
      present = reconnect(stop);
    }
  }
}

// Until it is to stop.
void AgentLink::listen(ControlChannel& channel, const std::stop_token& stop) {
  // Another coordinator may be there than on the connection before.
  bool has_told = false;
  std::uint64_t ended_told = 0;
  while (!stop.stop_requested()) {
    if (is_winding_up_ && !std::exchange(has_told, true)) {
      channel.send(encode(WindUp{fmt::format("the agent on {} was asked to end", rendezvous::host_name())}));
    }
    for (const Ended& ended : news_of_ended(ended_told)) channel.send(encode(ended));
    std::array<pollfd, 2> entries = {{{wake_.get(), POLLIN, 0}, {channel.fd(), channel.events(), 0}}};
    if (!channel.has_more()) ::poll(entries.data(), entries.size(), -1);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
    channel.flush();
    for (const auto& [type, body] : channel.receive()) {
      put(decode_to_agent(type, body));
      has_heard_ = true;
    }
  }
  for (const Ended& ended : news_of_ended(ended_told)) channel.send(encode(ended));  // the last words
}

std::optional<ControlChannel> AgentLink::reconnect(const std::stop_token& stop) {
  if (std::exchange(has_heard_, false)) {
    away_since_ = Clock::now();
  } else {
    pause(kTryTime, wake_.get());  // it hangs up as soon as it is called
  }
  std::string reason = "it hangs up without a word";
  while (!stop.stop_requested() && Clock::now() - away_since_ < options_.reconnect_timeout) {
    try {
      return connect(kTryTime);
    } catch (const AuthenticationError& error) {
      reason = error.what();
      pause(kTryTime, wake_.get());  // another one listens there, and has answered at once
    } catch (const CommError& error) {
      reason = error.what();
    }
  }
  if (!stop.stop_requested()) put(Over{false, fmt::format("the coordinator is away: {}", reason)});
  return std::nullopt;
}

void AgentLink::put(const ToAgent& order) {
  const std::lock_guard lock(mutex_);
  orders_.push_back(order);
  ::eventfd_write(news_.get(), 1);
}

std::vector<Ended> AgentLink::news_of_ended(std::uint64_t& told) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t news = std::min<std::uint64_t>(ended_count_ - told, ended_.size());
  told = ended_count_;
  return {ended_.end() - static_cast<std::ptrdiff_t>(news), ended_.end()};
}

// --- The supervisor

void AgentLink::add_to(std::vector<pollfd>& entries) const {
  entries.push_back({news_.get(), POLLIN, 0});
}

void AgentLink::turn() {
  eventfd_t ignored = 0;
  ::eventfd_read(news_.get(), &ignored);
  const std::lock_guard lock(mutex_);
  for (const ToAgent& order : std::exchange(orders_, {})) {
    if (const auto* kill = std::get_if<Kill>(&order)) fences_.push_back({kill->member, kill->reason});
    if (const auto* over = std::get_if<Over>(&order)) end_ = End{over->is_finished, over->reason};
  }
}

void AgentLink::wind_up() {
  is_winding_up_ = true;
  ::eventfd_write(wake_.get(), 1);
}

void AgentLink::lose(MemberId member, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ended_.push_back({member, reason});
  ++ended_count_;
  if (ended_.size() > kRememberedEnds) ended_.pop_front();
  ::eventfd_write(wake_.get(), 1);
}

std::vector<Fence> AgentLink::take_fences() {
  return std::exchange(fences_, {});
}

Control::Standing AgentLink::standing(MemberId) const {
  return {.name = "", .phase = "", .has_trained = false, .has_left = std::nullopt};
}

}  // namespace lockstep::elastic
