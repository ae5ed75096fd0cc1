// SPDX-License-Identifier: Apache-2.0
//
// Who trains together, and which steps count: a state machine without clock, network or disk of its own.
// Whoever runs it hands in what has happened and the time (of a clock that only goes forward), and does what
// it gives back, in order.
//
// A generation begins when enough members want a place (everybody that the run was started with, the first
// time; later as soon as there are enough), and ends with the loss or departure of one of its members, or
// after a decision that says so because members have come. A step is decided when all members of the
// generation have voted for it. A number is on the disk before it is given to a generation, so that a
// coordinator that was started again never uses it twice; what was decided it learns from the members, who
// know.
//
// When generations end before their first step again and again and nobody is lost, those of the last one that
// hold nothing (or, where nobody holds anything, those of other hosts) are dismissed if the others suffice;
// and when that does not help either, the run ends.
//
// A run that has had too few members for too long ends; before that, those that are there and hold something
// get a generation that saves it, if they are enough for one replica of the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/elastic/failed_starts.h"
#include "lockstep/elastic/host_losses.h"
#include "lockstep/elastic/liveness.h"
#include "lockstep/elastic/message.h"

namespace lockstep::elastic {

struct CoordinatorOptions {
  int expected = 1;     // members that the first generation is waited for
  int min_members = 1;  // fewer do not train
  int max_members = 1;  // more are kept as spares
  int multiple = 1;     // a generation has a multiple of so many: those of one replica of the model
  int pipeline = 1;     // of which so many are behind each other, and the others beside each other
  Time beat_timeout = std::chrono::seconds(10);   // a member that does not beat for so long is lost
  Time stall_timeout = std::chrono::seconds(60);  // one that beats, but neither gets on nor says it waits
  // One that says that it waits, when others wait for it without a deadline. More than that of any wait
  // of members that can end.
  Time wait_timeout = std::chrono::seconds(360);
  Time join_timeout = std::chrono::seconds(60);  // so long a run with too few members waits for more
  bool can_save = false;                         // members can save what they hold
  std::int64_t last_step = kNoStep;              // with which everything is done; kNoStep: unknown
  // Of the coordinator: members of this host have the first ranks. Rank 0 has the files of the run, and who
  // is cut off with them keeps them from the others. Empty: none.
  std::string host = {};
  LossLimits losses = {};  // of hosts; a flapping one gets no place
  RunId run = 0;           // what members of another one hold counts for nothing: they are dismissed
  // What the log knows of (decision_log.h): the last generation, its members by rank, what was decided.
  Generation last_generation = 0;
  std::vector<MemberId> last_members = {};
  std::int64_t decided = kNoStep;
};

// What is to be done, in this order.
struct Send {
  MemberId to = 0;
  FromCoordinator message;
  bool operator==(const Send&) const = default;
};
// Put on the disk before what follows is done, however long that takes.
struct Record {
  Generation generation = 0;
  std::vector<MemberId> members = {};
  std::int64_t decided = kNoStep;
  bool is_rollback = false;  // the generation goes on from an older step than was decided
  bool operator==(const Record&) const = default;
};
// The member is frozen: see that its process ends. Should it come back, it is dismissed.
struct Fence {
  MemberId member = 0;
  std::string reason;
  bool operator==(const Fence&) const = default;
};
// The run is over: everything was done, or there were too few members for too long.
struct End {
  bool is_finished = false;
  std::string reason;
  bool operator==(const End&) const = default;
};
using Output = std::variant<Send, Record, Fence, End>;
using Outputs = std::vector<Output>;

class Coordinator {
 public:
  // UsageError for numbers of members that no generation can have.
  Coordinator(const CoordinatorOptions& options, Time now);

