// SPDX-License-Identifier: Apache-2.0
//
// How long messages between two processes of one host take over shm, without collectives above:
//   transport_bench [exchange|pingpong]
// pingpong: half a round trip, each side reading in place. exchange: both sides send and read at the same
// time, as a collective of two ranks does. Prints the best and the median batch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/shm/endpoint.h"

namespace lockstep::transport {
namespace {

constexpr int kBatches = 200;
constexpr int kSpins = 20'000;

// One side of the benchmark.
struct Player {
  Endpoint& endpoint;
  Channel& channel;
  std::uint64_t number = 0;
  int idle = 0;
  std::uint64_t total = 0;  // of what was read, so that reading is not left out

  // Reads one byte of every cache line, as a consumer that adds would at least.
  void take(std::size_t bytes) {
    channel.receive_view({1, number}, bytes);
    std::size_t got = 0;
    std::uint64_t sum = 0;
    while (got < bytes) {
      const ConstBytes view = channel.view();
      if (view.empty()) {
        wait();
        continue;
      }
      idle = 0;
      for (std::size_t at = 0; at < view.size(); at += 64) sum += static_cast<std::uint64_t>(view[at]);
      got += view.size();
      channel.consume(view.size());
    }
    total += sum;
  }

  void give(ConstBytes payload) { channel.send({1, number}, payload); }

  void wait_given() {
    while (channel.sends_done() <= number) wait();
    idle = 0;
  }

  // Spins for a while, then sleeps: the other side may need this core.
  void wait() {
    if (channel.pump() || ++idle < kSpins) return;
    pollfd entry = {.fd = endpoint.wait_fd(), .events = POLLIN, .revents = 0};
    if (endpoint.prepare_wait()) ::poll(&entry, 1, 1000);
    endpoint.finish_wait();
  }

  void exchange(ConstBytes payload) {
    give(payload);
    take(payload.size());
    wait_given();
    ++number;
  }

  void pingpong(ConstBytes payload) {
    if (endpoint.rank() == 0) give(payload);
    take(payload.size());
    if (endpoint.rank() == 1) give(payload);
    wait_given();
    ++number;
  }
};

void report(std::string_view what, std::size_t bytes, bool registered, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double best = seconds.front();
  const double median = seconds[seconds.size() / 2];
  fmt::print("{:9} {:>9} bytes {:12} best {:9.3f} us  median {:9.3f} us  {:8.2f} GB/s\n", what, bytes,
             registered ? "registered" : "ordinary", best * 1e6, median * 1e6,
             static_cast<double>(bytes) / best / 1e9);
  std::fflush(stdout);
}

void measure(Player& player, std::string_view what, std::size_t bytes, bool registered) {
  std::vector<std::byte> ordinary(registered ? 0 : bytes);
  const Bytes payload = registered ? player.endpoint.allocate(bytes) : Bytes(ordinary);
  std::memset(payload.data(), 1, payload.size());
  const int rounds = bytes > 100'000 ? 2 : 50;
  const int batches = bytes > 100'000 ? kBatches / 4 : kBatches;
  const bool exchange = what == "exchange";
  std::vector<double> seconds;
  for (int batch = 0; batch < batches; ++batch) {
    const auto start = Clock::now();
    for (int round = 0; round < rounds; ++round) {
      if (exchange) {
        player.exchange(payload);
      } else {
        player.pingpong(payload);
      }
    }
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    seconds.push_back(elapsed.count() / rounds / (exchange ? 1 : 2));
  }
  if (player.endpoint.rank() == 0) report(what, bytes, registered, std::move(seconds));
  if (registered) player.endpoint.release(payload);
}

// Each side stays on a core of its own, so that batches can be compared.
void stay_on_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  ::sched_setaffinity(0, sizeof(cores), &cores);
}

void play(Rank rank, const std::string& run, std::string_view what) {
  stay_on_core(rank);
  const auto endpoint = connect_shm({.rank = rank, .world = 2, .run = run});
  Player player{.endpoint = *endpoint, .channel = endpoint->channel(1 - rank, 0)};
  for (std::size_t bytes : {8, 64, 1024, 4096, 16384, 65536, 1 << 20, 16 << 20}) {
    for (bool registered : {false, true}) measure(player, what, bytes, registered);
  }
  if (player.total == 0) fmt::print("nothing was read\n");
}

int run_two(std::string_view what) {
  const std::string run = fmt::format("bench-{}", ::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    play(1, run, what);
    ::_exit(0);
  }
  play(0, run, what);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::transport

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "exchange";
  if (what != "exchange" && what != "pingpong") {
    fmt::print(stderr, "usage: transport_bench [exchange|pingpong]\n");
    return 2;
  }
  return lockstep::transport::run_two(what);
}
