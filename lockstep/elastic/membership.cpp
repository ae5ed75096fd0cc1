// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/membership.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/elastic/control_channel.h"
#include "lockstep/elastic/member_id.h"
#include "lockstep/elastic/message_codec.h"
#include "lockstep/elastic/pause.h"
#include "lockstep/rendezvous/open_files.h"

namespace lockstep::elastic {
namespace {

using std::chrono::milliseconds;

// So long a try to reach the coordinator may keep this process from ending.
constexpr milliseconds kTryTime{500};
constexpr std::chrono::seconds kLeaveTime{5};
constexpr std::chrono::milliseconds kTurnedAwayPause{100};

Membership::Options with_id(Membership::Options options) {
  if (options.id == 0) options.id = draw_id();
  return options;
}

// Calls what makes a worker give up, on a thread of its own: it may take its time, and beats must go on.
class Alarm {
 public:
  using Action = std::function<void(const std::string& reason)>;

  Alarm() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // When it returns, the action before it does not run any more and will not.
  void set(Action action) {
    const std::lock_guard calling(calling_);
    const std::lock_guard lock(mutex_);
    action_ = std::move(action);
    is_heard_ = false;
    changed_.notify_all();
  }

  // Every action that is there or comes hears it, once; nothing: no longer.
  void ring(std::optional<std::string> reason) {
    const std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
    is_heard_ = false;
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [this] { return must_call(); });
      }
      const std::lock_guard calling(calling_);
      if (const auto [action, reason] = take(); action) action(reason);
    }
  }

  std::pair<Action, std::string> take() {
    const std::lock_guard lock(mutex_);
    if (!must_call()) return {};
    is_heard_ = true;
    return {action_, *reason_};
  }

  bool must_call() const { return reason_ && action_ && !is_heard_; }

  std::mutex calling_;  // held while the action runs
  std::mutex mutex_;    // guards what follows
  std::condition_variable_any changed_;
  Action action_;
  std::optional<std::string> reason_;
  bool is_heard_ = false;  // by this action
  std::jthread thread_;    // the last: it uses the others
};

}  // namespace

