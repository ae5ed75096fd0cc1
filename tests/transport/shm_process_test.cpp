// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes that are killed, stopped and limited. The test itself is rank 0; children are made by
// fork before it has any threads of its own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/address_space.h"
#include "lockstep/transport/shm/endpoint.h"

#include "tests/support/files.h"
#include "tests/transport/conformance.h"
#include "tests/transport/shm_world.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;

// A child process that ends with the code that its body returns; killed and reaped at the end of the test at
// the latest.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    int code = 99;
    try {
      code = body();
    } catch (const std::exception& error) {
      static_cast<void>(!::write(STDERR_FILENO, error.what(), std::strlen(error.what())));
    }
    ::_exit(code);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }

  void signal(int number) const { ::kill(pid_, number); }

  // The exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

std::unique_ptr<Endpoint> join(const std::string& run, Rank rank, int world) {
  return connect_shm({.rank = rank, .world = world, .run = run});
}

[[noreturn]] void stay_forever() {
  while (true) ::pause();
}

class ShmProcesses : public testing::Test {
 protected:
  Participant participant(Endpoint& endpoint) { return Participant(endpoint, never_); }

  const std::string run_ = unique_run();
  const std::atomic<bool> never_{false};
};

TEST_F(ShmProcesses, AKilledPeerWakesASleeper) {
  Child child([&]() -> int {
    const auto endpoint = join(run_, 1, 2);
    stay_forever();
  });
  const auto endpoint = join(run_, 0, 2);
  EXPECT_TRUE(endpoint->alive(1));
  const std::jthread killer([&] {
    std::this_thread::sleep_for(30ms);
    child.signal(SIGKILL);
  });
  participant(*endpoint).wait_until([&] { return !endpoint->alive(1); });
  EXPECT_FALSE(endpoint->alive(1));
  // A peer that stays dead does not keep us awake.
  pollfd entry = {.fd = endpoint->wait_fd(), .events = POLLIN, .revents = 0};
  ASSERT_TRUE(endpoint->prepare_wait());
  EXPECT_EQ(::poll(&entry, 1, 20), 0);
  endpoint->finish_wait();
}

