// SPDX-License-Identifier: Apache-2.0
//
// How long it takes until two ranks that make different calls are told so, over each transport:
//   ./dev bench comm [times]
// The ranks are threads of one process. Times count from the moment when the later one makes its call; both
// ranks are counted.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <latch>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"

#include "tests/support/ranks.h"
#include "tests/support/worlds.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using comm::Communicator;

struct Disagreement {
  std::string name;
  std::array<std::function<void(const Communicator&, Bytes)>, 2> calls;  // by rank
};

std::vector<Disagreement> disagreements() {
  return {
      {"counts, 4 KiB",
       {[](auto& c, Bytes data) { c.all_reduce(data.first(4096)); },
        [](auto& c, Bytes data) { c.all_reduce(data.first(4092)); }}},
      {"counts, 4 MiB",
       {[](auto& c, Bytes data) { c.all_reduce(data); },
        [](auto& c, Bytes data) { c.all_reduce(data.first(data.size() - 4)); }}},
      {"operations",
       {[](auto& c, Bytes data) { c.all_reduce(data); }, [](auto& c, Bytes data) { c.all_gather(data); }}},
      // Nobody sends anything.
      {"roots",
       {[](auto& c, Bytes data) { c.broadcast(data, {.root = 1}); },
        [](auto& c, Bytes data) { c.broadcast(data, {.root = 0}); }}},
  };
}

// Milliseconds until each rank knew.
std::array<double, 2> measure(const std::string& transport, const Disagreement& disagreement) {
  std::array<Clock::time_point, 2> called;
  std::array<Clock::time_point, 2> told;
  std::latch both(2);
  test::run_ranks(test::make_world(transport, 2), {}, [&](Communicator& world) {
    const auto me = static_cast<std::size_t>(world.rank());
    std::vector<std::byte> data(4 << 20);
    world.barrier();
    both.arrive_and_wait();
    called[me] = Clock::now();
    try {
      disagreement.calls[me](world, data);
      throw InternalError("ranks that disagree were not told");
    } catch (const CommError&) {
      told[me] = Clock::now();
    }
  });
  const auto begin = std::max(called[0], called[1]);
  const auto since = [&](Clock::time_point time) {
    return std::chrono::duration<double, std::milli>(time - begin).count();
  };
  return {since(told[0]), since(told[1])};
}

void print_row(const std::string& transport, const Disagreement& disagreement, int times) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    for (double one : measure(transport, disagreement)) all.push_back(one);
  }
  std::sort(all.begin(), all.end());
  fmt::print("{:<10} {:<15} {:>8.2f} {:>8.2f}\n", transport, disagreement.name, all[all.size() / 2],
             all.back());
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  const int times = argc > 1 ? std::max(1, std::atoi(argv[1])) : 25;
  fmt::print("{:<10} {:<15} {:>8} {:>8}   ms, of {} times on 2 ranks\n", "transport", "they differ in",
             "median", "most", times);
  for (const std::string transport : {"loopback", "shm", "tcp"}) {
    for (const auto& disagreement : lockstep::disagreements())
      lockstep::print_row(transport, disagreement, times);
  }
}
