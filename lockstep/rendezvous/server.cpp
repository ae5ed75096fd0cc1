// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/server.h"

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/rendezvous/guest.h"
#include "lockstep/rendezvous/message.h"
#include "lockstep/rendezvous/table.h"
#include "lockstep/rendezvous/text.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::rendezvous {
namespace {

using transport::Listener;

constexpr std::chrono::milliseconds kSlice{20};           // of waiting for newcomers
constexpr std::chrono::milliseconds kBusySlice{1};        // while somebody is in the middle of arriving
constexpr std::chrono::seconds kArrivalTime{10};          // from the proof to the whole arrival
constexpr std::chrono::seconds kAnswerTime{10};           // for all answers together
constexpr std::chrono::milliseconds kPresenceCheck{250};  // how often those who wait prove to be there
constexpr int kAdmissionsPerTurn = 256;
constexpr std::ptrdiff_t kMaxUnannounced = 1024;  // connections that have not sent their arrival

// One meeting: the roster decides, this acts.
class Meeting {
 public:
  Meeting(Listener& listener, int world, std::chrono::milliseconds linger)
      : listener_(listener), roster_(world), linger_(linger) {}

  void run(Deadline deadline, const std::stop_token& stop) {
    while (!roster_.complete()) {
      if (stop.stop_requested()) {
        return refuse({Refusal::Kind::aborted, "the rendezvous was ended before all ranks had come"});
      }
      if (std::min(deadline.end(), first_to_give_up()) <= Clock::now()) return refuse(missing(deadline));
      if (auto why = turn()) {
        refuse({Refusal::Kind::usage, std::move(*why)});
        return tell_latecomers(stop);
      }
    }
    answer_all(encode(roster_.table(fresh_nonce())));
  }

 private:
  // Lets in whoever has come and reads what they say; a text when it means that the ranks cannot meet.
  std::optional<std::string> turn() {
    admit();
    const bool check_all = next_check_ <= Clock::now();
    if (check_all) next_check_ = Clock::now() + kPresenceCheck;
    std::optional<std::string> verdict;
    for (auto guest = guests_.begin(); guest != guests_.end() && !verdict;) {
      const bool stays = (guest->arrival() && !check_all) || hear(*guest, verdict);
      guest = stays ? std::next(guest) : guests_.erase(guest);
    }
    return verdict;
  }

  void admit() {
    const auto is_new = [](const Guest& guest) { return !guest.arrival(); };
    auto wait = std::any_of(guests_.begin(), guests_.end(), is_new) ? kBusySlice : kSlice;
    try {
      for (int i = 0; i < kAdmissionsPerTurn; ++i) {
        guests_.emplace_back(listener_.accept(Deadline::after(wait)), roster_.world());
        wait = std::chrono::milliseconds(0);
      }
    } catch (const Timeout&) {
      // Nobody else is at the door.
    }
    auto excess = std::count_if(guests_.begin(), guests_.end(), is_new) - kMaxUnannounced;
    for (; excess > 0; --excess) guests_.erase(std::find_if(guests_.begin(), guests_.end(), is_new));
  }

  // False when the guest is to be dropped.
  bool hear(Guest& guest, std::optional<std::string>& verdict) {
    const bool had_arrived = guest.arrival().has_value();
    try {
      guest.pump_input();
    } catch (const PeerLost&) {
      if (had_arrived) roster_.remove(guest.rank());
      return false;
    } catch (const UsageError& error) {
      verdict = error.what();
      return true;
    } catch (const DataError& error) {
      log::warning(refusals_, fmt::format("rendezvous: dropped a connection: {}", error.what()));
      if (had_arrived) roster_.remove(guest.rank());
      return false;
    }
    if (!had_arrived && guest.arrival()) {
      forget_if_gone(guest);
      verdict = roster_.add(*guest.arrival());
    }
    return guest.arrival() || guest.since() + kArrivalTime > Clock::now();
  }

