// SPDX-License-Identifier: Apache-2.0
//
// What keeps the workers of an elastic run going: starts them, starts those again that have died, ends those
// that the coordinator wants no more. supervise() also has the coordinator of the run; tend() does the same
// on a further host, for a coordinator somewhere else.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/elastic/message.h"
#include "lockstep/elastic/restart_policy.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/transport/connect/address.h"

namespace lockstep::elastic {

struct WorkerOptions {
  std::vector<std::string> command;     // argv; executed directly, never by a shell
  rendezvous::Environment environment;  // of this process, for the workers and for the secret's origin
  int workers = 1;                      // to keep running on this host
  int pretended_hosts = 1;              // as rendezvous::LaunchOptions has them
  bool prefix_output = false;           // "[2] " before each line of the worker in slot 2
  bool restart_workers = true;
  RestartLimits restarts;
  // How long workers that are to end have for it; SIGTERM and SIGKILL follow, as long after one another.
  std::chrono::milliseconds grace{5'000};
  // The same when they are to end well: after a signal, or when everything is done. After a mistake of one of
  // them the others have this between SIGTERM, which comes at once, and SIGKILL.
  std::chrono::milliseconds grace_to_finish{300'000};
};

struct SupervisorOptions {
  WorkerOptions workers;
  int expected = 0;     // members that the first generation is waited for; 0: the workers of this host
  int min_workers = 1;  // these as in CoordinatorOptions
  int max_workers = 0;  // 0: no more than expected
  int multiple = 1;
  int pipeline = 1;
  std::int64_t last_step = kNoStep;
  std::chrono::milliseconds beat_timeout{10'000};
  std::chrono::milliseconds stall_timeout{60'000};
  std::chrono::milliseconds wait_timeout{360'000};
  std::chrono::milliseconds join_timeout{60'000};
  bool can_save = false;
  std::string run;           // its name, as agents know it; empty: made up, for this host alone
  std::string log_path;      // of the decisions; made when it is not there
  bool goes_on = true;       // with what the log knows; false: only no number of a generation is used again
  std::string history_path;  // of what became of the generations (history.h); empty: none
  std::string brief = {};    // what agents on other hosts are told of the run
  std::optional<transport::Address> listen;  // none: a free port on loopback, for this host alone
};

struct AgentOptions {
  WorkerOptions workers;
  transport::Address coordinator;
  std::string run;                                      // as the coordinator's supervisor has it
  std::chrono::milliseconds reconnect_timeout{60'000};  // how long the coordinator may be away
  // Given what the coordinator tells of the run: what is added to the workers' command. What it raises ends
  // the agent before any worker is started.
  std::function<std::vector<std::string>(const std::string& brief)> more_words = nullptr;
};

struct SupervisorResult {
  bool finished = false;  // everything was done
  // 0, also when a signal came after the last step; 75 when the run can go on later; that of a worker that
  // made a mistake; 128 + the second signal.
  int exit_code = 0;
  std::string reason;  // one sentence; empty when finished
  // "rank 2 (node7, pid 77) was killed by signal 9 (Killed) after step 12 was decided"; may be empty
  std::string first_failure;
  int interrupted_by = 0;  // the first signal that asked for the end
  bool has_begun = false;  // as Control::has_begun()
  int output_error = 0;  // errno, when prefixed output could not be written and the workers were ended for it
};

// Both return when all workers have ended, and leave nothing behind: when the calling thread dies, even by
// SIGKILL, the kernel kills the workers. SIGINT, SIGTERM, SIGHUP and SIGUSR1 are forwarded and ask for the
// end of the run, which the workers agree on; another one, seconds later, ends everything at once. Those that
// are ignored when it begins stay ignored. Call from a thread that lives as long as the process and when no
// other thread takes these signals. UsageError when a program cannot be started, the port is in use, a secret
// is missing, or the limit on open files is too low.
SupervisorResult supervise(const SupervisorOptions& options);
SupervisorResult tend(const AgentOptions& options);

}  // namespace lockstep::elastic
