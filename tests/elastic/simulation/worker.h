// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/elastic/member.h"

#include "tests/elastic/simulation/data_message.h"
#include "tests/elastic/simulation/saver.h"
#include "tests/elastic/simulation/world.h"

namespace lockstep::elastic::simulation {

// A worker as the real one is: a Member that is connected to the coordinator, and a trainer that does what it
// says and talks to the other workers of its generation.
//
// A generation begins with an exchange. Each offers what it has kept of the decided step, and all come to one
// plan of who gives what to whom; when that is not everything, they try one checkpoint after the other, the
// newest first, until all can read one. When each has what it needs beside what it has kept, and has said so,
// it drops that: in this way one more loss at any moment loses no cell.
class Worker : public Process {
 public:
  Worker(World& world, int node, MemberId id);

  void start();
  // It beats, and its trainer does nothing any more: it says for ever what it was doing then.
  void hang();

  MemberId id() const { return member_.id(); }
  bool has_left() const { return phase_ == Phase::left; }
  Brought brings() const;

  void receive(Connection& connection, const std::vector<std::byte>& message) override;
  void closed(Connection& connection) override;

 private:
  enum class Phase {
    joining,
    healing,
    resuming,
    changing,
    computing,
    summing,
    voting,
    draining,
    waiting,
    left
  };
  struct Inbox {  // of one generation
    using ByRank = std::map<int, DataMessage>;
    ByRank offers;
    std::map<std::int64_t, DataMessage> candidates;  // by round
    std::map<std::int64_t, ByRank> tried;            // by round
    std::set<int> ready;
    std::map<std::int64_t, ByRank> sums;     // by step
    std::map<std::int64_t, ByRank> tidings;  // by round
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
  void on(const Left&) {}  // it ends after a while anyway

  // Training.
  void ask_for_place(const std::string& reason);
  void enter(Phase phase);
  void look_at_inbox();
  void take_offers();
  void try_next_checkpoint();
  void try_candidate(const DataMessage& candidate);
  void count_tried();
  void get_ready(std::int64_t step, Cells cells);
  void change();
  void compute();
  void vote();
  void apply(std::int64_t step);
  void save_if_due();
  void drain(bool is_end);
  void hear_tidings();
  void leave();

  // The other workers.
  void send_all(DataMessage message);
  void send_to(int rank, DataMessage message);
  void take(const DataMessage& message);
  void give_up(const std::string& reason);
  Inbox& inbox() { return inboxes_[place_.generation]; }
  bool has_all(const Inbox::ByRank& messages) const { return std::ssize(messages) == ranks(); }
  int ranks() const { return static_cast<int>(place_.members.size()); }
  bool waits_for_others() const;
  bool is_regrouping() const;

  World& world_;
  Member member_;
  Connection* control_ = nullptr;
  Phase phase_ = Phase::joining;
  std::uint64_t entered_ = 0;  // phases so far
  std::uint64_t progress_ = 0;
  bool is_hung_ = false;
  bool hangs_in_wait_ = false;

  Place place_;
  Held held_;
  std::vector<Range> pieces_;  // that it holds of held_.step
  Cells cells_;                // in them
  std::uint64_t voted_sum_ = 0;
  std::int64_t next_step_ = 0;  // after the exchange
  Cells next_cells_;
  std::vector<checkpoint::Listed> listed_;  // on rank 0: to be tried
  std::set<std::int64_t> promised_;         // then
  std::int64_t first_round_ = 0;            // of the tries of these
  std::int64_t round_ = 0;                  // of tries, or of tidings
  bool is_ending_ = false;                  // while draining: the last step is done
  std::optional<Saver> saver_;              // of the generation
  bool save_is_due_ = false;
  std::map<Generation, Inbox> inboxes_;
  std::map<int, Connection*> peers_;   // by rank
  std::optional<std::string> broken_;  // the data plane, and why
};

}  // namespace lockstep::elastic::simulation
