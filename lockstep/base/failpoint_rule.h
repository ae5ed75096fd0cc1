// SPDX-License-Identifier: Apache-2.0
//
// What a specification of failpoints says: rules with a semicolon between them,
//   NAME[@CONDITION,...]:ACTION        checkpoint.shard.before_sync@rank=1,step=7:kill
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::failpoint {

enum class Action {
  kill,         // SIGKILL
  stop,         // SIGSTOP: goes on when somebody sends SIGCONT
  exit,         // with a code, at once
  sleep,        // for so many milliseconds
  throw_error,  // "throw": an InternalError, as a bug of ours is
  disk_full,    // "enospc": the UsageError of a full disk
  disk_broken,  // "eio": that of a broken one
  corrupt,      // changes one bit of the values, when there are so many
};

struct Rule {
  std::size_t point = 0;  // in kPoints
  Action action = Action::kill;
  std::int64_t argument = 0;  // the code, the milliseconds, or which bit
  // Conditions; all that are given must hold.
  std::optional<std::int64_t> rank;  // "rank=1"
  std::optional<std::int64_t> step;  // "step=7"
  std::optional<std::int64_t> hit;   // "hit=3": the third time that the others hold, from 1
  // "once=FILE": nobody has made the file yet, which the rule then makes; so that a process that is started
  // again lives. The name has no ',', ':' or ';'.
  std::string once;
};

// UsageError naming the part that is wrong, and the name that was probably meant.
std::vector<Rule> parse_rules(std::string_view specification);

}  // namespace lockstep::failpoint
