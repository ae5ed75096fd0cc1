// SPDX-License-Identifier: Apache-2.0
//
// What a rank makes of the share that another one has left.
#include "lockstep/train/in_place_mirror.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/train/kept_state.h"

#include "tests/support/worlds.h"

namespace lockstep::train {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr Rank kReader = 0;
constexpr Rank kOwner = 1;
constexpr int kUpdates = 3;

// By bucket and quantity, in bits.
using Bits = std::vector<std::vector<std::uint32_t>>;

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

// As long as it lives this process gets next to no more memory from the kernel.
class NoMoreMemory {
 public:
  NoMoreMemory() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limited = before_;
    limited.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + kSlack;
    ::setrlimit(RLIMIT_AS, &limited);
  }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;
  ~NoMoreMemory() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  static constexpr std::size_t kSlack = std::size_t{1} << 20;  // less than a share
  rlimit before_ = {};
};

// A rank of a world of two that share out the update, without a model's passes.
class Sharer {
 public:
  Sharer(const comm::Communicator& world, DType dtype, bool is_adamw)
      : world_(world),
        is_adamw_(is_adamw),
        holding_(holding_of(model_, world, {.bucket_elements = 290'000, .zero_stage = 1})),
        pool_(world),
        weights_(holding_, pool_, {.dtype = dtype, .moments = is_adamw ? 2 : 1, .has_journal = true}) {
    weights_.give_first_values(5);
    mirror_ = Mirror::make(holding_, weights_);
    mirror_->fill();
    for (const Range& own : holding_.partition.own) {
      gradients_.push_back(world.allocate(own.size() * sizeof(float)));
    }
  }

  // As all ranks do, but for the update itself.
  void vote(int update) {
    std::vector<Mirror::Gradients> own;
    for (std::size_t bucket = 0; bucket < gradients_.size(); ++bucket) {
      const std::span<float> values = gradients_[bucket].as<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t mixed = (i + 31 * bucket) * static_cast<std::size_t>(7 * update + world_.rank());
        values[i] = static_cast<float>(mixed % 2003) * 1e-3F - 1.0F;
      }
      own.emplace_back(values);
    }
    mirror_->take_gradients(own);
    how_ =
        is_adamw_
            ? OptimizerStep(kernels::AdamW{.weight_decay = 0.1F, .step = static_cast<std::uint64_t>(update)})
            : OptimizerStep(kernels::Sgd{.momentum = 0.9F, .weight_decay = 0.1F});
    mirror_->update(how_, kScale);
  }
  void update() {
    for (std::size_t bucket = 0; bucket < gradients_.size(); ++bucket) {
      weights_.update(how_, bucket, gradients_[bucket].as<const float>(), kScale);
    }
  }

  Bits own() const {
    Bits all;
    for (std::size_t bucket = 0; bucket < gradients_.size(); ++bucket) {
      std::vector<float> values(holding_.partition.own[bucket].size());
      for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
        weights_.copy_quantity(quantity, bucket, {0, values.size()}, values);
        all.push_back(bits_of(values));
      }
    }
    return all;
  }
  // Empty: it cannot be used.
  Bits read(const std::vector<Rank>& gone) {
    Bits all;
    for (const MirroredShare& share : mirror_->take_shares(gone, nullptr)) {
      EXPECT_EQ(share.owner(), 1 - world_.rank());
      for (std::size_t bucket = 0; bucket < share.shares().size(); ++bucket) {
        for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
          all.push_back(bits_of(share.of(quantity, bucket)));
        }
      }
    }
    return all;
  }

  // How often each part of what this rank does when it has lost the other one says that it gets on.
  struct Moves {
    std::uint64_t looking = 0, reading = 0, copying = 0;
  };
  Moves moves_while_keeping() {
    elastic::Activity activity;
    Moves moves;
    EXPECT_TRUE(weights_.are_intact(&activity));
    moves.looking = activity.progress();
    std::vector<MirroredShare> shares = mirror_->take_shares(std::vector<Rank>{1 - world_.rank()}, &activity);
    moves.reading = activity.progress() - moves.looking;
    const KeptState kept(holding_, weights_, LargeMemory(KeptState::bytes_of_own(holding_, weights_)),
                         std::move(shares), {}, &activity);
    moves.copying = activity.progress() - moves.looking - moves.reading;
    return moves;
  }
  std::size_t buckets() const { return gradients_.size(); }

  void flip_a_bit() { weights_.arrays(0).back()[12] ^= std::byte{2}; }

 private:
  static constexpr float kScale = 0.25F;

  const comm::Communicator& world_;
  bool is_adamw_;
  const model::Model model_ = model::gpt::make(
      {.layers = 2, .width = 192, .heads = 2, .ffn_width = 384, .vocabulary = 61, .positions = 9});
  const Holding holding_;
  BufferPool pool_;
  Weights weights_;
  std::unique_ptr<Mirror> mirror_;
  std::vector<comm::Buffer> gradients_;  // by bucket, of the share
  OptimizerStep how_;
};

