// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/elastic/control.h"
#include "lockstep/elastic/control_channel.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::elastic {

// The coordinator as an agent sees it: it says which workers must end, and when the run is over, and is told
// when somebody here wants that, and how workers have ended.
class AgentLink final : public Control {
 public:
  struct Options {
    transport::Address coordinator;
    transport::Credentials credentials;  // role "elastic"
    std::chrono::milliseconds reconnect_timeout{60'000};
  };
  // Connects and waits for the brief. Errors as transport::dial(); Timeout and DataError when it does not
  // come.
  explicit AgentLink(Options options);
  ~AgentLink() override;

  // What the coordinator has told of the run.
  const std::string& brief() const { return brief_; }

  void add_to(std::vector<pollfd>& entries) const override;
  std::optional<Clock::time_point> next_deadline() const override { return std::nullopt; }
  void turn() override;
  void wind_up() override;
  // The run goes on without the workers of this host.
  bool break_off(const std::string&) override { return false; }
  // The coordinator is told, which knows what was lost with it.
  void lose(MemberId member, const std::string& reason) override;
  std::vector<Fence> take_fences() override;
  bool has_begun() const override { return true; }
  bool has_all_steps() const override { return false; }
  const std::optional<End>& end() const override { return end_; }
  // Nothing is known here but how it ends.
  Standing standing(MemberId) const override;
  bool has_others() const override { return false; }

 private:
  ControlChannel connect(std::chrono::nanoseconds time) const;
  void hear_brief(ControlChannel& channel);
  void run(ControlChannel channel, const std::stop_token& stop);
  void listen(ControlChannel& channel, const std::stop_token& stop);
  std::optional<ControlChannel> reconnect(const std::stop_token& stop);
  void put(const ToAgent& order);
  std::vector<Ended> news_of_ended(std::uint64_t& told);

  Options options_;
  std::string brief_;
  std::vector<Fence> fences_;
  std::optional<End> end_;

  transport::Descriptor news_;
  transport::Descriptor wake_;  // of the thread
  // Of the thread alone.
  bool has_heard_ = true;         // anything over the present connection; the brief over the first
  Clock::time_point away_since_;  // while there is none that anything was heard over

  std::atomic<bool> is_winding_up_ = false;
  std::mutex mutex_;  // guards what follows
  std::vector<ToAgent> orders_;
  // The last ones, told again over every new connection: what was sent on one that has ended may be lost.
  std::deque<Ended> ended_;
  std::uint64_t ended_count_ = 0;  // of all

  std::jthread thread_;  // the last: it uses the others
};

}  // namespace lockstep::elastic