  // A process that was restarted may come before the end of its predecessor was noticed.
  void forget_if_gone(const Guest& newcomer) {
    const auto same = std::find_if(guests_.begin(), guests_.end(), [&](const Guest& guest) {
      return &guest != &newcomer && guest.arrival() && guest.rank() == newcomer.rank();
    });
    if (same == guests_.end()) return;
    try {
      same->pump_input();
    } catch (const Error&) {
      roster_.remove(same->rank());
      guests_.erase(same);
    }
  }

  Clock::time_point first_to_give_up() const {
    Clock::time_point first = Clock::time_point::max();
    for (const Guest& guest : guests_) first = std::min(first, guest.gives_up());
    return first;
  }

  Refusal missing(Deadline deadline) const {
    const std::vector<Rank> ranks = roster_.missing();
    return {Refusal::Kind::timeout,
            fmt::format("{} of {} ranks did not come to the rendezvous at {} within {:.1f} s; missing: {}",
                        ranks.size(), roster_.world(), listener_.address().to_string(),
                        std::chrono::duration<double>(deadline.waited()).count(), list_of(ranks))};
  }

  void refuse(const Refusal& refusal) {
    refusal_ = encode(refusal);
    answer_all(refusal_);
  }

  void answer_all(const std::vector<std::byte>& message) {
    for (Guest& guest : guests_) {
      guest.answer(message);
      answered_.insert(guest.rank());
    }
    const Deadline limit = Deadline::after(kAnswerTime);
    guests_.remove_if([](Guest& guest) { return guest.pump_output(); });
    while (!guests_.empty() && !limit.passed()) {
      wait_writable(limit);
      guests_.remove_if([](Guest& guest) { return guest.pump_output(); });
    }
    guests_.clear();
  }

  void wait_writable(Deadline limit) {
    std::vector<pollfd> entries;
    for (const Guest& guest : guests_) entries.push_back({guest.fd(), POLLOUT, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit.left());
    ::poll(entries.data(), entries.size(), static_cast<int>(left.count()));
  }

  // Without this, ranks that start a little later would find nobody and wait until their deadline.
  void tell_latecomers(const std::stop_token& stop) {
    const Deadline limit = Deadline::after(linger_);
    const auto all = static_cast<std::size_t>(roster_.world());
    while (!stop.stop_requested() && !limit.passed() && answered_.size() < all) {
      turn();
      if (std::any_of(guests_.begin(), guests_.end(), [](const Guest& g) { return !!g.arrival(); })) {
        answer_all(refusal_);
      }
    }
  }

  Listener& listener_;
  Roster roster_;
  std::chrono::milliseconds linger_;
  std::list<Guest> guests_;
  Clock::time_point next_check_ = Clock::now();
  std::set<Rank> answered_;
  std::vector<std::byte> refusal_;
  log::RateLimit refusals_{std::chrono::seconds(1)};
};

transport::Credentials credentials_of(const ServerOptions& options) {
  return {.me = {.role = "rendezvous", .rank = -1, .run = options.run, .generation = options.generation},
          .secret = options.secret,
          .tls = options.tls};
}

}  // namespace

std::string fresh_nonce() {
  const transport::Nonce random = transport::random_nonce();
  std::string text;
  for (std::byte byte : std::span(random).first<16>()) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

transport::Address listening_address(const transport::Address& master) {
  if (is_loopback(master)) return master;
  in_addr ignored;
  const bool is_ipv4 = ::inet_pton(AF_INET, master.host.c_str(), &ignored) == 1;
  return {is_ipv4 || !transport::has_ipv6() ? "0.0.0.0" : "::", master.port, {}};
}

Server::Server(ServerOptions options)
    : options_(std::move(options)), listener_(options_.listen, credentials_of(options_)) {}

void Server::serve(Deadline deadline, const std::stop_token& stop) {
  Meeting(listener_, options_.world, options_.linger).run(deadline, stop);
}

}  // namespace lockstep::rendezvous
