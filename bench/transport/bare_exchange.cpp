// SPDX-License-Identifier: Apache-2.0
//
// The limit of a small all_reduce between two processes of one host, with no library at all: each copies its
// values into shared memory, raises a flag, waits for the other's flag and adds. No contract, no deadline, no
// sleeping. Prints the median batch; what `lockstep bench collectives` shows above it is the library's price.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/deadline.h"

namespace {

constexpr int kBatches = 201;
constexpr std::uint64_t kRounds = 2000;
constexpr std::size_t kSlots = 64;
constexpr std::size_t kMostFloats = 1024;

struct Side {
  struct alignas(64) Flag {
    std::atomic<std::uint64_t> round;
  };
  std::array<Flag, kSlots> flags;
  alignas(64) float values[kSlots][kMostFloats];
};

void exchange(Side& mine, const Side& theirs, std::span<float> data, std::uint64_t round) {
  const std::size_t slot = round % kSlots;
  std::memcpy(mine.values[slot], data.data(), data.size_bytes());
  mine.flags[slot].round.store(round, std::memory_order_release);
  while (theirs.flags[slot].round.load(std::memory_order_acquire) < round) lockstep::cpu_pause();
  const float* other = theirs.values[slot];
  for (std::size_t i = 0; i < data.size(); ++i) data[i] += other[i];
}

double median_seconds(Side& mine, const Side& theirs, std::size_t floats, std::uint64_t& round) {
  std::vector<float> data(floats, 0.0f);
  std::vector<double> seconds;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = lockstep::Clock::now();
    for (std::uint64_t i = 0; i < kRounds; ++i) exchange(mine, theirs, data, ++round);
    const std::chrono::duration<double> elapsed = lockstep::Clock::now() - start;
    seconds.push_back(elapsed.count() / static_cast<double>(kRounds));
  }
  std::nth_element(seconds.begin(), seconds.begin() + kBatches / 2, seconds.end());
  return seconds[kBatches / 2];
}

}  // namespace

int main() {
  void* memory = ::mmap(nullptr, 2 * sizeof(Side), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fmt::print(stderr, "cannot map {} bytes of shared memory\n", 2 * sizeof(Side));
    return 2;
  }
  auto* sides = static_cast<Side*>(memory);
  const pid_t child = ::fork();
  const int me = child == 0 ? 1 : 0;
  std::uint64_t round = 0;
  for (std::size_t floats : {std::size_t{2}, std::size_t{16}, std::size_t{256}, kMostFloats}) {
    const double seconds = median_seconds(sides[me], sides[1 - me], floats, round);
    if (me == 0) fmt::print("bare exchange {:5} bytes {:7.3f} us\n", floats * sizeof(float), seconds * 1e6);
  }
  if (child == 0) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