TEST_F(ShmProcesses, WhatADeadPeerLentCanStillBeRead) {
  constexpr std::size_t kBytes = 3'000'000;
  const auto expected = distinct_bytes(1, 0, 0, kBytes);
  Child child([&] {
    const auto endpoint = join(run_, 1, 2);
    const Bytes memory = endpoint->allocate(kBytes);
    std::copy(expected.begin(), expected.end(), memory.begin());
    endpoint->channel(0, 0).send({1, 1}, memory);
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  const auto endpoint = join(run_, 0, 2);
  participant(*endpoint).wait_until([&] { return !endpoint->alive(1); });
  std::vector<std::byte> into(kBytes);
  Channel& channel = endpoint->channel(1, 0);
  channel.receive({1, 1}, into);
  participant(*endpoint).drive(channel, [&] { return channel.receives_done() == 1; });
  expect_same_bytes(into, expected, "lent by a dead process");
}

// Memory that grew after the greeting, as well, and what was written before the signal came.
TEST_F(ShmProcesses, WhatADeadPeerHadRegisteredCanStillBeRead) {
  constexpr std::size_t kBytes = 3'000'000;
  const auto expected = distinct_bytes(1, 0, 0, kBytes);
  Child child([&] {
    const auto endpoint = join(run_, 1, 2);
    const Bytes memory = endpoint->allocate(kBytes);
    const std::optional<Place> place = endpoint->lasting_space(0)->expose(memory);
    std::vector<std::byte> name(sizeof(Place));
    std::memcpy(name.data(), &place.value(), sizeof(Place));
    Channel& channel = endpoint->channel(0, 0);
    channel.send({1, 1}, name);
    Participant(*endpoint, never_).drive(channel, [&] { return channel.sends_done() == 1; });
    std::copy(expected.begin(), expected.end(), memory.begin());
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  const auto endpoint = join(run_, 0, 2);
  std::vector<std::byte> name(sizeof(Place));
  Channel& channel = endpoint->channel(1, 0);
  channel.receive({1, 1}, name);
  participant(*endpoint).drive(channel, [&] { return channel.receives_done() == 1; });
  participant(*endpoint).wait_until([&] { return !endpoint->alive(1); });
  Place place;
  std::memcpy(&place, name.data(), sizeof(Place));
  const std::byte* left = endpoint->lasting_space(1)->resolve(place, kBytes);
  expect_same_bytes({left, kBytes}, expected, "registered by a dead process");
}

TEST_F(ShmProcesses, AStoppedPeerIsAliveAndGoesOn) {
  Child child([&] {
    const auto endpoint = join(run_, 1, 2);
    Channel& channel = endpoint->channel(0, 0);
    std::vector<std::byte> payload(100'000);
    channel.receive({1, 1}, payload);
    Participant me(*endpoint, never_);
    me.drive(channel, [&] { return channel.receives_done() == 1; });
    channel.send({2, 2}, payload);
    me.drive(channel, [&] { return channel.sends_done() == 1; });
    return 0;
  });
  const auto endpoint = join(run_, 0, 2);
  child.signal(SIGSTOP);
  Channel& channel = endpoint->channel(1, 0);
  const auto payload = distinct_bytes(0, 1, 0, 100'000);
  std::vector<std::byte> back(payload.size());
  channel.send({1, 1}, payload);
  channel.receive({2, 2}, back);
  for (int i = 0; i < 20; ++i) {
    channel.pump();
    EXPECT_TRUE(endpoint->alive(1));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(channel.receives_done(), 0u);
  child.signal(SIGCONT);
  participant(*endpoint).drive(channel, [&] { return channel.receives_done() == 1; });
  EXPECT_EQ(back, payload);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(ShmProcesses, NothingIsLeftWhenAllAreKilled) {
  const std::vector<std::string> before = test::shared_memory_names();
  {
    const auto body = [&](Rank rank) {
      return [this, rank]() -> int {
        const auto endpoint = join(run_, rank, 3);
        endpoint->allocate(20'000'000);
        for (Rank peer = 0; peer < 3; ++peer) {
          if (peer != rank) endpoint->channel(peer, 0).send({1, 1}, std::vector<std::byte>(1000));
        }
        endpoint->fail(0, "ready");
        stay_forever();
      };
    };
    Child second(body(1));
    Child third(body(2));
    const auto endpoint = join(run_, 0, 3);
    auto me = participant(*endpoint);
    me.wait_until([&] { return endpoint->failure_of(1, 0) && endpoint->failure_of(2, 0); });
    second.signal(SIGKILL);
    third.signal(SIGKILL);
    me.wait_until([&] { return !endpoint->alive(1) && !endpoint->alive(2); });
  }
  EXPECT_EQ(test::shared_memory_names(), before);
  // The meeting places are free again as well.
  EXPECT_EQ(join(run_, 0, 1)->world(), 1);
}

// Allocates under a limit; returns 0 when that is refused with a UsageError that names the limit.
int allocate_limited(int resource, rlim_t limit, const std::string& run, const std::string& named) {
  const auto endpoint = join(run, 0, 1);
  const rlimit value = {.rlim_cur = limit, .rlim_max = limit};
  ::setrlimit(resource, &value);
  try {
    endpoint->allocate(64'000'000);
  } catch (const UsageError& error) {
    const std::string text = error.what();
    return text.find("64000000") != std::string::npos && text.find(named) != std::string::npos ? 0 : 2;
  }
  return 1;
}

TEST_F(ShmProcesses, ALimitOnFileSizesIsAnErrorAndNotASignal) {
  Child child([&] { return allocate_limited(RLIMIT_FSIZE, 10'000'000, run_, "10000000 bytes (ulimit -f)"); });
  EXPECT_EQ(child.wait(), 0);
}

// Joins with so many descriptors allowed: 0 if that worked, 1 if it ended with one of our errors, 2
// otherwise.
int join_with_descriptors(rlim_t count, const std::string& run) {
  const rlimit value = {.rlim_cur = count, .rlim_max = count};
  ::setrlimit(RLIMIT_NOFILE, &value);
  try {
    join(run, 0, 1);
  } catch (const Error&) {
    return 1;
  } catch (const std::exception&) {
    return 2;
  }
  return 0;
}

TEST_F(ShmProcesses, WantOfDescriptorsIsAnErrorWhereverItHappens) {
  int errors = 0;
  int code = 1;
  for (rlim_t count = 3; code == 1; ++count) {
    Child child([&] { return join_with_descriptors(count, run_); });
    code = child.wait();
    errors += code;
  }
  EXPECT_EQ(code, 0) << "something else than our errors was thrown";
  EXPECT_GT(errors, 3) << "each descriptor that is missing is an error of its own";
}

// Two processes of many short and long messages, sleeping whenever nothing moves.
TEST_F(ShmProcesses, PingPongAcrossProcesses) {
  const auto play = [&](Rank rank) {
    const auto endpoint = join(run_, rank, 2);
    Channel& channel = endpoint->channel(1 - rank, 0);
    Participant me(*endpoint, never_);
    const Bytes memory = endpoint->allocate(200'000);
    for (std::uint64_t round = 0; round < 3000; ++round) {
      const std::size_t bytes = round % 10 == 0 ? 200'000 : 64;
      const Rank sender = round % 2 == 0 ? 0 : 1;
      const std::vector<std::byte> expected = distinct_bytes(sender, 1 - sender, round, bytes);
      if (rank == sender) {
        std::copy(expected.begin(), expected.end(), memory.begin());
        channel.send({1, round}, memory.first(bytes));
        me.drive(channel, [&] { return channel.sends_done() == round / 2 + 1; });
      } else {
        std::vector<std::byte> into(bytes);
        channel.receive({1, round}, into);
        me.drive(channel, [&] { return channel.receives_done() == round / 2 + 1; });
        if (into != expected) return 1;
      }
    }
    return 0;
  };
  Child child([&] { return play(1); });
  EXPECT_EQ(play(0), 0);
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace lockstep::transport
