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
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/select.h"
#include "lockstep/mesh/lanes.h"
#include "lockstep/mesh/range.h"
#include "lockstep/schedule/collective/collective.h"

#include "tests/comm/case_support.h"
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

struct Shape {
  std::size_t count;
  Registered registered = kNobody;
};

// The same, and many elements in every mixture of memory.
std::vector<Shape> shapes_for(int world) {
  std::vector<Shape> shapes;
  for (const std::size_t count : counts_for(world)) shapes.push_back({count});
  shapes.push_back({1000, kEverybody});
  for (const Registered registered : {kNobody, kEvenRanks, kOddRanks, kEverybody}) {
    shapes.push_back({kManyElements, registered});
  }
  return shapes;
}

// A few, and many elements in a mixture that depends on the root.
std::vector<Shape> shapes_for_root(Rank root, std::size_t many) {
  return {{1}, {1000}, {many, static_cast<Registered>(root + 1) % 4}};
}

// --- Reductions

void all_reduce_every_dtype_and_op(Communicator& world) {
  for (DType dtype : kAllDTypes) {
    for (ReduceOp op : kReductions) {
      std::vector<Shape> shapes;
      for (const std::size_t count : counts_for(world.size())) shapes.push_back({count});
      if (op == ReduceOp::average) shapes.push_back({kManyElements, kOddRanks});
      for (const auto [count, registered] : shapes) {
        Operand data(world, registered, values_of(world.rank(), 1, dtype, count, Values::rough));
        world.all_reduce(data.bytes(), {.dtype = dtype, .op = op});
        EXPECT_SAME(data.bytes(), reduced_values(world.size(), 1, dtype, count, Values::rough, op), dtype,
                    "{} {} of {}", name_of(op), name_of(dtype), count);
      }
    }
  }
}

void all_reduce_every_algorithm(Communicator& world) {
  for (const auto [count, registered] : shapes_for(world.size())) {
    // Exact algorithms must have the bits of the canonical tree; the others are given values whose sum has no
    // rounding.
    for (const Values kind : {Values::rough, Values::small}) {
      const auto expected = reduced_values(world.size(), 2, DType::fp32, count, kind, ReduceOp::sum);
      for (Algorithm algorithm : kAlgorithms) {
        const bool exact = comm::is_exact({.algorithm = algorithm}, {world.hosts()});
        if (exact != (kind == Values::rough)) continue;
        Operand data(world, registered, values_of(world.rank(), 2, DType::fp32, count, kind));
        world.all_reduce(data.bytes(), {.algorithm = algorithm});
        EXPECT_SAME(data.bytes(), expected, DType::fp32, "{} of {}, registered {}", name_of(algorithm), count,
                    registered);
      }
    }
  }
}

void all_reduce_on_every_grid(Communicator& world) {
  for (const auto [count, registered] : {Shape{1000}, Shape{kManyElements, kEvenRanks}}) {
    const auto expected = reduced_values(world.size(), 12, DType::fp32, count, Values::small, ReduceOp::sum);
    for (int rows = 1; rows <= world.size(); ++rows) {
      if (world.size() % rows != 0) continue;
      for (const bool torus : {false, true}) {
        Operand data(world, registered, values_of(world.rank(), 12, DType::fp32, count, Values::small));
        const schedule::GridShape grid{.rows = rows, .columns = world.size() / rows, .torus = torus};
        world.all_reduce(data.bytes(), {.algorithm = Algorithm::mesh, .grid = grid});
        EXPECT_SAME(data.bytes(), expected, DType::fp32, "{} x {} of {}", grid.rows, grid.columns, count);
      }
    }
  }
}

void all_reduce_by_a_hierarchy_of_any_two(Communicator& world) {
  for (const auto [count, registered] : {Shape{1000}, Shape{kManyElements, kOddRanks}}) {
    const auto expected = reduced_values(world.size(), 11, DType::fp32, count, Values::small, ReduceOp::sum);
    const auto mine = values_of(world.rank(), 11, DType::fp32, count, Values::small);
    for (Algorithm inner : kAlgorithms) {
      for (Algorithm outer : kAlgorithms) {
        const Options options{.algorithm = Algorithm::hierarchical, .inner = inner, .outer = outer};
        Operand data(world, registered, mine);
        if (inner == Algorithm::hierarchical || outer == Algorithm::hierarchical) {
          EXPECT_THROW(world.all_reduce(data.bytes(), options), UsageError);
          continue;
        }
        world.all_reduce(data.bytes(), options);
        EXPECT_SAME(data.bytes(), expected, DType::fp32, "{} inside, {} between, {}", name_of(inner),
                    name_of(outer), count);
      }
    }
  }
}