  // What comes over a connection that a newer one of the same member has replaced must not be handed in.
  Outputs hear(const FromMember& message, Time now);
  // Its connection was closed (its newest one) or its process has ended, by whichever is noticed first. It
  // may come back by a Join.
  Outputs lose(MemberId member, const std::string& reason, Time now);
  // Looks at what time alone brings; call it at least whenever next_deadline() has passed, and after
  // everything that has come until then was handed in: who has slept itself must not take the others for
  // silent. So `now` is when that was begun, and may be before the time of what was handed in since.
  Outputs tick(Time now);
  std::optional<Time> next_deadline() const;
  // Somebody wants the run to end: members that are too few wait no longer.
  Outputs wind_up(Time now);
  // Whoever runs it cannot do what it says: the run ends, and may go on another time.
  Outputs give_up(const std::string& reason);

  Generation generation() const { return generation_; }          // the present one, or the last
  bool is_running() const { return phase_ == Phase::running; }   // a generation is under way
  bool has_begun() const { return is_running() && has_begun_; }  // and all its members have
  // Members of the last generation wait, and are too few for another one.
  bool is_short() const;
  const FailedStarts& failed_starts() const { return failed_starts_; }
  bool has_left() const { return has_left_; }  // a member has done everything: no further generation begins
  std::int64_t decided() const { return decided_; }
  const std::vector<MemberId>& members() const { return members_; }  // of the generation, by rank

 private:
  // gathering: waits for members of the last generation that have not come back, or for more members.
  // finishing: a member has done everything, and no further generation begins.
  enum class Phase { gathering, running, finishing, ended };

  struct Known {
    Join join = {};           // its newest
    bool wants_place = true;  // false: it has a place, or has not come back from the one it had
    std::uint64_t order = 0;  // of its first Join among all
    Duty duty = Duty::none;
    Liveness liveness;
    std::optional<std::int64_t> begun = std::nullopt;
    bool has_voted = false;
  };

  void on(const Join& join, Time now);
  void on(const Begun& begun, Time now);
  void on(const Beat& beat, Time now);
  void on(const Vote& vote, Time now);
  void on(const Leave& leave, Time now);

  Known* placed(MemberId member, Generation generation);  // null: has no place in it
  void begin_if_all_have(Time now);
  void limit_waits(Time now);
  void decide_if_all_voted(Time now);
  void abandon(const std::string& reason, Time now);
  // The same, and no loss is the reason.
  void fail(const std::string& reason, Time now);
  void forget_failures_with(MemberId lost);
  void fence_silent(Time now);
  void dismiss(MemberId member, const std::string& reason, bool is_over);
  // True: it was dismissed, because its host is flapping.
  bool refuse(const Join& join, Time now);
  void advance(Time now);
  void form(const std::vector<MemberId>& members, Time now);
  // Those who wait are too few, and no others are waited for.
  void save_and_end(const std::vector<MemberId>& candidates, Time now);
  // Dismisses those of the last generation that are better left out; the others come back, of candidates.
  std::vector<MemberId> leave_out(const std::vector<MemberId>& candidates, Time now);
  void end(bool is_finished, const std::string& reason);

  // Those that want a place: first who was in the newest generation, of these who is there with all of its
  // replica of the model, then those of this host, by rank, then by age.
  std::vector<MemberId> waiting() const;
  std::vector<MemberId> choose(const std::vector<MemberId>& members, int least) const;  // none: too few
  bool would_grow() const;
  bool was_in_whole_replica(const Join& join) const;
  bool is_anyone_awaited() const;
  bool is_member(MemberId member) const;       // of the generation, or of the last one
  std::string name_of(MemberId member) const;  // "rank 2", in it; for people
  Outputs take_outputs();

  CoordinatorOptions options_;
  Phase phase_ = Phase::gathering;
  Generation generation_;
  std::int64_t decided_;
  std::vector<MemberId> members_;
  std::map<MemberId, Known> known_;
  std::set<MemberId> fenced_;
  HostLosses losses_;
  FailedStarts failed_starts_;
  std::uint64_t joins_ = 0;
  bool has_begun_ = false;           // all members of the generation have
  bool has_decided_ = false;         // the generation has, a step
  bool has_left_ = false;            // a member with a place
  std::optional<Time> short_since_;  // there are too few members
  bool is_winding_up_ = false;
  std::optional<std::string> closing_;  // why the run ends unfinished; a generation that is there only saves
  Outputs outputs_;
};

}  // namespace lockstep::elastic
