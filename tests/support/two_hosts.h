// SPDX-License-Identifier: Apache-2.0
//
// Two hosts as network namespaces, joined by a link that can be slow, lossy or down. Needs root, iproute2 and
// nftables.
#pragma once

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::test {

// Zero if the program ran and said so.
inline int status_of(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    execvp(arguments[0], arguments.data());
    std::_Exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

inline void run_command(const std::vector<std::string>& words) {
  const int status = status_of(words);
  LOCKSTEP_CHECK(status == 0, fmt::format("{} failed with status {}", fmt::join(words, " "), status));
}

// A network namespace that goes with this object.
class Namespace {
 public:
  explicit Namespace(std::string name) : name_(std::move(name)) {
    run_command({"ip", "netns", "add", name_});
  }
  ~Namespace() { status_of({"ip", "netns", "delete", name_}); }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// Hosts 0 and 1, with the addresses .1 and .2, in namespaces of this test's own.
class TwoHosts {
 public:
  TwoHosts() {
    run_command({"ip", "link", "add", device(0), "netns", space(0), "type", "veth", "peer", "name", device(1),
                 "netns", space(1)});
    for (int host : {0, 1}) {
      run_command({"ip", "-n", space(host), "address", "add", address(host) + "/24", "dev", device(host)});
      run_command({"ip", "-n", space(host), "link", "set", device(host), "up"});
      run_command({"ip", "-n", space(host), "link", "set", "lo", "up"});
    }
  }

  static std::string address(int host) { return fmt::format("10.199.7.{}", host + 1); }

  void limit_rate(const std::string& rate) const {
    for (int host : {0, 1}) {
      run_command({"tc", "-n", space(host), "qdisc", "add", "dev", device(host), "root", "tbf", "rate", rate,
                   "burst", "32k", "latency", "50ms"});
    }
  }
  // So many packets of a hundred never arrive, in each direction.
  void lose(int percent) const {
    for (int host : {0, 1}) {
      const std::string rules = fmt::format(
          "add table inet loss; add chain inet loss input {{ type filter hook input priority 0; }}; "
          "add rule inet loss input iifname \"{}\" numgen random mod 100 < {} counter drop",
          device(host), percent);
      run_command({"ip", "netns", "exec", space(host), "nft", rules});
    }
  }

  // Whether any packet was lost so far.
  bool has_lost_some() const {
    return status_of(
               {"sh", "-c",
                fmt::format("ip netns exec {} nft list ruleset | grep -q 'packets [1-9]'", space(0))}) == 0;
  }

  void cut() const { run_command({"ip", "-n", space(0), "link", "set", device(0), "down"}); }

  void mend() const { run_command({"ip", "-n", space(0), "link", "set", device(0), "up"}); }

  // Moves the calling process to the host.
  void enter(int host) const {
    const int fd = open(("/run/netns/" + space(host)).c_str(), O_RDONLY | O_CLOEXEC);
    LOCKSTEP_CHECK(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "cannot enter a network namespace");
    close(fd);
  }

  // The name of its network namespace.
  const std::string& space(int host) const { return spaces_[static_cast<std::size_t>(host)].name(); }

 private:
  static std::string device(int host) { return fmt::format("lstest{}", host); }

  // Members, so that none is left when the rest cannot be set up.
  std::array<Namespace, 2> spaces_{Namespace(fmt::format("lockstep-{}-0", getpid())),
                                   Namespace(fmt::format("lockstep-{}-1", getpid()))};
};

}  // namespace lockstep::test