// More than one segment, and so many that chunks are exchanged in parts.
void all_reduce_large_registered_and_not(Communicator& world) {
  constexpr std::size_t kCount = 700'001;
  const auto expected = reduced_values(world.size(), 3, DType::fp32, kCount, Values::rough, ReduceOp::sum);
  const auto mine = values_of(world.rank(), 3, DType::fp32, kCount, Values::rough);
  for (Algorithm algorithm : {Algorithm::direct, Algorithm::halving_doubling}) {
    for (const Registered registered : {kNobody, kEvenRanks, kOddRanks, kEverybody}) {
      Operand data(world, registered, mine);
      world.all_reduce(data.bytes(), {.algorithm = algorithm});
      EXPECT_SAME(data.bytes(), expected, DType::fp32, "{}, registered {}", name_of(algorithm), registered);
    }
  }
}

void reduce_scatter_every_algorithm(Communicator& world) {
  for (const auto [count, registered] : shapes_for(world.size())) {
    auto expected = reduced_values(world.size(), 4, DType::fp32, count, Values::small, ReduceOp::average);
    const Range mine = own_chunk(world, count);
    for (Algorithm algorithm : kAlgorithms) {
      if (!schedule::supports(algorithm, Op::reduce_scatter)) continue;
      Operand data(world, registered, values_of(world.rank(), 4, DType::fp32, count, Values::small));
      world.reduce_scatter(data.bytes(), {.op = ReduceOp::average, .algorithm = algorithm});
      EXPECT_SAME(part(data.bytes(), mine, DType::fp32), part(expected, mine, DType::fp32), DType::fp32,
                  "{} of {}, registered {}", name_of(algorithm), count, registered);
    }
  }
}

void reduce_every_algorithm_and_root(Communicator& world) {
  for (Rank root = 0; root < world.size(); ++root) {
    for (const auto [count, registered] : shapes_for_root(root, kManyElements)) {
      const auto expected =
          reduced_values(world.size(), 5, DType::int64, count, Values::small, ReduceOp::product);
      for (Algorithm algorithm : kAlgorithms) {
        if (!schedule::supports(algorithm, Op::reduce)) continue;
        Operand data(world, registered, values_of(world.rank(), 5, DType::int64, count, Values::small));
        world.reduce(data.bytes(),
                     {.dtype = DType::int64, .op = ReduceOp::product, .root = root, .algorithm = algorithm});
        if (world.rank() != root) continue;
        EXPECT_SAME(data.bytes(), expected, DType::int64, "{} to {} of {}, registered {}", name_of(algorithm),
                    root, count, registered);
      }
    }
  }
}

// --- Movement

void all_gather_every_algorithm(Communicator& world) {
  const auto size = static_cast<std::size_t>(world.size());
  for (const auto [count, registered] : shapes_for(world.size())) {
    std::vector<std::byte> expected(count * 2);
    for (std::size_t r = 0; r < size; ++r) {
      auto theirs = values_of(static_cast<Rank>(r), 6, DType::bf16, count, Values::rough);
      const Range chunk = chunk_range(count, size, r);
      std::ranges::copy(part(theirs, chunk, DType::bf16), part(expected, chunk, DType::bf16).begin());
    }
    for (Algorithm algorithm : kAlgorithms) {
      if (!schedule::supports(algorithm, Op::all_gather)) continue;
      Operand data(world, registered, values_of(world.rank(), 6, DType::bf16, count, Values::rough));
      world.all_gather(data.bytes(), {.dtype = DType::bf16, .algorithm = algorithm});
      EXPECT_SAME(data.bytes(), expected, DType::bf16, "{} of {}, registered {}", name_of(algorithm), count,
                  registered);
    }
  }
}

