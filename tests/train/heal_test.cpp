// SPDX-License-Identifier: Apache-2.0
//
// A run that loses ranks and gets others goes on from what the rest has in memory, and is the run that was
// never disturbed.
#include "lockstep/train/heal.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/train/replicas.h"
#include "lockstep/train/run.h"

#include "tests/support/files.h"
#include "tests/support/worlds.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

using test::TemporaryFolder;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Flags = std::vector<std::string>;

// --- Whole runs.

struct Killed : std::exception {};

enum class Moment {
  between_steps,    // before the step begins
  before_voting,    // nobody will apply it
  after_voting,     // all others apply it, half of them when they hear of it later
  before_applying,  // it has heard the decision, as all others have
};

// A world, and how it ends: these of its ranks are lost in this step.
struct Episode {
  int workers = 1;
  Flags flags = {};
  std::int64_t step = 0;  // 0: none are lost
  Moment moment = Moment::between_steps;
  std::set<Rank> lost = {0};
  std::int64_t regroup_after = 0;  // instead: all leave together
  std::int64_t flip_in = 0;        // instead: of a weight of the lost ranks a bit changes after this step
};

// The coordinator of an episode.
class Votes {
 public:
  explicit Votes(int ranks) : ranks_(ranks) {}

  // Returns when all have voted.
  void vote(std::int64_t step) {
    std::unique_lock lock(mutex_);
    if (++count_[step] == ranks_) decided_ = step;
    changed_.notify_all();
    changed_.wait(lock, [&] { return decided_ >= step || is_broken_; });
    if (decided_ < step) throw Aborted("a rank was lost before all had voted");
  }
  void lose() {
    const std::lock_guard lock(mutex_);
    is_broken_ = true;
    changed_.notify_all();
  }
  std::int64_t decided() const { return decided_; }

 private:
  int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, int> count_;
  std::int64_t decided_ = -1;
  bool is_broken_ = false;
};

struct Told {
  std::map<std::int64_t, double> losses;  // by step, as told last
  std::int64_t steps_trained = 0;         // and told, by all worlds
  std::int64_t healed = 0;                // worlds that went on from memory
  std::vector<std::int64_t> resumed;      // steps of checkpoints that were gone on from
  std::map<Rank, std::string> corrupt;    // ranks that were told so
};

// By transport: over "loopback" ranks mirror each other by copies, over "shm" they read what others have
// left.
class Healing : public ::testing::TestWithParam<const char*> {
 protected:
  spec::RunSpec run_of(const Flags& flags) const {
    Flags all = {"--parallelism.lanes",
                 "8",
                 "--parallelism.tensor_lanes",
                 "2",
                 "--training.global_batch_size",
                 "16",
                 "--training.steps",
                 "8",
                 "--model.dropout",
                 "0.1",
                 "--optimizer.lr",
                 "0.01",
                 "--validation.freq",
                 "3"};
    all.insert(all.end(), common_.begin(), common_.end());
    all.insert(all.end(), flags.begin(), flags.end());
    return small_run(corpus_, family_, all);
  }

  // One after the other, each with what the one before has left.
  Told train(const std::string& name, const std::vector<Episode>& episodes) {
    Told told;
    std::vector<KeptState> kept;
    for (const Episode& episode : episodes) kept = play(name, episode, std::move(kept), told);
    return told;
  }

