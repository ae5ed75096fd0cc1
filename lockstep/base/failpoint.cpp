// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/failpoint.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint_rule.h"
#include "lockstep/base/log.h"

namespace lockstep::failpoint {

// The state of this file is the one thing in the project that any code may reach without having been given
// it: a fault must be possible everywhere, and no signature may change for it. It says only where to fail.
constinit std::atomic<bool> is_armed{false};

namespace {

constexpr std::int64_t kUnknown = -1;
constinit std::atomic<std::int64_t> this_rank{kUnknown};
constinit std::atomic<std::int64_t> this_step{kUnknown};

struct Armed {
  Rule rule;
  std::int64_t hits = 0;
};

struct Rules {
  std::mutex mutex;  // guards what follows
  std::vector<Armed> armed;
};

// Never destroyed: threads come by while the process ends.
Rules& rules() {
  static Rules& instance = *new Rules;
  return instance;
}

bool is_first(const std::string& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool holds(Armed& armed, std::size_t point) {
  const Rule& rule = armed.rule;
  if (rule.point != point) return false;
  if (rule.rank && *rule.rank != this_rank.load(std::memory_order_relaxed)) return false;
  if (rule.step && *rule.step != this_step.load(std::memory_order_relaxed)) return false;
  if (rule.hit && ++armed.hits != *rule.hit) return false;
  return rule.once.empty() || is_first(rule.once);
}

// The bits of the first byte come first.
void flip(Bytes values, std::int64_t bit) {
  const auto byte = static_cast<std::size_t>(bit / 8);
  if (byte < values.size()) values[byte] ^= std::byte{1} << (bit % 8);
}

void act(const Rule& rule, Bytes values) {
  const std::string_view name = kPoints[rule.point].name;
  const auto disk_error = [name](int reason) {
    return UsageError(fmt::format("failpoint {}: {}", name, std::strerror(reason)));
  };
  switch (rule.action) {
    case Action::kill:
      ::kill(::getpid(), SIGKILL);
      return;
    case Action::stop:
      ::kill(::getpid(), SIGSTOP);
      return;
    case Action::exit:
      std::_Exit(static_cast<int>(rule.argument));
    case Action::sleep:
      return std::this_thread::sleep_for(std::chrono::milliseconds(rule.argument));
    case Action::throw_error:
      throw InternalError(fmt::format("failpoint {} was told to throw", name));
    case Action::disk_full:
      throw disk_error(ENOSPC);
    case Action::disk_broken:
      throw disk_error(EIO);
    case Action::corrupt:
      return flip(values, rule.argument);
  }
}

}  // namespace

void arm(std::string_view specification) {
  std::vector<Armed> armed;
  for (Rule& rule : parse_rules(specification)) armed.push_back({.rule = std::move(rule)});
  if (!armed.empty() && !kAreBuilt) {
    throw UsageError("this program was built without failpoints: build it with LOCKSTEP_FAILPOINTS=ON");
  }
  const std::lock_guard lock(rules().mutex);
  rules().armed = std::move(armed);
  is_armed.store(!rules().armed.empty(), std::memory_order_relaxed);
}

void arm_from_environment() {
  const char* const specification = std::getenv(kVariable);
  if (specification == nullptr || *specification == '\0') return;
  try {
    arm(specification);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", kVariable, error.what()));
  }
  log::warning(fmt::format("{} arms failpoints: this process will fail as it was told", kVariable));
}

void set_rank(int rank) {
  this_rank.store(rank, std::memory_order_relaxed);
}

void set_step(std::int64_t step) {
  this_step.store(step, std::memory_order_relaxed);
}

void pass(std::size_t point, Bytes values) {
  std::vector<Rule> due;
  {
    const std::lock_guard lock(rules().mutex);
    for (Armed& armed : rules().armed) {
      if (holds(armed, point)) due.push_back(armed.rule);
    }
  }
  // Without the lock: other threads go on while this one sleeps.
  for (const Rule& rule : due) {
    log::warning(fmt::format("failpoint {}", kPoints[rule.point].name));
    act(rule, values);
  }
}

}  // namespace lockstep::failpoint
