// SPDX-License-Identifier: Apache-2.0
//
// Whatever a mirror keeps and puts off: when it is asked, it has what the owner of the share has.
#include "lockstep/train/mirror.h"

#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/train/buffer_pool.h"

#include "tests/support/ranks.h"
#include "tests/train/step_rig.h"

namespace lockstep::train {
namespace {

struct Case {
  std::vector<int> hosts;  // by rank
  std::int64_t mirror_steps = 1;
  DType dtype = DType::bf16;
  bool is_sgd = false;
  int zero_stage = 1;
};

std::string shown(const Case& one) {
  return ::testing::PrintToString(one.hosts) + ", " + std::to_string(one.mirror_steps) + " steps";
}

// Different in every step and element.
float gradient_at(int step, std::size_t element) {
  return static_cast<float>(std::sin(static_cast<double>(element) * 0.7 + step * 1.3)) * 0.1F;
}

// A rank, its share and what it mirrors; owners update with every step.
class Rig {
 public:
  Rig(const comm::Communicator& world, const Case& one)
      : one_(one),
        world_(world),
        holding_(holding_of(model::llama::make(kSmallLlama), world,
                            {.bucket_elements = 3000, .zero_stage = one.zero_stage})),
        pool_(world),
        weights_(holding_, pool_, {.dtype = one.dtype, .moments = one.is_sgd ? 1 : 2}),
        mirror_(holding_, weights_, one.mirror_steps) {
    weights_.give_first_values(5);
    mirror_.fill();
  }

  void take_step(int step, bool counts) {
    const auto buckets = holding_.partition.own.size();
    std::vector<std::vector<float>> gradients(buckets);
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      const Range own = holding_.partition.own[bucket];
      for (std::size_t i = own.begin; i < own.end; ++i) gradients[bucket].push_back(gradient_at(step, i));
      mirror_.start_taking(bucket, gradients[bucket]);
    }
    mirror_.finish_taking();
    if (!counts) return;
    const float scale = 1.0F / static_cast<float>(1 + step % 3);
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      weights_.update(how(), bucket, gradients[bucket], scale);
    }
    mirror_.update(how(), scale);
    ++updates_;
  }

  // All ranks together.
  void expect_mirrored(int after_step) {
    std::vector<std::vector<float>> own;  // by bucket and quantity
    for (std::size_t bucket = 0; bucket < holding_.partition.own.size(); ++bucket) {
      for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
        std::vector<float>& values = own.emplace_back(holding_.partition.own[bucket].size());
        weights_.copy_quantity(quantity, bucket, {0, values.size()}, values);
      }
    }
    // From every rank to every other.
    for (Rank owner = 0; owner < world_.size(); ++owner) {
      std::size_t next = 0;
      for (std::size_t bucket = 0; bucket < holding_.partition.own.size(); ++bucket) {
        for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
          const Range share =
              chunk_range(holding_.partition.buckets[bucket].elements.size(),
                          static_cast<std::size_t>(world_.size()), static_cast<std::size_t>(owner));
          std::vector<float> values = owner == world_.rank() ? own[next] : std::vector<float>(share.size());
          ++next;
          world_.broadcast(std::as_writable_bytes(std::span(values)), {.root = owner});
          for (const MirroredShare& mirrored : mirror_.shares()) {
            if (mirrored.owner() != owner) continue;
            EXPECT_TRUE(std::ranges::equal(mirrored.of(quantity, bucket), values))
                << shown(one_) << ": after step " << after_step << " rank " << world_.rank()
                << " has another quantity " << quantity << " of bucket " << bucket << " than rank " << owner;
          }
        }
      }
    }
  }

 private:
  OptimizerStep how() const {
    if (one_.is_sgd) return kernels::Sgd{.learning_rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F};
    return kernels::AdamW{.learning_rate = 1e-2F / static_cast<float>(1 + updates_),
                          .weight_decay = 0.1F,
                          .step = static_cast<std::uint64_t>(updates_) + 1};
  }

  const Case& one_;
  comm::Communicator world_;
  Holding holding_;
  BufferPool pool_;
  Weights weights_;
  Mirror mirror_;
  int updates_ = 0;
};

void run(const Case& one, const std::function<void(Rig&)>& body) {
  test::run_ranks(transport::make_loopback(static_cast<int>(one.hosts.size())), {.hosts = one.hosts},
                  [&](const comm::Communicator& world) {
                    Rig rig(world, one);
                    body(rig);
                  });
}

TEST(Mirror, HasTheBitsOfTheOwnerAfterAnyNumberOfSteps) {
  for (const std::int64_t mirror_steps : {1, 2, 3, 4, 8}) {
    for (int steps = 0; steps <= 2 * mirror_steps + 1; ++steps) {
      run({.hosts = {0, 0, 0}, .mirror_steps = mirror_steps}, [&](Rig& rig) {
        for (int step = 1; step <= steps; ++step) rig.take_step(step, true);
        rig.expect_mirrored(steps);
      });
    }
  }
}

TEST(Mirror, IsAskedInTheMiddle) {
  for (const std::int64_t mirror_steps : {2, 4, 8}) {
    run({.hosts = {0, 0}, .mirror_steps = mirror_steps}, [](Rig& rig) {
      for (int step = 1; step <= 20; ++step) {
        rig.take_step(step, true);
        if (step % 3 == 0 || step == 13) rig.expect_mirrored(step);
      }
    });
  }
}

TEST(Mirror, ForgetsStepsThatDoNotCount) {
  for (const std::int64_t mirror_steps : {1, 2, 4}) {
    run({.hosts = {0, 0, 0, 0}, .mirror_steps = mirror_steps}, [](Rig& rig) {
      for (int step = 1; step <= 13; ++step) rig.take_step(step, step % 5 != 1 && step != 8);
      rig.expect_mirrored(13);
    });
  }
}

TEST(Mirror, OfSeveralShares) {
  for (const std::vector<int>& hosts : {std::vector{0, 0, 0, 1}, std::vector{0, 0, 0, 1, 1}}) {
    run({.hosts = hosts, .mirror_steps = 4}, [](Rig& rig) {
      for (int step = 1; step <= 7; ++step) rig.take_step(step, step != 3);
      rig.expect_mirrored(7);
    });
  }
}

TEST(Mirror, OfOtherOptimizersAndStates) {
  const Case cases[] = {{.hosts = {0, 0, 0}, .mirror_steps = 4, .is_sgd = true},
                        {.hosts = {0, 0, 0}, .mirror_steps = 4, .dtype = DType::fp32},
                        {.hosts = {0, 0, 0}, .mirror_steps = 4, .dtype = DType::fp16},
                        {.hosts = {0, 1}, .mirror_steps = 4, .zero_stage = 2},
                        {.hosts = {0, 1, 2}, .mirror_steps = 4, .zero_stage = 3}};
  for (const Case& one : cases) {
    run(one, [](Rig& rig) {
      for (int step = 1; step <= 6; ++step) rig.take_step(step, true);
      rig.expect_mirrored(6);
    });
  }
}

}  // namespace
}  // namespace lockstep::train
