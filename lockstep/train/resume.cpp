// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/resume.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/store/continuation.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/state_names.h"
#include "lockstep/train/state_pieces.h"

namespace lockstep::train {
namespace {

// Parameters are read piece by piece: a whole embedding may be more than there is memory.
constexpr std::size_t kPiece = std::size_t{1} << 20;

constexpr const char* kAuto = "auto";

// Those that may be resumed, the best first.
std::vector<checkpoint::Listed> candidates(const spec::Checkpoint& checkpoint, const std::string& folder) {
  if (checkpoint.resume.empty()) return {};
  if (checkpoint.resume == kAuto) return checkpoint::CheckpointStore(folder).committed();
  return {{.step = 0, .path = checkpoint::find_checkpoint(checkpoint.resume)}};
}

using Sink = std::function<void(std::size_t parameter, std::size_t first, std::span<const float> values)>;

// Gives `take` the elements of a tensor that belong to a part of a parameter of the layout. Padding is zero.
void read_part(checkpoint::Checkpoint& from, const std::string& tensor, const Holding& holding,
               const HeldPart& part, const Sink& take) {
  require_tensor(from, tensor, holding.whole_of(part.parameter).shape);
  const parallel::LaneShard shard = holding.shard(part.parameter);
  std::vector<float> values;
  for (std::size_t begin = part.elements.begin; begin < part.elements.end; begin += kPiece) {
    const Range which = {begin, std::min(part.elements.end, begin + kPiece)};
    values.assign(which.size(), 0.0F);
    std::size_t at = 0;
    for (const Runs& runs : runs_of(shard, which)) {
      for (std::size_t run = 0; run < runs.count; ++run) {
        const std::size_t first = runs.first + run * runs.distance;
        from.read(tensor, {first, first + runs.length}, std::span(values).subspan(at, runs.length));
        at += runs.length;
      }
    }
    take(part.parameter, begin, values);
  }
}

void load_state(checkpoint::Checkpoint& from, const Holding& holding, Weights& weights) {
  load_values(from, holding, weights);
  for (int index = 0; index < weights.moments(); ++index) {
    for (const HeldPart& part : parts_with_moments(holding)) {
      const std::string& name = holding.layout.specs()[part.parameter].name;
      read_part(from, moment_tensor(index, weights.moments(), name), holding, part,
                [&](std::size_t parameter, std::size_t first, std::span<const float> values) {
                  weights.assign_moment(index, parameter, first, values);
                });
    }
  }
}

// Without one in the checkpoint it is not known: it may have come beside the corpus, or been found, since.
void require_tokenizer(const checkpoint::Checkpoint& from, const std::string& digest) {
  const std::string& saved = from.manifest().tokenizer_digest;
  if (saved.empty() || saved == digest) return;
  throw UsageError(fmt::format(
      "{} was trained with a tokenizer of digest {}, but this run has {}: put that file back beside "
      "the corpus, or name it in data.tokenizer",
      from.path(), saved, digest.empty() ? "none" : "one of " + digest));
}

void require_expected(const checkpoint::Checkpoint& from, const Expected& expected, bool leads) {
  const checkpoint::Manifest& manifest = from.manifest();
  checkpoint::require_same_training(expected.run, manifest, from.path());
  if (manifest.data_digest != expected.data_digest) {
    throw UsageError(fmt::format("data.train has other samples than {} was trained on: name the same corpora",
                                 from.path()));
  }
  if (leads) require_tokenizer(from, expected.tokenizer_digest);
  const auto steps = static_cast<std::uint64_t>(manifest.progress.step);
  if (manifest.progress.data_position != steps * expected.samples_per_step) {
    throw DataError(fmt::format("{}/manifest.json: {} steps of {} samples do not come to position {}",
                                from.path(), steps, expected.samples_per_step,
                                manifest.progress.data_position));
  }
}

// From the leader.
std::int64_t shared(std::int64_t value, const comm::Communicator& world) {
  if (world.rank() != 0) value = 0;
  world.all_reduce(as_writable_bytes_of(value), {.dtype = DType::int64});
  return value;
}

// What the ranks of a world have found out about a checkpoint.
struct Attempt {
  std::optional<Resumed> resumed;  // none: it is not good
  std::string why;                 // then
};

// What tells a checkpoint from all others: its step, and both halves of the hash of its manifest. Nothing
// when there is none.
using Identity = std::vector<std::int64_t>;

Identity identity_of(const std::optional<checkpoint::Checkpoint>& from) {
  if (!from) return {};
  const Hash& hash = from->manifest_hash();
  return {from->manifest().progress.step, static_cast<std::int64_t>(hash.high),
          static_cast<std::int64_t>(hash.low)};
}

std::string described(const Identity& identity) {
  const Hash hash = {static_cast<std::uint64_t>(identity[1]), static_cast<std::uint64_t>(identity[2])};
  return fmt::format("step {} with manifest {}", identity[0], to_text(hash));
}

// Of the checkpoints that ranks have opened, all ranks together; none when all who have one have the same.
std::optional<std::string> difference_of(const std::optional<checkpoint::Checkpoint>& mine,
                                         const comm::Communicator& world) {
  const std::vector<Identity> all = gathered_lists(identity_of(mine), world);
  const auto has_one = [](const Identity& identity) { return !identity.empty(); };
  const auto first = std::ranges::find_if(all, has_one);
  const auto other = std::ranges::find_if(
      all, [&](const Identity& identity) { return has_one(identity) && identity != *first; });
  if (other == all.end()) return std::nullopt;
  return fmt::format("rank {} finds {} to go on from, but rank {} {}: it must be one checkpoint on all hosts",
                     other - all.begin(), described(*other), first - all.begin(), described(*first));
}

// `path` is null when this rank does not see it.
Attempt try_to_resume(const std::string* path, const Expected& expected, const Holding& holding,
                      Weights& weights) {
  const comm::Communicator& world = holding.groups.world;
  std::optional<checkpoint::Checkpoint> from;
  Attempt attempt;
  const auto try_together = [&](const std::function<void()>& body) {
    together(world, [&] {
      try {
        body();
      } catch (const DataError& error) {
        attempt.why = error.what();
      }
    });
  };
  try_together([&] {
    if (path == nullptr) throw DataError("this rank does not see it: all ranks need the same folder");
    from.emplace(*path);
  });
  if (const auto difference = difference_of(from, world)) {
    // In a run's own store a writer that was given up may replace one while ranks look: there are others.
    if (expected.run.checkpoint.resume != kAuto) refuse_together(world, *difference);
    attempt.why = *difference;
    from.reset();
  }
  try_together([&] {
    if (!from) return;
    require_expected(*from, expected, world.rank() == 0);
    load_state(*from, holding, weights);
    const checkpoint::Manifest& manifest = from->manifest();
    attempt.resumed = {from->path(), manifest.progress, manifest.last_step, manifest.arithmetic};
  });
  if (!attempt.resumed) log::warning("passed over a checkpoint that is not good: " + attempt.why);
  std::int64_t failures = attempt.resumed ? 0 : 1;
  world.all_reduce(as_writable_bytes_of(failures), {.dtype = DType::int64});
  if (failures > 0 && attempt.resumed) attempt = {std::nullopt, "another rank has found it to be bad"};
  return attempt;
}

// A disk may have lost the word that committed one, and with it everything to go on from.
void warn_about_uncommitted(const spec::Checkpoint& checkpoint, const std::string& folder) {
  if (checkpoint.resume != kAuto) return;
  for (const checkpoint::Incomplete& one : checkpoint::CheckpointStore(folder).incomplete()) {
    if (!one.is_partial) log::warning(fmt::format("passed over {}: it {}", one.folder.path, one.reason));
  }
}

}  // namespace

std::optional<std::string> newest_checkpoint(const spec::Checkpoint& checkpoint, const std::string& folder) {
  const std::vector<checkpoint::Listed> all = candidates(checkpoint, folder);
  return all.empty() ? std::nullopt : std::optional(all.front().path);
}

std::string resume_later(const spec::Checkpoint& checkpoint, const std::string& folder,
                         const comm::Communicator& world) {
  bool has_one = false;
  together(world,
           [&] { has_one = !folder.empty() && !checkpoint::CheckpointStore(folder).committed().empty(); });
  // A writer that was given up may commit one while ranks look.
  if (shared(has_one ? 1 : 0, world) != 0) return kAuto;
  // A launcher that was started again has said "auto", and workers that it has found have not.
  return checkpoint.resume == kAuto ? std::string() : checkpoint.resume;
}

spec::RunSpec as_saved(const spec::RunSpec& run, const std::string& folder) {
  for (const checkpoint::Listed& listed : candidates(run.checkpoint, folder)) {
    try {
      return checkpoint::continued(run, checkpoint::Checkpoint(listed.path).manifest(), listed.path);
    } catch (const DataError&) {
      continue;  // resume() tells.
    }
  }
  return run;
}

void load_values(checkpoint::Checkpoint& from, const Holding& holding, Weights& weights) {
  for (const HeldPart& part : parts_with_values(holding)) {
    const std::string& name = holding.layout.specs()[part.parameter].name;
    read_part(from, value_tensor(name), holding, part,
              [&](std::size_t parameter, std::size_t first, std::span<const float> values) {
                weights.assign(parameter, first, values);
              });
  }
}

void require_continuation(const Expected& expected, const comm::Communicator& world) {
  const std::string& path = expected.run.checkpoint.resume;
  if (path.empty() || path == kAuto) return;
  together(world, [&] {
    const checkpoint::Checkpoint from(checkpoint::find_checkpoint(path));
    require_expected(from, expected, world.rank() == 0);
  });
}

std::optional<Resumed> resume(const std::string& folder, const Expected& expected, const Holding& holding,
                              Weights& weights) {
  const comm::Communicator& world = holding.groups.world;
  const auto list = [&] {
    std::vector<checkpoint::Listed> found;
    together(world, [&] { found = candidates(expected.run.checkpoint, folder); });
    return found;
  };
  std::vector<checkpoint::Listed> found = list();
  std::int64_t count = shared(static_cast<std::int64_t>(found.size()), world);
  if (count == 0) {
    if (world.rank() == 0) warn_about_uncommitted(expected.run.checkpoint, folder);
    return std::nullopt;
  }
  std::string why;
  for (bool has_changed = true; has_changed;) {
    for (std::int64_t i = 0; i < count; ++i) {
      const bool leads = world.rank() == 0;
      const std::int64_t step = shared(leads ? found[static_cast<std::size_t>(i)].step : 0, world);
      const auto mine = std::ranges::find(found, step, &checkpoint::Listed::step);
      Attempt attempt =
          try_to_resume(mine == found.end() ? nullptr : &mine->path, expected, holding, weights);
      if (attempt.resumed) return attempt.resumed;
      why = std::move(attempt.why);
    }
    // A writer that was given up, and does not know it yet, may have removed them for a newer one.
    std::vector<checkpoint::Listed> again = list();
    has_changed = shared(again != found ? 1 : 0, world) != 0;
    found = std::move(again);
    count = shared(static_cast<std::int64_t>(found.size()), world);
  }
  together(world, [&]() {
    throw DataError(
        fmt::format("none of the {} checkpoints to go on from is good; of the last one: {}", count, why));
  });
  return std::nullopt;
}

}  // namespace lockstep::train
