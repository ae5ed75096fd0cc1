// SPDX-License-Identifier: Apache-2.0
//
// Virtual time, and processes that live in it: one event after the other, on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "lockstep/elastic/liveness.h"

namespace lockstep::elastic::simulation {

class Events {
 public:
  using Action = std::function<void()>;

  Time now() const { return now_; }
  void at(Time when, Action action);
  void after(Time delay, Action action) { at(now_ + delay, std::move(action)); }
  // Lets the next one happen; false: there is none.
  bool next();

 private:
  Time now_{0};
  std::uint64_t added_ = 0;
  std::map<std::pair<Time, std::uint64_t>, Action> waiting_;  // in order of time, then of adding
};

struct Connection;

// One process on a node. A process that is paused does what was due when it goes on; one that has ended does
// nothing more.
class Process {
 public:
  Process(Events& events, int node) : events_(events), node_(node) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int node() const { return node_; }
  bool is_alive() const { return is_alive_; }
  bool is_paused() const { return is_paused_; }
  bool died_silently() const { return died_silently_; }

  void perform(Events::Action action);
  void after(Time delay, Events::Action action);
  void pause() { is_paused_ = true; }
  void go_on();
  void slow_down(int factor) { slowness_ = factor; }
  // Nobody is told when it ends silently, as when its host loses power.
  void end(bool silently);

  virtual void receive(Connection& connection, const std::vector<std::byte>& message) = 0;
  virtual void closed(Connection& connection) = 0;

 protected:
  Events& events_;

 private:
  int node_;
  int slowness_ = 1;
  bool is_alive_ = true;
  bool is_paused_ = false;
  bool died_silently_ = false;
  std::vector<Events::Action> due_;
};

}  // namespace lockstep::elastic::simulation
