// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/collective_cases.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/mesh/lanes.h"
#include "lockstep/mesh/range.h"
#include "lockstep/schedule/collective/collective.h"

#include "tests/support/shared_counter.h"
#include "tests/support/values.h"

namespace lockstep::test {
namespace {

using comm::Algorithm;
using comm::Communicator;
using comm::Options;
using comm::ReduceOp;
using comm::Work;
using schedule::Op;

constexpr std::array kAlgorithms = {Algorithm::ring,        Algorithm::tree,     Algorithm::halving_doubling,
                                    Algorithm::direct,      Algorithm::one_shot, Algorithm::mesh,
                                    Algorithm::hierarchical};
constexpr std::array kReductions = {ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max,
                                    ReduceOp::product};

// Counts that divide, do not divide, are smaller than the world, and are zero.
std::vector<std::size_t> counts_for(int world) {
  const auto w = static_cast<std::size_t>(world);
  return {0, 1, w - 1, w, 2 * w + 3, 1000};
}

#define EXPECT_SAME(actual, expected, dtype, ...)          \
  EXPECT_EQ(first_difference(actual, expected, dtype), -1) \
      << "rank " << world.rank() << ": " << fmt::format(__VA_ARGS__)

Bytes part(std::span<std::byte> bytes, Range elements, DType dtype) {
  return bytes.subspan(elements.begin * size_of(dtype), elements.size() * size_of(dtype));
}

// --- Reductions

void all_reduce_every_dtype_and_op(Communicator& world) {
  for (DType dtype : kAllDTypes) {
    for (ReduceOp op : kReductions) {
      for (std::size_t count : counts_for(world.size())) {
        auto data = values_of(world.rank(), 1, dtype, count, Values::rough);
        world.all_reduce(data, {.dtype = dtype, .op = op});
        EXPECT_SAME(data, reduced_values(world.size(), 1, dtype, count, Values::rough, op), dtype,
                    "{} {} of {}", name_of(op), name_of(dtype), count);
      }
    }
  }
}

void all_reduce_every_algorithm(Communicator& world) {
  for (Algorithm algorithm : kAlgorithms) {
    // Exact algorithms must have the bits of the canonical tree; the others are given values whose sum has no
    // rounding.
    const Values kind = schedule::is_exact(algorithm) ? Values::rough : Values::small;
    for (std::size_t count : counts_for(world.size())) {
      auto data = values_of(world.rank(), 2, DType::fp32, count, kind);
      world.all_reduce(data, {.algorithm = algorithm});
      EXPECT_SAME(data, reduced_values(world.size(), 2, DType::fp32, count, kind, ReduceOp::sum), DType::fp32,
                  "{} of {}", name_of(algorithm), count);
    }
  }
}

void all_reduce_on_every_grid(Communicator& world) {
  const auto expected = reduced_values(world.size(), 12, DType::fp32, 1000, Values::small, ReduceOp::sum);
  for (int rows = 1; rows <= world.size(); ++rows) {
    if (world.size() % rows != 0) continue;
    for (const bool torus : {false, true}) {
      auto data = values_of(world.rank(), 12, DType::fp32, 1000, Values::small);
      const schedule::GridShape grid{.rows = rows, .columns = world.size() / rows, .torus = torus};
      world.all_reduce(data, {.algorithm = Algorithm::mesh, .grid = grid});
      EXPECT_SAME(data, expected, DType::fp32, "{} x {}", grid.rows, grid.columns);
    }
  }
}

void all_reduce_by_a_hierarchy_of_any_two(Communicator& world) {
  const auto expected = reduced_values(world.size(), 11, DType::fp32, 1000, Values::small, ReduceOp::sum);
  for (Algorithm inner : kAlgorithms) {
    for (Algorithm outer : kAlgorithms) {
      const Options options{.algorithm = Algorithm::hierarchical, .inner = inner, .outer = outer};
      auto data = values_of(world.rank(), 11, DType::fp32, 1000, Values::small);
      if (inner == Algorithm::hierarchical || outer == Algorithm::hierarchical) {
        EXPECT_THROW(world.all_reduce(data, options), UsageError);
        continue;
      }
      world.all_reduce(data, options);
      EXPECT_SAME(data, expected, DType::fp32, "{} inside, {} between", name_of(inner), name_of(outer));
    }
  }
}

void all_reduce_large_registered_and_not(Communicator& world) {
  constexpr std::size_t kCount = 700'001;
  comm::Buffer registered = world.allocate(kCount * sizeof(float));
  const auto expected = reduced_values(world.size(), 3, DType::fp32, kCount, Values::rough, ReduceOp::sum);
  for (Algorithm algorithm : {Algorithm::direct, Algorithm::halving_doubling}) {
    // Every mixture: even ranks registered, odd ranks not, and all alike.
    for (int mixture = 0; mixture < 4; ++mixture) {
      auto plain = values_of(world.rank(), 3, DType::fp32, kCount, Values::rough);
      const bool use_registered = (mixture >> (world.rank() % 2) & 1) != 0;
      if (use_registered) std::copy(plain.begin(), plain.end(), registered.bytes().begin());
      const Bytes data = use_registered ? registered.bytes() : Bytes(plain);
      world.all_reduce(data, {.algorithm = algorithm});
      EXPECT_SAME(data, expected, DType::fp32, "{}, mixture {}", name_of(algorithm), mixture);
    }
  }
}

void reduce_scatter_every_algorithm(Communicator& world) {
  for (Algorithm algorithm : kAlgorithms) {
    if (!schedule::supports(algorithm, Op::reduce_scatter)) continue;
    for (std::size_t count : counts_for(world.size())) {
      auto data = values_of(world.rank(), 4, DType::fp32, count, Values::small);
      world.reduce_scatter(data, {.op = ReduceOp::average, .algorithm = algorithm});
      auto expected = reduced_values(world.size(), 4, DType::fp32, count, Values::small, ReduceOp::average);
      const Range mine =
          chunk_range(count, static_cast<std::size_t>(world.size()), static_cast<std::size_t>(world.rank()));
      EXPECT_SAME(part(data, mine, DType::fp32), part(expected, mine, DType::fp32), DType::fp32, "{} of {}",
                  name_of(algorithm), count);
    }
  }
}

void reduce_every_algorithm_and_root(Communicator& world) {
  for (Algorithm algorithm : kAlgorithms) {
    if (!schedule::supports(algorithm, Op::reduce)) continue;
    for (Rank root = 0; root < world.size(); ++root) {
      auto data = values_of(world.rank(), 5, DType::int64, 37, Values::small);
      world.reduce(data,
                   {.dtype = DType::int64, .op = ReduceOp::product, .root = root, .algorithm = algorithm});
      if (world.rank() != root) continue;
      EXPECT_SAME(data, reduced_values(world.size(), 5, DType::int64, 37, Values::small, ReduceOp::product),
                  DType::int64, "{} to {}", name_of(algorithm), root);
    }
  }
}

// --- Movement

void all_gather_every_algorithm(Communicator& world) {
  const auto size = static_cast<std::size_t>(world.size());
  for (Algorithm algorithm : kAlgorithms) {
    if (!schedule::supports(algorithm, Op::all_gather)) continue;
    for (std::size_t count : counts_for(world.size())) {
      std::vector<std::byte> expected(count * 2);
      for (std::size_t r = 0; r < size; ++r) {
        auto theirs = values_of(static_cast<Rank>(r), 6, DType::bf16, count, Values::rough);
        const Range chunk = chunk_range(count, size, r);
        std::ranges::copy(part(theirs, chunk, DType::bf16), part(expected, chunk, DType::bf16).begin());
      }
      auto data = values_of(world.rank(), 6, DType::bf16, count, Values::rough);
      world.all_gather(data, {.dtype = DType::bf16, .algorithm = algorithm});
      EXPECT_SAME(data, expected, DType::bf16, "{} of {}", name_of(algorithm), count);
    }
  }
}

void broadcast_every_algorithm_and_root(Communicator& world) {
  for (Algorithm algorithm : kAlgorithms) {
    if (!schedule::supports(algorithm, Op::broadcast)) continue;
    for (Rank root = 0; root < world.size(); ++root) {
      for (std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{200'000}}) {
        auto data = values_of(world.rank(), 7, DType::uint8, count, Values::rough);
        world.broadcast(data, {.dtype = DType::uint8, .root = root, .algorithm = algorithm});
        EXPECT_SAME(data, values_of(root, 7, DType::uint8, count, Values::rough), DType::uint8,
                    "{} from {} of {}", name_of(algorithm), root, count);
      }
    }
  }
}

// Every rank's block for this one.
std::vector<std::byte> exchanged_blocks(const Communicator& world, std::size_t block) {
  const auto mine = static_cast<std::size_t>(world.rank());
  std::vector<std::byte> expected;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    auto theirs =
        values_of(rank, 8, DType::fp16, static_cast<std::size_t>(world.size()) * block, Values::rough);
    const Bytes piece = part(theirs, {mine * block, (mine + 1) * block}, DType::fp16);
    expected.insert(expected.end(), piece.begin(), piece.end());
  }
  return expected;
}

std::vector<std::byte> all_to_all_of(const Communicator& world, std::size_t block, Options options) {
  auto input =
      values_of(world.rank(), 8, DType::fp16, static_cast<std::size_t>(world.size()) * block, Values::rough);
  std::vector<std::byte> output(input.size());
  options.dtype = DType::fp16;
  world.all_to_all(input, output, options);
  return output;
}

void all_to_all_moves_every_block(Communicator& world) {
  for (std::size_t block : {std::size_t{0}, std::size_t{1}, std::size_t{33}, std::size_t{50'000}}) {
    const auto expected = exchanged_blocks(world, block);
    EXPECT_SAME(all_to_all_of(world, block, {}), expected, DType::fp16, "blocks of {}", block);
    for (Algorithm algorithm : kAlgorithms) {
      EXPECT_SAME(all_to_all_of(world, block, {.algorithm = algorithm}), expected, DType::fp16,
                  "{}, blocks of {}", name_of(algorithm), block);
    }
  }
}

void all_to_all_by_a_hierarchy_of_any_two(Communicator& world) {
  const auto expected = exchanged_blocks(world, 100);
  for (Algorithm inner : kAlgorithms) {
    for (Algorithm outer : kAlgorithms) {
      if (inner == Algorithm::hierarchical || outer == Algorithm::hierarchical) continue;
      const Options options{.algorithm = Algorithm::hierarchical, .inner = inner, .outer = outer};
      EXPECT_SAME(all_to_all_of(world, 100, options), expected, DType::fp16, "{} inside, {} between",
                  name_of(inner), name_of(outer));
    }
  }
}

void barrier_by_every_algorithm(Communicator& world) {
  SharedCounter arrivals(world);
  std::uint64_t due = 0;
  // Each rank in turn comes late, and nobody may leave before it.
  const auto expect_all_wait_for_the_last = [&](const Options& options) {
    for (Rank late = 0; late < world.size(); ++late) {
      if (world.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      arrivals.add_one();
      world.barrier(options);
      due += static_cast<std::uint64_t>(world.size());
      EXPECT_GE(arrivals.value(), due) << "rank " << world.rank() << " did not wait for rank " << late;
    }
  };
  expect_all_wait_for_the_last({});
  for (Algorithm algorithm : kAlgorithms) {
    if (!schedule::supports(algorithm, Op::barrier)) continue;
    SCOPED_TRACE(name_of(algorithm));
    expect_all_wait_for_the_last({.algorithm = algorithm});
  }
}

void send_and_recv_around_the_ring(Communicator& world) {
  if (world.size() == 1) return;
  const Rank next = (world.rank() + 1) % world.size();
  const Rank previous = (world.rank() + world.size() - 1) % world.size();
  for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{300'000}}) {
    auto out = values_of(world.rank(), 9, DType::int32, count, Values::rough);
    std::vector<std::byte> in(out.size());
    Work sending = world.send_async(next, out, {.dtype = DType::int32});
    Work receiving = world.recv_async(previous, in, {.dtype = DType::int32});
    sending.wait();
    receiving.wait();
    EXPECT_SAME(in, values_of(previous, 9, DType::int32, count, Values::rough), DType::int32, "{} elements",
                count);
  }
}

// --- Lanes

void expect_lane_sums_without_ownership(Communicator& world, std::size_t count) {
  constexpr int kLanes = 8;
  auto expected = reduced_values(kLanes, 10, DType::fp32, count, Values::rough, ReduceOp::sum);
  std::vector<LaneOwnership> ownerships = {even_ownership(kLanes, world.size())};
  // All lanes on the last rank; all on the first; uneven.
  std::vector<double> weights(static_cast<std::size_t>(world.size()), 0.0);
  weights.back() = 1;
  ownerships.push_back(weighted_ownership(kLanes, weights));
  std::reverse(weights.begin(), weights.end());
  ownerships.push_back(weighted_ownership(kLanes, weights));
  for (std::size_t r = 0; r < weights.size(); ++r) weights[r] = static_cast<double>(r * r + 1);
  ownerships.push_back(weighted_ownership(kLanes, weights));

  for (const LaneOwnership& ownership : ownerships) {
    comm::LanePieces pieces;
    for (Rank r = 0; r < world.size(); ++r) {
      auto& brought = pieces.emplace_back();
      for (int lane = ownership.first_lane[r]; lane < ownership.first_lane[r + 1]; ++lane)
        brought.push_back({lane, 1});
    }
    std::vector<std::vector<std::byte>> partials;
    for (const Subtree& piece : pieces[world.rank()]) {
      partials.push_back(values_of(piece.first, 10, DType::fp32, count, Values::rough));
    }
    if (partials.empty()) partials.emplace_back(count * sizeof(float));
    std::vector<std::vector<std::byte>> again = partials;

    std::vector<Bytes> views(partials.begin(), partials.end());
    world.all_reduce_lanes(views, pieces);
    EXPECT_SAME(partials[0], expected, DType::fp32, "{} lanes here", pieces[world.rank()].size());

    views.assign(again.begin(), again.end());
    world.reduce_scatter_lanes(views, pieces);
    const Range chunk =
        chunk_range(count, static_cast<std::size_t>(world.size()), static_cast<std::size_t>(world.rank()));
    EXPECT_SAME(part(again[0], chunk, DType::fp32), part(expected, chunk, DType::fp32), DType::fp32,
                "{} lanes here, scattered", pieces[world.rank()].size());
  }
}

void lane_sums_do_not_depend_on_ownership(Communicator& world) {
  expect_lane_sums_without_ownership(world, 1003);
}

// So many that few ranks of one host exchange their chunks in parts.
void lane_sums_in_parts_do_not_either(Communicator& world) {
  expect_lane_sums_without_ownership(world, 800'003);
}

// --- Groups, streams, asynchronous work

void split_into_even_and_odd(Communicator& world) {
  Communicator half = world.split(world.rank() % 2, -world.rank(), "half");
  const int members = (world.size() + 1 - world.rank() % 2) / 2;
  ASSERT_EQ(half.size(), members);
  // Ordered by key: the highest rank of the world comes first.
  EXPECT_EQ(half.rank(), members - 1 - world.rank() / 2);
  std::vector<std::int64_t> sum = {world.rank()};
  half.all_reduce(std::as_writable_bytes(std::span(sum)), {.dtype = DType::int64});
  std::int64_t expected = 0;
  for (Rank r = world.rank() % 2; r < world.size(); r += 2) expected += r;
  EXPECT_EQ(sum[0], expected);

  Communicator alone = half.split(-1, 0, "alone");
  EXPECT_EQ(alone.size(), 1);
  world.barrier();
}

void many_operations_in_flight_on_all_streams(Communicator& world) {
  constexpr std::size_t kOperations = 24;
  std::vector<std::vector<std::byte>> data;
  std::vector<Work> works;
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    data.push_back(values_of(world.rank(), 100 + i, DType::fp32, 100 + 5000 * (i % 5), Values::rough));
  }
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    works.push_back(world.all_reduce_async(data[i], {.stream = i % comm::kStreamsPerGroup}));
  }
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    works[i].wait();
    EXPECT_TRUE(works[i].test());
    EXPECT_SAME(
        data[i],
        reduced_values(world.size(), 100 + i, DType::fp32, data[i].size() / 4, Values::rough, ReduceOp::sum),
        DType::fp32, "operation {}", i);
  }
}

void background_work_ends_without_being_waited_for(Communicator& world) {
  auto data = values_of(world.rank(), 11, DType::fp32, 5000, Values::rough);
  Work work = world.all_reduce_async(data);
  while (!work.test()) std::this_thread::yield();
  EXPECT_SAME(data, reduced_values(world.size(), 11, DType::fp32, 5000, Values::rough, ReduceOp::sum),
              DType::fp32, "in the background");
}

// Longer than the clock can count is no mistake: it means for ever.
void an_endless_timeout_does_not_end(Communicator& world) {
  const Options endless{.timeout = std::chrono::milliseconds::max()};
  const Rank next = (world.rank() + 1) % world.size();
  const Rank previous = (world.rank() + world.size() - 1) % world.size();
  // Long enough for the others to look at their calls several times.
  if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  world.barrier(endless);
  if (world.size() == 1) return;
  std::array<float, 1> out{}, in{};
  Work sending = world.send_async(next, std::as_writable_bytes(std::span(out)), endless);
  world.recv(previous, std::as_writable_bytes(std::span(in)), endless);
  sending.wait();
}

void wrong_arguments_leave_the_group_usable(Communicator& world) {
  std::array<std::byte, 7> seven{};
  EXPECT_THROW(world.all_reduce(seven), UsageError);
  std::array<std::byte, 8> eight{};
  EXPECT_THROW(world.broadcast(eight, {.root = world.size()}), UsageError);
  EXPECT_THROW(world.all_reduce(eight, {.stream = comm::kStreamsPerGroup}), UsageError);
  EXPECT_THROW(world.send(world.rank(), eight), UsageError);
  std::vector<std::byte> blocks(8 * static_cast<std::size_t>(world.size()));
  EXPECT_THROW(world.all_to_all(blocks, blocks), UsageError);
  EXPECT_THROW(world.all_reduce(eight, {.algorithm = Algorithm::ring, .exact = true}), UsageError);
  EXPECT_THROW(world.barrier({.timeout = std::chrono::milliseconds(-1)}), UsageError);
  world.barrier();
}

}  // namespace

const std::vector<CollectiveCase>& collective_cases() {
  static const std::vector<CollectiveCase> cases = {
      {"AllReduceEveryDtypeAndOp", all_reduce_every_dtype_and_op},
      {"AllReduceEveryAlgorithm", all_reduce_every_algorithm},
      {"AllReduceOnEveryGrid", all_reduce_on_every_grid},
      {"AllReduceByAHierarchyOfAnyTwo", all_reduce_by_a_hierarchy_of_any_two},
      {"AllReduceLargeRegisteredAndNot", all_reduce_large_registered_and_not},
      {"ReduceScatterEveryAlgorithm", reduce_scatter_every_algorithm},
      {"ReduceEveryAlgorithmAndRoot", reduce_every_algorithm_and_root},
      {"AllGatherEveryAlgorithm", all_gather_every_algorithm},
      {"BroadcastEveryAlgorithmAndRoot", broadcast_every_algorithm_and_root},
      {"AllToAllMovesEveryBlock", all_to_all_moves_every_block},
      {"AllToAllByAHierarchyOfAnyTwo", all_to_all_by_a_hierarchy_of_any_two},
      {"BarrierByEveryAlgorithm", barrier_by_every_algorithm},
      {"SendAndRecvAroundTheRing", send_and_recv_around_the_ring},
      {"LaneSumsDoNotDependOnOwnership", lane_sums_do_not_depend_on_ownership},
      {"LaneSumsInPartsDoNotEither", lane_sums_in_parts_do_not_either},
      {"SplitIntoEvenAndOdd", split_into_even_and_odd},
      {"ManyOperationsInFlightOnAllStreams", many_operations_in_flight_on_all_streams},
      {"BackgroundWorkEndsWithoutBeingWaitedFor", background_work_ends_without_being_waited_for},
      {"AnEndlessTimeoutDoesNotEnd", an_endless_timeout_does_not_end},
      {"WrongArgumentsLeaveTheGroupUsable", wrong_arguments_leave_the_group_usable},
  };
  return cases;
}

}  // namespace lockstep::test
