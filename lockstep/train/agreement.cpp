// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/agreement.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/file_lock.h"
#include "lockstep/kernels/compute/arithmetic.h"
#include "lockstep/schedule/pipeline/csv.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

namespace lockstep::train {
namespace {

// As much of a hash as sums of integers carry.
std::int64_t number_of(const Hash& hash) {
  return static_cast<std::int64_t>(hash.low);
}

std::int64_t number_of(std::string_view text) {
  return number_of(hash_of(std::as_bytes(std::span(text))));
}

std::int64_t number_of(const spec::RunSpec& run) {
  return number_of(spec::to_toml(spec::common_to_workers(run)));
}

// What a file gives; all else follows from the run.
std::int64_t number_of(const plan::PipelinePlan& plan) {
  return number_of(plan.given ? schedule::to_csv(*plan.given) : std::string());
}

// By rank.
std::vector<std::int64_t> gathered(std::int64_t mine, const comm::Communicator& world) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size()), 0);
  all[static_cast<std::size_t>(world.rank())] = mine;
  world.all_reduce(std::as_writable_bytes(std::span(all)), {.dtype = DType::int64});
  return all;
}

// The first rank that has another value than rank 0; -1 when there is none.
Rank first_other(std::int64_t mine, const comm::Communicator& world) {
  const std::vector<std::int64_t> all = gathered(mine, world);
  const auto other = std::ranges::find_if(all, [&](std::int64_t value) { return value != all.front(); });
  return other == all.end() ? -1 : static_cast<Rank>(other - all.begin());
}

// On all ranks: what a rank says.
std::string text_of(Rank rank, std::string_view mine, const comm::Communicator& world) {
  std::vector<std::int64_t> letters;
  if (world.rank() == rank) letters.assign(mine.begin(), mine.end());
  const std::vector<std::int64_t> said = gathered_lists(letters, world)[static_cast<std::size_t>(rank)];
  std::string text;
  for (const std::int64_t letter : said) text += static_cast<char>(letter);
  return text;
}

// What other ranks hear of an error: enough to end in the same way.
enum class ErrorKind : std::int64_t { none, usage, in_use, data, internal, other };

ErrorKind kind_of(const std::exception_ptr& error) {
  if (!error) return ErrorKind::none;
  try {
    std::rethrow_exception(error);
  } catch (const UsageError&) {
    return ErrorKind::usage;
  } catch (const std::bad_alloc&) {
    return ErrorKind::usage;
  } catch (const InUseError&) {
    return ErrorKind::in_use;
  } catch (const DataError&) {
    return ErrorKind::data;
  } catch (const InternalError&) {
    return ErrorKind::internal;
  } catch (...) {
    return ErrorKind::other;
  }
}

std::exception_ptr error_of(ErrorKind kind, const std::string& sentence) {
  switch (kind) {
    case ErrorKind::usage:
      return std::make_exception_ptr(UsageError(sentence));
    case ErrorKind::in_use:
      return std::make_exception_ptr(InUseError(sentence));
    case ErrorKind::data:
      return std::make_exception_ptr(DataError(sentence));
    case ErrorKind::internal:
      return std::make_exception_ptr(InternalError(sentence));
    default:
      return std::make_exception_ptr(CommError(sentence));
  }
}

}  // namespace

std::string ToldElsewhere::why() const {
  try {
    std::rethrow_exception(cause_);
  } catch (const std::exception& error) {
    return error.what();
  }
}

Hash hash_of_samples(const Feed& feed, const data::StepShape& shape, std::int64_t step) {
  Hasher hasher;
  const std::uint64_t position = static_cast<std::uint64_t>(step) * feed.samples_per_step();
  for (const std::uint64_t lane : {std::uint64_t{0}, shape.lanes - 1}) {
    const model::Batch batch = feed.batch(position, static_cast<int>(lane), 0);
    for (const at::Tensor& part : {batch.tokens, batch.features, batch.targets}) {
      if (part.defined()) hasher.add({static_cast<const std::byte*>(part.data_ptr()), part.nbytes()});
    }
  }
  return hasher.value();
}

