// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/process.h"
#include "lockstep/transport/connect/address.h"

namespace lockstep::rendezvous {

struct LaunchOptions {
  std::vector<std::string> command;  // argv; executed directly, never by a shell
  int workers = 1;                   // to start on this host
  Environment environment;           // of this process, for the workers and for the secret's origin
  // Workers take themselves for those of so many hosts, as many on each if that can be, and talk through
  // sockets from one to another: to try out on one host what several do.
  int pretended_hosts = 1;
  bool prefix_output = false;  // "[2] " before each line of rank 2
  // After the first failure the others have this long to end by themselves, then as long again after SIGTERM;
  // SIGKILL follows.
  std::chrono::milliseconds grace{5'000};
  // After SIGINT, SIGTERM or SIGHUP, in place of the first of the two; 0: the same.
  std::chrono::milliseconds grace_after_signal{0};

  // Several hosts: one launcher on each, all given the same master. None: this host alone, on a free loopback
  // port.
  struct Hosts {
    int world = 1;
    Rank first_rank = 0;
    int node_rank = 0;
    transport::Address master;  // the launcher with node rank 0 serves there
    std::string run = "default";
  };
  std::optional<Hosts> hosts;
};

struct LaunchResult {
  struct Failure {
    Rank rank = -1;
    pid_t pid = -1;
    ExitStatus status;
    std::string to_string() const;  // "rank 2 (node7, pid 77) ended with exit code 3"
  };
  // The first to fail; when that one only lost a peer (exit code 75), the first after it that did not.
  std::optional<Failure> first_failure;
  bool others_had_lost_a_peer = false;  // and had ended before it
  bool all_succeeded = true;            // also false when ranks were ended that had not failed
  // Of the ranks of this host.
  int started = 0;
  int failed = 0;          // by themselves
  int ended = 0;           // that still ran when their time to end by themselves was over
  int interrupted_by = 0;  // the first of SIGINT, SIGTERM and SIGHUP that came before any rank failed
  int output_error = 0;    // errno, when prefixed output could not be written and the ranks were ended for it

  bool output_dropped = false;  // after such a signal, because its reader was too slow

  // When there is a first failure: "rank 2 (node7, pid 77) ended with exit code 3; it was the first to fail,
  // and the others were ended", the last part as far as it is true.
  std::string describe_failure() const;

  // Of the ranks: 0, or that of the first failure.
  int exit_code() const { return first_failure ? first_failure->status.shell_code() : 0; }
};

// Of failures found at the same moment (at least one), the likeliest cause: a rank that was killed, then one
// that failed by itself, then one that only says it lost a peer (exit code 75).
const LaunchResult::Failure& likeliest_cause(std::span<const LaunchResult::Failure> failures);

// Starts the workers, serves their rendezvous, and returns when all have ended. A secret is made when the
// environment holds none; the workers find it in LOCKSTEP_SECRET. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and
// SIGUSR2 are forwarded while it runs, unless they were ignored when it began; the first three also start the
// end as a failure does. When the calling thread dies, even by SIGKILL, the kernel kills the workers. Call
// from a thread that lives as long as the process and when no other thread takes these signals. UsageError
// when the program cannot be started (or, after such a signal, does not run within `grace`), the port is in
// use, a secret is missing, or the limit on open files is too low. CommError when the rendezvous failed and
// the ranks were ended for it. Prefixed output waits for its reader as long as nobody asks for the end; after
// such a signal what is not read within `grace` is lost.
LaunchResult launch(const LaunchOptions& options);

}  // namespace lockstep::rendezvous