class Membership::Impl {
 public:
  explicit Impl(Options options)
      : options_(with_id(std::move(options))),
        member_(options_.id, options_.host),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) rendezvous::cannot("watch a thread");
    channel_.emplace(connect(options_.reconnect_timeout));
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  ~Impl() {
    thread_.request_stop();
    wake();
  }

  MemberId id() const { return options_.id; }

  Place take_place(const Held& held, const std::string& reason) {
    alarm_.ring(std::nullopt);
    std::unique_lock lock(mutex_);
    check_dismissed();
    placed_.reset();
    decided_.reset();
    send(member_.join(held, reason));
    changed_.wait(lock, [this] { return placed_ || dismissed_ || away_; });
    check_dismissed();
    if (!placed_) throw CommError(*away_);
    return *placed_;
  }

  void begun(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    check_place();
    send(member_.begun(step));
  }

  Decision vote(std::int64_t step) {
    std::unique_lock lock(mutex_);
    check_place();
    decided_.reset();
    send(member_.vote(step));
    LOCKSTEP_FAILPOINT("elastic.vote.sent");
    changed_.wait(lock, [this] { return member_.state() != Member::State::voted; });
    if (!decided_) check_place();
    return *decided_;
  }

  // Until the coordinator answers: whoever ends before that may not be heard. One that is away at the moment
  // hears it when it is back.
  void leave() {
    std::unique_lock lock(mutex_);
    if (member_.state() == Member::State::gone) return;
    alarm_.ring(std::nullopt);
    send(member_.leave());
    changed_.wait_for(lock, kLeaveTime, [this] { return away_ || member_.state() == Member::State::gone; });
  }

  Activity& activity() { return activity_; }
  void on_abandon(Alarm::Action action) { alarm_.set(std::move(action)); }

 private:
  // --- The worker's thread, with the lock

  void check_dismissed() const {
    if (dismissed_) throw Dismissed(dismissed_->reason, dismissed_->is_over);
  }

  void check_place() const {
    check_dismissed();
    if (member_.state() != Member::State::placed) throw GenerationLost(ended_);
  }

  // Either thread, with the lock. What cannot be sent ends the place of this worker, as the coordinator sees
  // it.
  void send(const FromMember& message) {
    if (!channel_) return;
    try {
      channel_->send(encode(message));
      if ((channel_->events() & POLLOUT) != 0) wake();
    } catch (const PeerLost& error) {
      lose_connection(error.what());
    }
  }

  void lose_connection(const std::string& reason) {
    channel_.reset();
    const auto now = Clock::now();
    if (now - connected_since_ >= kTryTime) {
      away_since_ = next_try_ = now;
    } else {
      next_try_ = now + kTurnedAwayPause;  // one that hangs up as soon as it is called is not back
    }
    tell(member_.disconnect(fmt::format("the connection to the coordinator has ended: {}", reason)));
    changed_.notify_all();
    wake();
  }

  void tell(const std::optional<MemberEvent>& event) {
    if (!event) return;
    std::visit([this](const auto& one) { on(one); }, *event);
    changed_.notify_all();
  }

  void on(const Placed& placed) { placed_ = placed.place; }
  void on(const Decided& decided) { decided_ = decided.decision; }
  void on(const GenerationEnded& ended) {
    ended_ = fmt::format("generation {} has ended: {}", ended.generation, ended.reason);
    alarm_.ring(ended_);
  }
  void on(const Refused& refused) {
    dismissed_ = refused;
    alarm_.ring(refused.reason);
  }
  void on(const Left&) { channel_.reset(); }

  // --- The thread of the connection

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested() && is_needed()) {
      if (has_connection()) {
        wait_for_event();
        exchange();
      } else {
        reconnect();
      }
    }
  }

  bool is_needed() {
    const std::lock_guard lock(mutex_);
    return !away_ && (channel_ || member_.state() != Member::State::gone);
  }

  bool has_connection() {
    const std::lock_guard lock(mutex_);
    return channel_.has_value();
  }

  void wait_for_event() {
    std::array<pollfd, 2> entries = {{{wake_.get(), POLLIN, 0}, {-1, POLLIN, 0}}};
    {
      const std::lock_guard lock(mutex_);
      if (!channel_) return;
      if (channel_->has_more()) return;
      entries[1] = {channel_->fd(), channel_->events(), 0};
    }
    const auto left = std::chrono::ceil<milliseconds>(next_beat_ - Clock::now());
    ::poll(entries.data(), entries.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
  }

  void exchange() {
    const std::lock_guard lock(mutex_);
    if (!channel_) return;
    try {
      channel_->flush();
      for (const auto& [type, body] : channel_->receive()) {
        tell(member_.hear(decode_from_coordinator(type, body)));
      }
    } catch (const PeerLost& error) {
      return lose_connection(error.what());
    } catch (const DataError& error) {
      lose_connection(error.what());
      return give_up(fmt::format("the coordinator is not understood: {}", error.what()));
    }
    if (next_beat_ > Clock::now()) return;
    next_beat_ = Clock::now() + options_.beat_interval;
    send(member_.beat(activity_.progress(), activity_.waits()));
  }

  ControlChannel connect(std::chrono::nanoseconds time) const {
    return ControlChannel(
        transport::dial(options_.coordinator, options_.credentials, Deadline::after(time)).connection,
        Sender::coordinator);
  }

  void reconnect() {
    if (const auto wait = time_to_next_try(); wait.count() > 0) return pause(wait, wake_.get());
    try {
      ControlChannel channel = connect(kTryTime);
      const std::lock_guard lock(mutex_);
      channel_.emplace(std::move(channel));
      connected_since_ = Clock::now();
      if (const std::optional<FromMember> first = member_.reconnect()) send(*first);
    } catch (const CommError& error) {
      const std::lock_guard lock(mutex_);
      next_try_ = Clock::now() + kTurnedAwayPause;
      give_up_if_late(error.what());
    }
  }

  milliseconds time_to_next_try() {
    const std::lock_guard lock(mutex_);
    const auto wait = std::chrono::ceil<milliseconds>(next_try_ - Clock::now());
    if (wait.count() > 0) give_up_if_late("it hangs up as soon as it is called");
    return wait;
  }

  // With the lock.
  void give_up_if_late(const std::string& reason) {
    if (Clock::now() - away_since_ < options_.reconnect_timeout) return;
    give_up(fmt::format("the coordinator is away: {}", reason));
  }
  void give_up(const std::string& reason) {
    away_ = reason;
    changed_.notify_all();
  }

  void wake() const { ::eventfd_write(wake_.get(), 1); }

  const Options options_;
  Alarm alarm_;
  Activity activity_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Member member_;
  std::optional<ControlChannel> channel_;             // none while the coordinator is away
  Clock::time_point connected_since_ = Clock::now();  // the last time
  Clock::time_point away_since_ = Clock::now();
  Clock::time_point next_try_{};
  std::optional<Place> placed_;
  std::optional<Decision> decided_;
  std::string ended_;  // why the last generation has
  std::optional<Refused> dismissed_;
  std::optional<std::string> away_;  // for too long

  Clock::time_point next_beat_ = Clock::now();  // of the thread alone
  transport::Descriptor wake_;
  std::jthread thread_;  // the last: it uses the others
};

Membership::Membership(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Membership::~Membership() = default;

MemberId Membership::id() const {
  return impl_->id();
}

Place Membership::take_place(const Held& held, const std::string& reason) {
  Place place = impl_->take_place(held, reason);
  activity().get_on();
  failpoint::set_rank(place.rank);
  LOCKSTEP_FAILPOINT("elastic.placed");
  return place;
}

void Membership::begun(std::int64_t step) {
  impl_->begun(step);
}

Decision Membership::vote(std::int64_t step) {
  const Decision decision = impl_->vote(step);
  activity().get_on();
  LOCKSTEP_FAILPOINT("elastic.decision.heard");
  return decision;
}

void Membership::leave() {
  impl_->leave();
}

Activity& Membership::activity() {
  return impl_->activity();
}

void Membership::on_abandon(std::function<void(const std::string& reason)> action) {
  impl_->on_abandon(std::move(action));
}

}  // namespace lockstep::elastic