void together(const comm::Communicator& world, const std::function<void()>& body) {
  std::exception_ptr mine;
  try {
    body();
  } catch (...) {
    mine = std::current_exception();
  }
  const std::vector<std::int64_t> kinds = gathered(static_cast<std::int64_t>(kind_of(mine)), world);
  const auto first = std::ranges::find_if(kinds, [](std::int64_t kind) { return kind != 0; });
  if (first == kinds.end()) return;
  part(world);
  const auto rank = static_cast<Rank>(first - kinds.begin());
  if (rank == world.rank()) std::rethrow_exception(mine);
  throw ToldElsewhere(error_of(static_cast<ErrorKind>(*first), fmt::format("rank {} failed", rank)));
}

// Everybody's numbers stand in a list of zeros, so that the sum is the list of all.
std::vector<std::vector<std::int64_t>> gathered_lists(std::span<const std::int64_t> mine,
                                                      const comm::Communicator& world) {
  std::vector<std::size_t> ends;
  for (const std::int64_t size : gathered(std::ssize(mine), world)) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<std::size_t>(size));
  }
  std::vector<std::int64_t> all(ends.back(), 0);
  const auto own_end =
      all.begin() + static_cast<std::ptrdiff_t>(ends[static_cast<std::size_t>(world.rank())]);
  std::ranges::copy(mine, own_end - std::ssize(mine));
  world.all_reduce(std::as_writable_bytes(std::span(all)), {.dtype = DType::int64});
  std::vector<std::vector<std::int64_t>> lists;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    lists.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                       all.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return lists;
}

void part(const comm::Communicator& world) {
  try {
    world.barrier();
  } catch (const CommError&) {
    // Somebody has left: most likely because all have come this far, or it was lost.
  }
}

void refuse_together(const comm::Communicator& world, const std::string& sentence) {
  part(world);
  if (world.rank() == 0) throw UsageError(sentence);
  throw ToldElsewhere(std::make_exception_ptr(UsageError(sentence)));
}

void require_same_run(const spec::RunSpec& run, const comm::Communicator& world) {
  if (const Rank other = first_other(number_of(run), world); other >= 0) {
    refuse_together(world,
                    fmt::format("rank {} has another run than rank 0: give all ranks the same run file "
                                "and the same flags",
                                other));
  }
}

void require_same_arithmetic(const spec::RunSpec& run, const comm::Communicator& world) {
  if (!run.comm.exact || world.size() == 1) return;
  const kernels::Arithmetic& mine = kernels::arithmetic_of(run.training.dtype);
  const Rank other = first_other(number_of(mine.digest), world);
  if (other < 0) return;
  const std::string names[] = {text_of(0, mine.name, world), text_of(other, mine.name, world)};
  refuse_together(
      world,
      fmt::format("rank {} computes with {} and rank 0 with {}, which give other last bits: use processors "
                  "of one kind, or do without the same bits on any layout with --comm.exact false",
                  other, names[1], names[0]));
}

void require_same_schedule(const plan::PipelinePlan& plan, const comm::Communicator& world) {
  if (const Rank other = first_other(number_of(plan), world); other >= 0) {
    refuse_together(
        world,
        fmt::format("rank {} reads another schedule than rank 0: {} must have the same contents on all hosts",
                    other, plan.schedule));
  }
}

void require_same_data(const Feed& feed, const data::StepShape& shape, std::int64_t steps,
                       const comm::Communicator& world) {
  for (const std::int64_t step : {std::int64_t{0}, steps - 1}) {
    const Rank other = first_other(number_of(hash_of_samples(feed, shape, step)), world);
    if (other < 0) continue;
    refuse_together(
        world,
        fmt::format(
            "rank {} reads other data than rank 0: data.train must name the same contents on all hosts",
            other));
  }
}

void require_same_first_values(const Hash& values, int part, const std::string& folder,
                               const comm::Communicator& world) {
  const std::vector<std::int64_t> digests = gathered(number_of(values), world);
  const std::vector<std::int64_t> parts = gathered(part, world);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const auto first = static_cast<std::size_t>(std::ranges::find(parts, parts[rank]) - parts.begin());
    if (digests[rank] == digests[first]) continue;
    refuse_together(world, fmt::format("rank {} reads other weights than rank {}: {} must have the same "
                                       "contents on all hosts",
                                       rank, first, folder));
  }
}

}  // namespace lockstep::train
