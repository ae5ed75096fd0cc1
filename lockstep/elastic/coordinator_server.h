// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/elastic/control.h"
#include "lockstep/elastic/control_channel.h"
#include "lockstep/elastic/coordinator.h"
#include "lockstep/elastic/decision_log.h"
#include "lockstep/elastic/history.h"
#include "lockstep/elastic/meeting_place.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::elastic {

// Runs a Coordinator: its members over authenticated connections, its records in a file, its time the
// clock's. What members and agents that break the protocol say ends their connection and nothing else.
//
// While a record cannot be written, nothing behind it is done and the Coordinator's time stands still:
// members wait, and none is judged for that. After join_timeout the run ends instead.
class CoordinatorServer final : public Control {
 public:
  struct Options {
    transport::Address listen;
    transport::Credentials credentials;  // role "elastic"; run, secret and TLS also of the meetings
    CoordinatorOptions coordinator;      // last_generation and decided are the log's
    std::string log_path;
    std::string history_path = {};  // as History takes it
    std::string brief = {};         // what every agent is told first
    Disk* disk = &real_disk();      // of the log; outlives this
    bool awaits_members = true;     // false: those that the log knows of cannot come back
    bool goes_on = true;  // false: what the log knows was decided by another run, all but the numbers
  };
  // UsageError as transport::Listener; errors of the log.
  explicit CoordinatorServer(Options options);

  const transport::Address& address() const { return listener_.address(); }

  void add_to(std::vector<pollfd>& entries) const override;
  std::optional<Clock::time_point> next_deadline() const override;
  void turn() override;
  void wind_up() override;
  bool break_off(const std::string& reason) override;
  void lose(MemberId member, const std::string& reason) override;
  std::vector<Fence> take_fences() override;
  bool has_begun() const override { return has_begun_; }
  bool has_all_steps() const override;
  const std::optional<End>& end() const override { return end_; }
  Standing standing(MemberId member) const override;
  bool has_others() const override { return !agents_.empty(); }

 private:
  struct Guest {
    explicit Guest(ControlChannel its_channel) : channel(std::move(its_channel)) {}

    ControlChannel channel;
    Clock::time_point since = Clock::now();
    MemberId member = 0;              // 0: it has not said yet
    std::optional<std::string> lost;  // why it is to be dropped
  };
  // What is remembered of a member, for reports.
  struct Known {
    std::string host;
    std::optional<Rank> rank;
    std::string phase = "before it had a place";
    bool has_trained = false;
    bool has_left = false;
    bool has_ended = false;  // an agent has told
  };

  // The log cannot be written.
  struct Pause {
    Clock::time_point since;
    Clock::time_point next_try;
    Clock::duration wait;
    std::string reason;
  };

  Time time() const;  // the Coordinator's
  void retry();
  void give_up();
  void pause(const std::string& reason);
  void end_pause();

  void admit();
  void greet(ControlChannel agent);
  void listen_to_agents();
  void listen_to(Guest& guest);
  void hear(Guest& guest, const FromMember& message);
  void hear(const Ended& ended);
  void note(const FromMember& message);
  Guest* guest_of(MemberId member);
  static void drop(Guest& guest, const std::string& reason);
  void drop_lost();
  void perform(const Outputs& outputs);
  void work();
  void tell_failed_start();
  void tell_shortage();
  void perform(const Send& send);
  void forget_ranks_of_others(const Place& place);
  bool record(const Record& record);  // false: not now
  void perform(const Fence& fence);
  void perform(const End& end);
  void tell_agents(const ToAgent& order);
  std::uint16_t meeting_of(const Place& place);

  Options options_;
  DecisionLog log_;
  History history_;
  Coordinator coordinator_;
  transport::Listener listener_;
  log::RateLimit refusals_{std::chrono::seconds(1)};
  MeetingPlace meetings_;
  Generation meeting_generation_ = 0;
  std::uint16_t meeting_port_ = 0;
  std::list<Guest> guests_;
  std::list<ControlChannel> agents_;
  std::map<MemberId, Known> known_;
  std::deque<Output> todo_;  // empty without a pause
  std::optional<Pause> pause_;
  bool winds_up_ = false;
  bool is_short_ = false;          // and it was told
  Clock::duration paused_{0};      // altogether, before this pause
  std::size_t failed_starts_ = 0;  // that were told of
  std::vector<Fence> fences_;
  std::optional<End> end_;
  bool has_begun_ = false;
};

}  // namespace lockstep::elastic
