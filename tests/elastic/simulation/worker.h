// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "lockstep/elastic/member.h"

#include "tests/elastic/simulation/data_message.h"
#include "tests/elastic/simulation/world.h"

namespace lockstep::elastic::simulation {

// A worker as the real one is: a Member that is connected to the coordinator, and a trainer that does what it
// says and talks to the other workers of its generation.
//
// A generation begins with an exchange. Each offers the cells that it holds of the decided step; when all
// offers are there, each has its new cells beside its old ones, and says so; when all have said so, it drops
// the old ones. In this way one more loss at any moment loses no cell.
class Worker : public Process {
 public:
  Worker(World& world, int node, MemberId id);

  void start();
  void hang() { is_hung_ = true; }  // it beats, and its trainer does nothing any more

  MemberId id() const { return member_.id(); }
  bool has_left() const { return phase_ == Phase::left; }
  Brought brings() const;

  void receive(Connection& connection, const std::vector<std::byte>& message) override;
  void closed(Connection& connection) override;

 private:
  enum class Phase { joining, healing, changing, computing, summing, voting, finishing, left };
  struct Inbox {  // of one generation
    std::map<int, DataMessage> offers;
    std::set<int> ready;
    std::map<std::int64_t, std::map<int, std::uint64_t>> sums;
    std::map<std::int64_t, std::set<int>> saved;
    std::set<std::int64_t> committed;
  };

  // The connection to the coordinator.
  void dial();
  void tell(const FromMember& message);
  void beat();

  // What it says.
  void happened(const MemberEvent& event);
  void on(const Placed& placed);
  void on(const Decided& decided);
  void on(const GenerationEnded& ended);
  void on(const Refused& refused);

  // Training.
  void ask_for_place(const std::string& reason);
  void enter(Phase phase);
  void look_at_inbox();
  void heal();
  void change();
  void compute();
  void vote();
  void apply(std::int64_t step);
  void save();
  void commit_when_saved();
  void leave();

  // The other workers.
  void send_all(DataMessage message);
  void send_to(int rank, DataMessage message);
  void take(const DataMessage& message);
  void give_up(const std::string& reason);
  int ranks() const { return static_cast<int>(place_.members.size()); }
  bool waits_for_others() const;

  World& world_;
  Member member_;
  Connection* control_ = nullptr;
  Phase phase_ = Phase::joining;
  std::uint64_t entered_ = 0;  // phases so far
  std::uint64_t progress_ = 0;
  bool is_hung_ = false;

  Place place_;
  bool holds_decided_ = false;
  Held held_;
  Cells cells_;  // of held_.step
  std::uint64_t voted_sum_ = 0;
  std::int64_t next_step_ = 0;  // after the exchange
  Cells next_cells_;
  std::map<Generation, Inbox> inboxes_;
  std::map<int, Connection*> peers_;   // by rank
  std::optional<std::string> broken_;  // the data plane, and why
};

}  // namespace lockstep::elastic::simulation