  std::vector<KeptState> play(const std::string& name, const Episode& episode, std::vector<KeptState> kept,
                              Told& told) {
    spec::RunSpec run = run_of(episode.flags);
    if (!told.losses.empty()) run.checkpoint.resume = "auto";
    kept.resize(std::max(kept.size(), static_cast<std::size_t>(episode.workers)));
    std::vector<KeptState> left;
    std::mutex mutex;
    Votes votes(episode.workers);
    test::run_ranks(test::make_world(GetParam(), episode.workers), {}, [&](const comm::Communicator& world) {
      const Rank rank = world.rank();
      const bool dies = episode.step > 0 && episode.lost.contains(rank);
      const auto die_at = [&](std::int64_t step, Moment moment) {
        if (!dies || step != episode.step || moment != episode.moment) return;
        votes.lose();
        throw Killed();
      };
      RunHooks hooks = {.checkpoints = folder_.path(name)};
      hooks.kept = &kept[static_cast<std::size_t>(rank)];
      bool has_begun = false;
      hooks.begun = [&](std::int64_t step) {
        has_begun = true;
        die_at(step + 1, Moment::between_steps);
      };
      hooks.agree = [&](std::int64_t step) {
        die_at(step, Moment::before_voting);
        votes.vote(step);
        die_at(step, Moment::after_voting);
        die_at(step, Moment::before_applying);
        const bool hears = episode.moment != Moment::after_voting || rank % 2 == 0;
        if (step == episode.step && !hears) throw Aborted("the coordinator was not heard");
        return step == episode.regroup_after;
      };
      std::int64_t last = 0;
      hooks.after_step = [&](const StepReport& report) {
        last = report.step;
        if (rank == 0) {
          told.losses[report.step] = report.loss;
          ++told.steps_trained;
        }
        die_at(report.step + 1, Moment::between_steps);
      };
      hooks.see_state = [&](const StepState& state) {
        if (last != episode.flip_in || !episode.lost.contains(rank)) return;
        state.weights.working({5, 6}).front() ^= std::byte{1};
      };
      if (rank == 0) {
        hooks.healed = [&](const Reached&) { ++told.healed; };
        hooks.resumed = [&](const Resumed& from) { told.resumed.push_back(from.progress.step); };
      }
      std::optional<Training> training;
      try {
        training.emplace(run, world, hooks);
        if (!training->train().regroups) return;
      } catch (const Killed&) {
        return;
      } catch (const CommError&) {
        votes.lose();
      } catch (const CorruptState& corrupt) {
        const std::lock_guard lock(mutex);
        told.corrupt.emplace(rank, corrupt.what());
        if (!has_begun || !training->is_vouched_for()) return;
      }
      KeptState state;
      if (has_begun) {
        training->settle(votes.decided());
        try {
          state = training->keep(gone_after(episode));
        } catch (const CorruptState& corrupt) {
          const std::lock_guard lock(mutex);
          told.corrupt.emplace(rank, corrupt.what());
        }
      } else {
        state = std::move(kept[static_cast<std::size_t>(rank)]);
      }
      const std::lock_guard lock(mutex);
      left.push_back(std::move(state));
    });
    return left;
  }

  static std::vector<Rank> gone_after(const Episode& episode) {
    std::vector<Rank> gone;
    for (const Rank lost : episode.lost) {
      if (episode.step > 0 && lost < episode.workers) gone.push_back(lost);
    }
    return gone;
  }

  std::string newest_hash(const std::string& name) const {
    checkpoint::Checkpoint newest(checkpoint::find_checkpoint(folder_.path(name)));
    return to_text(checkpoint::logical_hash(newest));
  }

  void expect_undisturbed(const std::vector<Episode>& episodes, std::int64_t healed) {
    const std::string name = "try" + std::to_string(tries_++);
    const Told told = train(name, episodes);
    EXPECT_EQ(told.losses, undisturbed().losses);
    EXPECT_EQ(newest_hash(name), hash_);
    EXPECT_EQ(told.healed, healed);
    EXPECT_THAT(told.resumed, ElementsAre());
  }

  const Told& undisturbed() {
    if (undisturbed_.losses.empty()) {
      undisturbed_ = train("undisturbed", {{.workers = 2}});
      hash_ = newest_hash("undisturbed");
    }
    return undisturbed_;
  }

  void SetUp() override { undisturbed(); }

  static bool is_in_place() { return GetParam() == std::string("shm"); }

  TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
  std::string family_ = "gpt";
  Flags common_ = {"--training.dtype", "bf16"};
  Told undisturbed_;
  std::string hash_;
  int tries_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Over, Healing, ::testing::Values("loopback", "shm"),
                         [](const auto& transport) { return std::string(transport.param); });

constexpr Moment kMoments[] = {Moment::between_steps, Moment::before_voting, Moment::after_voting,
                               Moment::before_applying};

TEST_P(Healing, EveryRankCanBeLostAtEveryMomentOfAStep) {
  for (const Moment moment : kMoments) {
    for (const Rank rank : {0, 1, 3}) {
      SCOPED_TRACE(::testing::Message() << "rank " << rank << ", moment " << static_cast<int>(moment));
      expect_undisturbed({{.workers = 4, .step = 3, .moment = moment, .lost = {rank}}, {.workers = 3}}, 1);
    }
  }
}

TEST_P(Healing, AStepIsTrainedTwiceAtMost) {
  for (const Moment moment : kMoments) {
    const std::string name = "again" + std::to_string(tries_++);
    const Told told = train(name, {{.workers = 4, .step = 4, .moment = moment}, {.workers = 3}});
    // The last one before the loss is told again.
    EXPECT_LE(told.steps_trained, 8 + 1);
  }
}