void broadcast_every_algorithm_and_root(Communicator& world) {
  for (Rank root = 0; root < world.size(); ++root) {
    for (const auto [count, registered] : shapes_for_root(root, 200'003)) {
      const auto expected = values_of(root, 7, DType::uint8, count, Values::rough);
      for (Algorithm algorithm : kAlgorithms) {
        if (!schedule::supports(algorithm, Op::broadcast)) continue;
        Operand data(world, registered, values_of(world.rank(), 7, DType::uint8, count, Values::rough));
        world.broadcast(data.bytes(), {.dtype = DType::uint8, .root = root, .algorithm = algorithm});
        EXPECT_SAME(data.bytes(), expected, DType::uint8, "{} from {} of {}, registered {}",
                    name_of(algorithm), root, count, registered);
      }
    }
  }
}

// Blocks of so many elements for each rank, with seed 8.
class Exchange {
 public:
  Exchange(Communicator& world, std::size_t block) : world_(world), block_(block) {
    const auto mine = static_cast<std::size_t>(world.rank());
    for (Rank rank = 0; rank < world.size(); ++rank) {
      auto theirs = values_of_rank(rank);
      const Bytes piece = part(theirs, {mine * block, (mine + 1) * block}, DType::fp16);
      expected_.insert(expected_.end(), piece.begin(), piece.end());
    }
  }

  // What it is for is told when blocks are wrong.
  void run(Registered input, Registered output, Options options, std::string_view what) {
    const Communicator& world = world_;
    Operand from(world, input, values_of_rank(world.rank()));
    Operand to(world, output, std::vector<std::byte>(expected_.size()));
    options.dtype = DType::fp16;
    world.all_to_all(from.bytes(), to.bytes(), options);
    EXPECT_SAME(to.bytes(), expected_, DType::fp16, "{}, blocks of {}, registered {} and {}", what, block_,
                input, output);
  }

 private:
  std::vector<std::byte> values_of_rank(Rank rank) const {
    return values_of(rank, 8, DType::fp16, static_cast<std::size_t>(world_.size()) * block_, Values::rough);
  }

  Communicator& world_;
  const std::size_t block_;
  std::vector<std::byte> expected_;
};

void all_to_all_moves_every_block(Communicator& world) {
  for (std::size_t block : {std::size_t{0}, std::size_t{1}, std::size_t{33}, std::size_t{50'021}}) {
    Exchange exchange(world, block);
    exchange.run(kNobody, kNobody, {}, "by choice");
    for (Algorithm algorithm : kAlgorithms) {
      const Options options{.algorithm = algorithm};
      exchange.run(kNobody, kNobody, options, name_of(algorithm));
      if (block < 50'000) continue;
      exchange.run(kEverybody, kEverybody, options, name_of(algorithm));
      exchange.run(kEvenRanks, kOddRanks, options, name_of(algorithm));
    }
  }
}

void all_to_all_by_a_hierarchy_of_any_two(Communicator& world) {
  // The larger blocks are just longer than what is sent unasked.
  for (const auto [block, registered] : {Shape{100}, Shape{10'007, kEvenRanks}}) {
    Exchange exchange(world, block);
    for (Algorithm inner : kAlgorithms) {
      for (Algorithm outer : kAlgorithms) {
        if (inner == Algorithm::hierarchical || outer == Algorithm::hierarchical) continue;
        exchange.run(registered, registered,
                     {.algorithm = Algorithm::hierarchical, .inner = inner, .outer = outer},
                     fmt::format("{} inside, {} between", name_of(inner), name_of(outer)));
      }
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
  const std::vector<Shape> shapes = {{0},
                                     {1},
                                     {1000},
                                     {300'000},
                                     {kManyElements, kEvenRanks},
                                     {kManyElements, kOddRanks},
                                     {kManyElements, kEverybody}};
  for (const auto [count, registered] : shapes) {
    Operand out(world, registered, values_of(world.rank(), 9, DType::int32, count, Values::rough));
    Operand in(world, registered, std::vector<std::byte>(count * sizeof(std::int32_t)));
    Work sending = world.send_async(next, out.bytes(), {.dtype = DType::int32});
    Work receiving = world.recv_async(previous, in.bytes(), {.dtype = DType::int32});
    sending.wait();
    receiving.wait();
    EXPECT_SAME(in.bytes(), values_of(previous, 9, DType::int32, count, Values::rough), DType::int32,
                "{} elements, registered {}", count, registered);
  }
}

// --- Lanes

void expect_lane_sums_without_ownership(Communicator& world, std::size_t count, Registered registered) {
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
    const comm::LanePieces pieces = single_lanes(ownership);
    std::vector<Operand> partials, again;
    for (const std::vector<std::byte>& partial : lane_partials(world, pieces, 10, count)) {
      partials.emplace_back(world, registered, partial);
      again.emplace_back(world, registered, partial);
    }
    std::vector<Bytes> views;
    for (Operand& partial : partials) views.push_back(partial.bytes());
    world.all_reduce_lanes(views, pieces);
    EXPECT_SAME(views[0], expected, DType::fp32, "{} lanes here", pieces[world.rank()].size());

    views.clear();
    for (Operand& partial : again) views.push_back(partial.bytes());
    world.reduce_scatter_lanes(views, pieces);
    const Range chunk = own_chunk(world, count);
    EXPECT_SAME(part(views[0], chunk, DType::fp32), part(expected, chunk, DType::fp32), DType::fp32,
                "{} lanes here, scattered", pieces[world.rank()].size());
  }
}

void lane_sums_do_not_depend_on_ownership(Communicator& world) {
  expect_lane_sums_without_ownership(world, 1003, kNobody);
  expect_lane_sums_without_ownership(world, kManyElements, kEverybody);
  expect_lane_sums_without_ownership(world, kManyElements, kOddRanks);
}

// So many that few ranks of one host exchange their chunks in parts.
void lane_sums_in_parts_do_not_either(Communicator& world) {
  expect_lane_sums_without_ownership(world, 800'003, kNobody);
}

// --- Groups and arguments

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
  static const std::vector<CollectiveCase> all = [] {
    std::vector<CollectiveCase> cases = {
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
        {"AnEndlessTimeoutDoesNotEnd", an_endless_timeout_does_not_end},
        {"WrongArgumentsLeaveTheGroupUsable", wrong_arguments_leave_the_group_usable},
    };
    for (CollectiveCase& one : background_cases()) cases.push_back(std::move(one));
    return cases;
  }();
  return all;
}

}  // namespace lockstep::test
