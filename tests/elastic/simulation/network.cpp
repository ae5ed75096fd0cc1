// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/network.h"

#include <algorithm>
#include <utility>

namespace lockstep::elastic::simulation {
namespace {

// After so long without an acknowledgement a sender gives up.
constexpr Time kGiveUp = std::chrono::seconds(4);

}  // namespace

Connection& Network::dial(Process& from, Process& to, std::uint64_t tag) {
  connections_.push_back(std::make_unique<Connection>());
  Connection& connection = *connections_.back();
  connection.ends[0].process = &from;
  connection.ends[1].process = &to;
  connection.tag = tag;
  return connection;
}

bool Network::is_blocked(const Connection& connection, int to) const {
  return blocked_.contains({connection.ends[1 - to].process->node(), connection.ends[to].process->node()});
}

void Network::send(Connection& connection, const Process& from, const std::vector<std::byte>& message) {
  const int end = connection.end_of(from);
  if (!connection.ends[end].is_open) return;
  if (random_.happens(faults_.drop)) {
    tally_.add(Fault::drop);
    return break_both(connection);
  }
  transmit(connection, 1 - end, message);
  if (random_.happens(faults_.duplicate)) {
    tally_.add(Fault::duplicate);
    transmit(connection, 1 - end, message);
  }
}

void Network::transmit(Connection& connection, int to, std::vector<std::byte> message) {
  Connection::End& end = connection.ends[to];
  const Time delay = std::chrono::microseconds(random_.between(50, 1000 * faults_.most_delay_ms));
  end.last_arrival = std::max(end.last_arrival, events_.now() + delay);
  events_.at(end.last_arrival, [this, &connection, to, number = ++sent_, message = std::move(message)] {
    see_order(connection, to, number);
    if (!is_blocked(connection, to) && connection.ends[to].held_up.empty()) {
      return arrive(connection, to, message);
    }
    connection.ends[to].held_up.push_back(message);
    events_.after(kGiveUp, [this, &connection, to] {
      if (connection.ends[to].held_up.empty()) return;
      connection.ends[to].held_up = {{}};
      tell_closed(connection, 1 - to);
    });
  });
}

void Network::see_order(const Connection& connection, int to, std::uint64_t number) {
  std::uint64_t& newest = newest_[{connection.ends[1 - to].process, connection.ends[to].process}];
  if (number < newest) tally_.add(Fault::reorder);
  newest = std::max(newest, number);
}

void Network::arrive(Connection& connection, int to, const std::vector<std::byte>& message) {
  Connection::End& end = connection.ends[to];
  if (!end.process->is_alive()) {
    const Time delay = end.process->died_silently() ? kGiveUp : random_.milliseconds(1, 5);
    events_.after(delay, [this, &connection, to] { tell_closed(connection, 1 - to); });
    return;
  }
  if (message.empty()) return tell_closed(connection, to);
  end.process->perform([&connection, to, message] {
    if (connection.ends[to].is_open) connection.ends[to].process->receive(connection, message);
  });
}

void Network::tell_closed(Connection& connection, int end) {
  connection.ends[end].process->perform([&connection, end] {
    if (!std::exchange(connection.ends[end].is_open, false)) return;
    connection.ends[end].process->closed(connection);
  });
}

void Network::break_both(Connection& connection) {
  for (const int end : {0, 1}) {
    events_.after(random_.milliseconds(1, 200), [this, &connection, end] { tell_closed(connection, end); });
  }
}

void Network::close(Connection& connection, const Process& by) {
  const int end = connection.end_of(by);
  if (std::exchange(connection.ends[end].is_open, false)) transmit(connection, 1 - end, {});
}

void Network::close_all(const Process& of) {
  for (const auto& connection : connections_) {
    for (const Connection::End& end : connection->ends) {
      if (end.process == &of) close(*connection, of);
    }
  }
}

void Network::release(Connection& connection, int to) {
  for (const auto& message : std::exchange(connection.ends[to].held_up, {})) arrive(connection, to, message);
}

void Network::unblock(int from, int to) {
  if (blocked_.erase({from, to}) == 0) return;
  // Whoever hears something may dial: by number.
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = *connections_[i];
    for (const int end : {0, 1}) {
      if (connection.ends[end].process->node() == to && connection.ends[1 - end].process->node() == from) {
        release(connection, end);
      }
    }
  }
}

void Network::unblock_all() {
  while (!blocked_.empty()) unblock(blocked_.begin()->first, blocked_.begin()->second);
}

}  // namespace lockstep::elastic::simulation