TEST_P(Healing, AnyLayoutBecomesAnyOther) {
  // Of the largest replica, four workers, there are two.
  const std::vector<Flags> layouts = {
      {"--parallelism.zero_stage", "0"},
      {"--parallelism.zero_stage", "1"},
      {"--parallelism.zero_stage", "2"},
      {"--parallelism.zero_stage", "3"},
      {"--parallelism.pipeline", "2", "--parallelism.zero_stage", "1"},
      {"--parallelism.tensor", "2", "--parallelism.sequence_parallel", "true"},
      {"--parallelism.tensor", "2", "--parallelism.zero_stage", "3"},
      {"--parallelism.tensor", "2", "--parallelism.pipeline", "2"},
      {"--parallelism.pipeline", "2", "--parallelism.schedule", "zbv"},
  };
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    SCOPED_TRACE(i);
    const Moment moment = kMoments[i % std::size(kMoments)];
    expect_undisturbed({{.workers = 8, .flags = layouts[i], .step = 3, .moment = moment, .lost = {1}},
                        {.workers = 8, .flags = layouts[(i + 2) % layouts.size()], .regroup_after = 5},
                        {.workers = 8, .flags = layouts[(i + 4) % layouts.size()]}},
                       2);
  }
}

TEST_P(Healing, ManyLossesAndArrivals) {
  expect_undisturbed({{.workers = 4, .step = 2, .moment = Moment::after_voting, .lost = {2}},
                      {.workers = 3, .step = 3, .moment = Moment::before_applying, .lost = {0}},
                      {.workers = 2, .regroup_after = 4},
                      {.workers = 5, .step = 5, .moment = Moment::between_steps, .lost = {4}},
                      {.workers = 8, .step = 7, .moment = Moment::before_voting, .lost = {3}},
                      {.workers = 7}},
                     5);
}

TEST_P(Healing, KeepsWhatElseARunRemembers) {
  const Flags cases[] = {
      {"--training.dtype", "fp32", "--optimizer.name", "sgd"},
      {"--training.dtype", "fp16", "--training.loss_scale_window", "2"},
      {"--training.dtype", "fp16", "--training.initial_loss_scale", "1e9"},
  };
  for (const Flags& flags : cases) {
    common_ = flags;
    undisturbed_ = {};
    std::filesystem::remove_all(folder_.path("undisturbed"));
    undisturbed();
    for (const Moment moment : kMoments) {
      expect_undisturbed({{.workers = 3, .step = 3, .moment = moment, .lost = {1}}, {.workers = 2}}, 1);
    }
  }
}

class HealingByCopies : public Healing {};
INSTANTIATE_TEST_SUITE_P(Over, HealingByCopies, ::testing::Values("loopback"));

// A share and its mirror are on ranks that stand next to each other.
TEST_P(HealingByCopies, WhatNobodyHasComesFromTheNewestCheckpoint) {
  common_.insert(common_.end(), {"--checkpoint.interval", "3"});
  const std::vector<Episode> episodes = {
      {.workers = 4, .step = 6, .moment = Moment::before_voting, .lost = {1, 2}}, {.workers = 2}};
  const Told told = train("lost", episodes);
  EXPECT_EQ(told.losses, undisturbed().losses);
  EXPECT_EQ(newest_hash("lost"), hash_);
  EXPECT_EQ(told.healed, 0);
  // That of step 3, which is written beside the next steps, or none when the disk was slower than they.
  EXPECT_THAT(told.resumed, AnyOf(ElementsAre(3), IsEmpty()));
}

class HealingInPlace : public Healing {};
INSTANTIATE_TEST_SUITE_P(Over, HealingInPlace, ::testing::Values("shm"));

// Those that stand next to each other too, which would be lost where mirrors are copies.
TEST_P(HealingInPlace, AnyTwoCanBeLostAtOnce) {
  for (const Moment moment : kMoments) {
    for (const std::set<Rank>& lost : {std::set<Rank>{1, 2}, {0, 3}, {0, 2}}) {
      expect_undisturbed({{.workers = 4, .step = 3, .moment = moment, .lost = lost}, {.workers = 2}}, 1);
    }
  }
}

TEST_P(HealingInPlace, OneRankThatIsLeftIsEnough) {
  for (const char* stage : {"1", "2", "3"}) {
    expect_undisturbed({{.workers = 4,
                         .flags = {"--parallelism.zero_stage", stage},
                         .step = 4,
                         .moment = Moment::before_applying,
                         .lost = {0, 1, 3}},
                        {.workers = 3}},
                       1);
  }
}