class InPlaceMirrors : public ::testing::TestWithParam<std::tuple<DType, bool, int>> {
 protected:
  struct Found {
    Bits own;   // what the owner has made of its share
    Bits read;  // what the other one has read
    std::string said;
  };
  // `rule`: of failpoints, that cuts the owner's last update short.
  Found found(const std::string& rule, bool is_gone, bool flips = false) const {
    const auto [dtype, is_adamw, threads] = GetParam();
    Found found;
    test::run_ranks(
        test::make_world("shm", 2), {},
        [&, dtype = dtype, is_adamw = is_adamw, threads = threads](const comm::Communicator& world) {
          kernels::set_threads(threads);
          Sharer rank(world, dtype, is_adamw);
          for (int update = 1; update < kUpdates; ++update) {
            rank.vote(update);
            rank.update();
          }
          rank.vote(kUpdates);
          world.barrier();
          if (world.rank() == kOwner) {
            failpoint::arm(rule);
            if (rule.empty()) {
              rank.update();
            } else {
              EXPECT_THROW(rank.update(), InternalError) << rule;
            }
            failpoint::arm("");
            if (flips) rank.flip_a_bit();
            found.own = rank.own();
          }
          world.barrier();
          if (world.rank() == kReader) {
            ::testing::internal::CaptureStderr();
            found.read = rank.read(is_gone ? std::vector<Rank>{kOwner} : std::vector<Rank>());
            found.said = ::testing::internal::GetCapturedStderr();
          }
          world.barrier();
        });
    kernels::set_threads(1);
    return found;
  }

  // Of two that have begun, and do nothing meanwhile.
  static void as_reader(const std::function<void(Sharer&)>& look) {
    const auto [dtype, is_adamw, threads] = GetParam();
    test::run_ranks(test::make_world("shm", 2), {},
                    [&, dtype = dtype, is_adamw = is_adamw](const comm::Communicator& world) {
                      Sharer rank(world, dtype, is_adamw);
                      world.barrier();
                      if (world.rank() == kReader) look(rank);
                      world.barrier();
                    });
  }
};

INSTANTIATE_TEST_SUITE_P(States, InPlaceMirrors,
                         ::testing::Combine(::testing::Values(DType::fp32, DType::bf16, DType::fp16),
                                            ::testing::Values(true, false), ::testing::Values(1, 2)),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", name_of(std::get<0>(test.param)),
                                              std::get<1>(test.param) ? "adamw" : "sgd",
                                              std::get<2>(test.param));
                         });

TEST_P(InPlaceMirrors, EndAnUpdateThatWasCutShort) {
  const Found whole = found("", true);
  EXPECT_FALSE(whole.own.empty());
  EXPECT_TRUE(whole.read == whole.own);
  for (const char* point : {"train.update.saved", "train.update.chunk"}) {
    for (const int hit : {1, 2, 4}) {
      const Found cut = found(fmt::format("{}@hit={}:throw", point, hit), true);
      EXPECT_FALSE(cut.own == whole.own);
      EXPECT_TRUE(cut.read == whole.own) << point << ", hit " << hit;
    }
  }
}

// Before a bucket is updated at all, and of one that will be.
TEST_P(InPlaceMirrors, ReadThoseThatAreNotGoneToo) {
  const Found whole = found("", false);
  EXPECT_TRUE(whole.read == whole.own);
  EXPECT_EQ(whole.said, "");
  EXPECT_TRUE(found("train.update.saved:throw", false).read == whole.own);
}

// A large state takes long, and whoever does that must not be taken for one that stands still.
TEST_P(InPlaceMirrors, SayThatTheyGetOnWhileTheStateIsKept) {
  as_reader([](Sharer& rank) {
    ASSERT_GT(rank.buckets(), 1U);
    const Sharer::Moves moves = rank.moves_while_keeping();
    EXPECT_GE(moves.looking, rank.buckets());
    EXPECT_GE(moves.reading, rank.buckets());
    EXPECT_GE(moves.copying, rank.buckets());
  });
}

// The run goes on from another copy, or from a checkpoint.
TEST_P(InPlaceMirrors, DoWithoutAShareThatThereIsNoMemoryFor) {
  as_reader([](Sharer& rank) {
    ::testing::internal::CaptureStderr();
    {
      const NoMoreMemory limit;
      EXPECT_TRUE(rank.read({kOwner}).empty());
    }
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                ContainsRegex("rank 1 .*a copy of it takes [0-9.]+ MiB of memory"));
    EXPECT_FALSE(rank.read({kOwner}).empty()) << "there is some again";
  });
}

TEST_P(InPlaceMirrors, DoNotUseWhatHasChangedByItself) {
  const std::string reason = ": a bit of it has changed since its last update; ";
  const Found lost = found("", true, true);
  EXPECT_TRUE(lost.read.empty());
  EXPECT_THAT(lost.said, HasSubstr("what rank 1 has left of the state cannot be used" + reason));
  const Found there = found("", false, true);
  EXPECT_TRUE(there.read.empty());
  EXPECT_THAT(there.said, HasSubstr("the share of the state of rank 1 has no copy here" + reason));
}

}  // namespace
}  // namespace lockstep::train
