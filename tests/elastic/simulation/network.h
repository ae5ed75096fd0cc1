// SPDX-License-Identifier: Apache-2.0
//
// Connections as TCP makes them: messages of one direction arrive in order or not at all, and a message that
// is dropped ends its connection. Different connections know nothing of each other's order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/elastic/simulation/process.h"
#include "tests/elastic/simulation/random.h"
#include "tests/elastic/simulation/tally.h"

namespace lockstep::elastic::simulation {

struct Connection {
  // Either end of it, by who has dialled: 0, and who was called: 1.
  struct End {
    Process* process = nullptr;
    bool is_open = true;
    Time last_arrival{0};
    std::deque<std::vector<std::byte>> held_up = {};  // behind a blocked link; an empty one closes
  };
  End ends[2];
  std::uint64_t tag = 0;  // of whoever has dialled
  int end_of(const Process& process) const { return ends[0].process == &process ? 0 : 1; }
};

struct NetworkFaults {
  double drop = 0;
  double duplicate = 0;
  int most_delay_ms = 5;
};

class Network {
 public:
  Network(Events& events, Random& random, Tally& tally) : events_(events), random_(random), tally_(tally) {}

  void set_faults(const NetworkFaults& faults) { faults_ = faults; }
  // Between nodes, in one direction. What is sent meanwhile arrives later, or its sender gives up.
  void block(int from, int to) { blocked_.insert({from, to}); }
  void unblock(int from, int to);
  void unblock_all();

  Connection& dial(Process& from, Process& to, std::uint64_t tag);
  // Nothing happens when this side has closed it or knows that it is.
  void send(Connection& connection, const Process& from, const std::vector<std::byte>& message);
  void close(Connection& connection, const Process& by);
  // All of a process that has ended.
  void close_all(const Process& of);

 private:
  void transmit(Connection& connection, int to, std::vector<std::byte> message);
  void see_order(const Connection& connection, int to, std::uint64_t number);
  void arrive(Connection& connection, int to, const std::vector<std::byte>& message);
  void release(Connection& connection, int to);
  void tell_closed(Connection& connection, int end);
  void break_both(Connection& connection);
  bool is_blocked(const Connection& connection, int to) const;

  Events& events_;
  Random& random_;
  Tally& tally_;
  std::uint64_t sent_ = 0;
  std::map<std::pair<const Process*, const Process*>, std::uint64_t> newest_;  // that has arrived
  NetworkFaults faults_;
  std::set<std::pair<int, int>> blocked_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace lockstep::elastic::simulation
