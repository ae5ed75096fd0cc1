// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/rank.h"
#include "lockstep/elastic/coordinator.h"

namespace lockstep::elastic {

// As an agent proves itself (Identity::rank); workers have none.
inline constexpr Rank kAgentRank = 0;

// Who says what becomes of the workers of this host: the coordinator of the run, here or elsewhere. No call
// blocks for long. Not thread-safe.
class Control {
 public:
  virtual ~Control() = default;

  // What to wait for before the next turn().
  virtual void add_to(std::vector<pollfd>& entries) const = 0;
  virtual std::optional<Clock::time_point> next_deadline() const = 0;
  virtual void turn() = 0;

  // Somebody wants the run to end; the workers were told so.
  virtual void wind_up() = 0;
  // A worker of this host ends all of them: `reason`. True: the run ends with them, and they hold what is
  // worth the time to save it.
  virtual bool break_off(const std::string& reason) = 0;
  // A worker of this host has ended.
  virtual void lose(MemberId member, const std::string& reason) = 0;

  // Whose process must end, since the last call.
  virtual std::vector<Fence> take_fences() = 0;
  // Whether workers have had a state to train from: then they tell how the run ends. True where that is not
  // known.
  virtual bool has_begun() const = 0;
  // Whether the run has done its last step; false where that is not known.
  virtual bool has_all_steps() const = 0;
  // Set once the run is over.
  virtual const std::optional<End>& end() const = 0;

  // What is known of a worker.
  struct Standing {
    std::string name;  // "rank 2"; empty: it had no place
    // "after step 12 was decided"; empty: not known here
    std::string phase = "before it asked for a place";
    bool has_trained = false;              // it took part in a step that was decided
    std::optional<bool> has_left = false;  // it has done everything; none: its exit code tells
  };
  virtual Standing standing(MemberId member) const = 0;
  // Whether workers somewhere else take part.
  virtual bool has_others() const = 0;
};

}  // namespace lockstep::elastic