TEST_P(HealingInPlace, AnotherCanBeLostBeforeTheNextWorldHasBegun) {
  for (const char* stage : {"1", "3"}) {
    for (std::size_t second = 0; second < 3; ++second) {
      Told told;
      const std::string name = "second" + std::to_string(tries_++);
      std::vector<KeptState> kept = play(name,
                                         {.workers = 4,
                                          .flags = {"--parallelism.zero_stage", stage},
                                          .step = 3,
                                          .moment = Moment::before_applying,
                                          .lost = {1}},
                                         {}, told);
      ASSERT_EQ(kept.size(), 3U);
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(second));
      play(name, {.workers = 2}, std::move(kept), told);
      EXPECT_EQ(told.losses, undisturbed().losses);
      EXPECT_EQ(newest_hash(name), hash_);
      EXPECT_EQ(told.healed, 1);
      EXPECT_THAT(told.resumed, IsEmpty());
    }
  }
}

// Of two nobody knows which is right.
TEST_P(HealingInPlace, CopiesThatDifferAreNotGivenToOthers) {
  Told told;
  std::vector<KeptState> kept =
      play("differ", {.workers = 4, .step = 3, .moment = Moment::before_applying, .lost = {1}}, {}, told);
  ASSERT_EQ(kept.size(), 3U);
  const_cast<float&>(kept[0].values_of(0).front()) += 1.0F;
  kept = play("differ", {.workers = 3}, std::move(kept), told);
  EXPECT_EQ(told.corrupt.size(), 2U);
  EXPECT_EQ(kept.size(), 1U);
  play("differ", {.workers = 3}, std::move(kept), told);
  EXPECT_EQ(told.healed, 0);
  EXPECT_EQ(told.losses, undisturbed().losses);
  EXPECT_EQ(newest_hash("differ"), hash_);
}

TEST_P(Healing, FlippedBitsAreFoundAndHealed) {
  for (const char* stage : {"0", "1", "2"}) {
    common_ = {"--training.dtype", "bf16", "--elastic.compare_freq", "2", "--parallelism.zero_stage", stage};
    const std::string name = "flipped" + std::string(stage);
    // Weights that ranks share out come from their owner in the next step: what differs was its own.
    const Told told = train(name, {{.workers = 3, .lost = {1}, .flip_in = 4}, {.workers = 3}});
    EXPECT_EQ(told.losses, undisturbed().losses);
    EXPECT_EQ(newest_hash(name), hash_);
    ASSERT_EQ(told.corrupt.size(), 1U);
    EXPECT_EQ(told.corrupt.at(1), "after step 4 the weights of rank 1 are not those of the other ranks");
    EXPECT_EQ(told.healed, 1);
  }
}

// The bit changes after the last comparison that there was.
TEST_P(Healing, FlippedBitsAreNotGivenToOthers) {
  for (const char* stage : {"0", "1"}) {
    common_ = {"--training.dtype",         "bf16", "--elastic.compare_freq", "0",
               "--parallelism.zero_stage", stage,  "--checkpoint.interval",  "3"};
    const std::string name = "given" + std::string(stage);
    // With stage 1 the weight is of rank 0's share.
    const Told told = train(
        name,
        {{.workers = 4, .lost = {0}, .regroup_after = 5, .flip_in = 5}, {.workers = 5}, {.workers = 4}});
    EXPECT_EQ(told.losses, undisturbed().losses);
    EXPECT_EQ(newest_hash(name), hash_);
    // A share has one mirror: of two nobody knows which is right, and the checkpoint is. In place its own
    // journal says which rank it is before anything is compared.
    const std::size_t corrupt = is_in_place() ? 1 : 2;
    EXPECT_EQ(told.corrupt.size(), *stage == '0' ? 1U : corrupt);
    EXPECT_EQ(told.healed, *stage == '0' ? 1 : 0);
  }
}

TEST_P(Healing, OfTwoOnlyAJournalKnowsWhatIsRight) {
  common_.insert(common_.end(), {"--elastic.compare_freq", "2", "--checkpoint.interval", "2"});
  const Told told = train("pair", {{.workers = 2, .lost = {1}, .flip_in = 4}, {.workers = 2}});
  EXPECT_EQ(told.corrupt.size(), 2U);
  // Without journals from the checkpoint of step 2, or anew when its disk was too slow. With them each has a
  // share that is right, and the weights come from these.
  EXPECT_EQ(told.healed, is_in_place() ? 1 : 0);
  EXPECT_EQ(newest_hash("pair"), hash_);
}

TEST_P(Healing, TwoThatDoNotMirrorEachOtherCanBeLostAtOnce) {
  expect_undisturbed(
      {{.workers = 4, .step = 3, .moment = Moment::before_applying, .lost = {0, 2}}, {.workers = 2}}, 1);
}

}  // namespace
}  // namespace lockstep::train
