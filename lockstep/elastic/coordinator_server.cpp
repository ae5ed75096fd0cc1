// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/coordinator_server.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/base/log.h"
#include "lockstep/elastic/member_id.h"
#include "lockstep/elastic/message_codec.h"

namespace lockstep::elastic {
namespace {

constexpr std::chrono::seconds kTimeToSpeak{10};  // from the proof to the first message
// Between two tries to write the log.
constexpr std::chrono::milliseconds kFirstWait{100};
constexpr std::chrono::seconds kLongestWait{5};

CoordinatorOptions with_log(const CoordinatorServer::Options& options, DecisionLog& log) {
  if (!options.goes_on || log.run() == 0) log.begin_run(draw_id());
  CoordinatorOptions coordinator = options.coordinator;
  coordinator.run = log.run();
  coordinator.last_generation = log.last_generation();
  if (!options.goes_on) return coordinator;
  if (options.awaits_members) coordinator.last_members = log.last_members();
  coordinator.decided = log.decided();
  return coordinator;
}

MemberId member_of(const FromMember& message) {
  return std::visit([](const auto& one) { return one.member; }, message);
}

}  // namespace

CoordinatorServer::CoordinatorServer(Options options)
    : options_(std::move(options)),
      log_(options_.log_path, *options_.disk),
      history_(options_.history_path),
      coordinator_(with_log(options_, log_), Clock::now().time_since_epoch()),
      listener_(options_.listen, options_.credentials),
      meetings_(options_.listen, options_.credentials) {}

// --- Waiting

void CoordinatorServer::add_to(std::vector<pollfd>& entries) const {
  entries.push_back({listener_.fd(), POLLIN, 0});
  for (const Guest& guest : guests_) entries.push_back({guest.channel.fd(), guest.channel.events(), 0});
  for (const ControlChannel& agent : agents_) entries.push_back({agent.fd(), agent.events(), 0});
}

std::optional<Clock::time_point> CoordinatorServer::next_deadline() const {
  std::optional<Clock::time_point> next;
  const auto earlier = [&next](Clock::time_point time) { next = next ? std::min(*next, time) : time; };
  if (pause_) {
    earlier(pause_->next_try);
  } else if (const std::optional<Time> deadline = coordinator_.next_deadline()) {
    earlier(Clock::time_point(std::chrono::duration_cast<Clock::duration>(*deadline) + paused_));
  }
  for (const Guest& guest : guests_) {
    if (guest.channel.has_more()) earlier(Clock::now());
    if (guest.member == 0) earlier(guest.since + kTimeToSpeak);
  }
  return next;
}

// --- What comes in

void CoordinatorServer::turn() {
  // Who is silent is judged by when this began: should the process stand still in the middle, what was said
  // meanwhile is heard in the next turn, before time has passed for anybody.
  retry();
  const Time began = time();
  admit();
  listen_to_agents();
  for (Guest& guest : guests_) listen_to(guest);
  drop_lost();
  perform(coordinator_.tick(began));
  drop_lost();
}

void CoordinatorServer::admit() {
  while (auto newcomer = listener_.try_accept()) {
    if (newcomer->peer.rank == kAgentRank) {
      greet({std::move(newcomer->connection), Sender::agent});
      if (end_) tell_agents(Over{end_->is_finished, end_->reason});
    } else {
      guests_.emplace_back(ControlChannel(std::move(newcomer->connection), Sender::member));
    }
  }
}

void CoordinatorServer::greet(ControlChannel agent) {
  try {
    agent.send(encode(ToAgent(Brief{options_.brief})));
    agents_.push_back(std::move(agent));
  } catch (const PeerLost& error) {
    log::warning(fmt::format("an agent has come and gone: {}", error.what()));
  }
}

// That one is gone is seen by reading, too.
void CoordinatorServer::listen_to_agents() {
  std::optional<WindUp> wish;
  std::vector<Ended> ended;
  std::erase_if(agents_, [&](ControlChannel& agent) {
    try {
      agent.flush();
      for (const auto& [type, body] : agent.receive()) {
        const FromAgent message = decode_from_agent(type, body);
        if (const auto* wind_up = std::get_if<WindUp>(&message)) wish = *wind_up;
        if (const auto* one = std::get_if<Ended>(&message)) ended.push_back(*one);
      }
    } catch (const Error&) {
      return true;
    }
    return false;
  });
  for (const Ended& one : ended) hear(one);
  if (!wish) return;
  log::warning(fmt::format("the run is to end: {}", wish->reason));
  wind_up();
}

void CoordinatorServer::listen_to(Guest& guest) {
  try {
    guest.channel.flush();
    for (const auto& [type, body] : guest.channel.receive()) {
      if (!guest.lost) hear(guest, decode_from_member(type, body));
    }
    if (guest.member == 0 && guest.since + kTimeToSpeak <= Clock::now()) guest.lost = "it says nothing";
  } catch (const PeerLost& error) {
    guest.lost = fmt::format("its connection has ended: {}", error.what());
  } catch (const DataError& error) {
    guest.lost = fmt::format("what it says makes no sense: {}", error.what());
    // Nobody else misses it.
    if (guest.member == 0)
      log::warning(refusals_, fmt::format("a stranger was turned away: {}", *guest.lost));
  }
}

// Those of this host their supervisor tells of. One that has not spoken yet to this coordinator may be
// awaited by it, as a member of the one before.
void CoordinatorServer::hear(const Ended& ended) {
  if (const auto found = known_.find(ended.member); found != known_.end()) {
    Known& known = found->second;
    if (known.has_left || std::exchange(known.has_ended, true)) return;  // agents repeat themselves
    log::warning(fmt::format("{} was lost {}: {}",
                             known.rank ? fmt::format("rank {}", *known.rank) : "a worker without a place",
                             known.phase, ended.reason));
  }
  if (Guest* guest = guest_of(ended.member)) {
    listen_to(*guest);  // it may have left
    drop(*guest, ended.reason);
  }
  lose(ended.member, ended.reason);
}

void CoordinatorServer::hear(Guest& guest, const FromMember& message) {
  const MemberId member = member_of(message);
  if (guest.member == 0) {
    // A member that has connected again may be here before the end of its last connection was seen.
    if (Guest* former = guest_of(member)) drop(*former, "it has connected again");
    guest.member = member;
  }
  if (member != guest.member || member == 0) throw DataError("a member speaks for another one");
  note(message);
  perform(coordinator_.hear(message, time()));
}

void CoordinatorServer::note(const FromMember& message) {
  Known& known = known_[member_of(message)];
  if (const auto* join = std::get_if<Join>(&message)) {
    known.host = join->host;
    known.phase = "while it waited for a place";
  } else if (const auto* begun = std::get_if<Begun>(&message)) {
    known.phase = fmt::format("in step {}", begun->step + 1);
    has_begun_ = true;
  } else if (const auto* vote = std::get_if<Vote>(&message)) {
    known.phase = fmt::format("after its vote for step {}", vote->step);
  } else if (std::holds_alternative<Leave>(message)) {
    known.has_left = true;
    known.phase = "after everything was done";
  }
}

CoordinatorServer::Guest* CoordinatorServer::guest_of(MemberId member) {
  const auto found = std::find_if(guests_.begin(), guests_.end(), [member](const Guest& guest) {
    return guest.member == member && !guest.lost;
  });
  return found == guests_.end() ? nullptr : &*found;
}

// Without telling the coordinator, who knows better.
void CoordinatorServer::drop(Guest& guest, const std::string& reason) {
  guest.member = 0;
  guest.lost = reason;
}

// What the coordinator says to that may lose further ones.
void CoordinatorServer::drop_lost() {
  const auto is_lost = [](const Guest& guest) { return guest.lost.has_value(); };
  for (auto guest = std::find_if(guests_.begin(), guests_.end(), is_lost); guest != guests_.end();
       guest = std::find_if(guests_.begin(), guests_.end(), is_lost)) {
    const MemberId member = guest->member;
    const std::string reason = *guest->lost;
    guests_.erase(guest);
    if (member != 0) lose(member, reason);
  }
}

void CoordinatorServer::wind_up() {
  winds_up_ = true;
  if (pause_) return give_up();
  perform(coordinator_.wind_up(time()));
}

// Before the first generation nobody holds anything, and those that wait for it would wait for one who does
// not come.
bool CoordinatorServer::break_off(const std::string& reason) {
  const bool holds = !coordinator_.members().empty();
  perform(holds ? coordinator_.wind_up(time()) : coordinator_.give_up(reason));
  return holds;
}

void CoordinatorServer::lose(MemberId member, const std::string& reason) {
  perform(coordinator_.lose(member, reason, time()));
}

// --- What is to be done

void CoordinatorServer::perform(const Outputs& outputs) {
  std::string abandoned_for;
  for (const Output& output : outputs) {
    const Send* send = std::get_if<Send>(&output);
    const Abandon* abandon = send == nullptr ? nullptr : std::get_if<Abandon>(&send->message);
    if (abandon != nullptr) abandoned_for = abandon->reason;
  }
  todo_.insert(todo_.end(), outputs.begin(), outputs.end());
  if (!pause_) work();
  history_.look(coordinator_, abandoned_for);
  tell_failed_start();
  tell_shortage();
}

void CoordinatorServer::work() {
  for (; !todo_.empty(); todo_.pop_front()) {
    const Output& next = todo_.front();
    if (const Record* change = std::get_if<Record>(&next)) {
      if (!record(*change)) return;
    } else if (const Send* send = std::get_if<Send>(&next)) {
      perform(*send);
    } else if (const Fence* fence = std::get_if<Fence>(&next)) {
      perform(*fence);
    } else {
      perform(std::get<End>(next));
    }
  }
}

void CoordinatorServer::tell_shortage() {
  const bool is_short = coordinator_.is_short();
  if (is_short && !is_short_) {
    log::warning(fmt::format(
        "there are fewer workers than the {} that are needed: they wait up to {:.0f} s for others",
        options_.coordinator.min_members,
        std::chrono::duration<double>(options_.coordinator.join_timeout).count()));
  }
  is_short_ = is_short;
}

// Nothing else tells of them: no process has ended.
void CoordinatorServer::tell_failed_start() {
  const std::size_t count = coordinator_.failed_starts().count();
  if (count > failed_starts_) log::warning(coordinator_.failed_starts().to_string());
  failed_starts_ = count;
}

// A worker that is here and has no place in the new generation is not what it was in the last one. One that
// was lost with its place is still to be named by it.
void CoordinatorServer::forget_ranks_of_others(const Place& place) {
  const std::set<MemberId> members(place.members.begin(), place.members.end());
  for (auto& [member, known] : known_) {
    if (!members.contains(member) && guest_of(member) != nullptr) known.rank.reset();
  }
}

void CoordinatorServer::perform(const Send& send) {
  FromCoordinator message = send.message;
  Known& known = known_[send.to];
  if (auto* place = std::get_if<Place>(&message)) {
    if (place->rank == 0) forget_ranks_of_others(*place);
    place->rendezvous_port = meeting_of(*place);
    known.rank = place->rank;
    known.phase = fmt::format("while generation {} came together", place->generation);
  } else if (const auto* decision = std::get_if<Decision>(&message)) {
    LOCKSTEP_FAILPOINT("elastic.decision.made");
    // What it does with it, or whether there is another step, is not known here.
    known.phase = fmt::format("after step {} was decided", decision->step);
    known.has_trained = true;
  } else if (const auto* dismiss = std::get_if<Dismiss>(&message)) {
    if (dismiss->is_over) known.has_left = true;
  } else if (const auto* abandon = std::get_if<Abandon>(&message)) {
    if (abandon->generation == meeting_generation_) meetings_.close();
  }
  Guest* guest = guest_of(send.to);
  if (guest == nullptr) return;
  try {
    guest->channel.send(encode(message));
  } catch (const PeerLost& error) {
    guest->lost = fmt::format("its connection has ended: {}", error.what());
  }
}

std::uint16_t CoordinatorServer::meeting_of(const Place& place) {
  if (place.members.size() == 1) return 0;  // nobody to meet
  if (place.generation != meeting_generation_) {
    meeting_generation_ = place.generation;
    meeting_port_ = meetings_.open(place.generation, static_cast<int>(place.members.size()));
  }
  return meeting_port_;
}

bool CoordinatorServer::record(const Record& record) {
  try {
    log_.append(record);
  } catch (const UsageError& error) {
    pause(error.what());
    return false;
  }
  end_pause();
  LOCKSTEP_FAILPOINT("elastic.generation.recorded");
  log::debug(fmt::format("generation {} has {} members{}", record.generation, record.members.size(),
                         record.is_rollback ? " and goes back to an older step" : ""));
  return true;
}

void CoordinatorServer::perform(const Fence& fence) {
  if (Guest* guest = guest_of(fence.member)) drop(*guest, fence.reason);
  fences_.push_back(fence);
  tell_agents(Kill{fence.member, fence.reason});
}

void CoordinatorServer::perform(const End& end) {
  end_ = end;
  meetings_.close();
  tell_agents(Over{end.is_finished, end.reason});
}

void CoordinatorServer::tell_agents(const ToAgent& order) {
  std::erase_if(agents_, [message = encode(order)](ControlChannel& agent) {
    try {
      agent.send(message);
    } catch (const PeerLost&) {
      return true;
    }
    return false;
  });
}

std::vector<Fence> CoordinatorServer::take_fences() {
  return std::exchange(fences_, {});
}

bool CoordinatorServer::has_all_steps() const {
  const std::int64_t last = options_.coordinator.last_step;
  return last == kNoStep ? end_ && end_->is_finished : coordinator_.decided() >= last;
}

Control::Standing CoordinatorServer::standing(MemberId member) const {
  const auto found = known_.find(member);
  if (found == known_.end()) return {};
  const Known& known = found->second;
  return {.name = known.rank ? fmt::format("rank {}", *known.rank) : "",
          .phase = known.phase,
          .has_trained = known.has_trained,
          .has_left = known.has_left};
}

// --- While the log cannot be written

Time CoordinatorServer::time() const {
  return (pause_ ? pause_->since : Clock::now()).time_since_epoch() - paused_;
}

void CoordinatorServer::pause(const std::string& reason) {
  if (!pause_) {
    log::warning(fmt::format("{}; all workers wait until it can be written", reason));
    pause_ = Pause{.since = Clock::now(), .next_try = {}, .wait = kFirstWait, .reason = {}};
  }
  pause_->reason = reason;
  pause_->next_try = Clock::now() + pause_->wait;
  pause_->wait = std::min<Clock::duration>(2 * pause_->wait, kLongestWait);
}

void CoordinatorServer::end_pause() {
  if (pause_) paused_ += Clock::now() - pause_->since;
  pause_.reset();
}

void CoordinatorServer::retry() {
  if (!pause_ || Clock::now() < pause_->next_try) return;
  work();
  if (pause_ && (winds_up_ || Clock::now() - pause_->since >= options_.coordinator.join_timeout)) give_up();
}

// Without a log no generation can begin.
void CoordinatorServer::give_up() {
  const std::string reason = pause_->reason;
  todo_.clear();
  end_pause();
  perform(coordinator_.give_up(reason));
}

}  // namespace lockstep::elastic
