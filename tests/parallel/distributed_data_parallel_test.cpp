// SPDX-License-Identifier: Apache-2.0
//
// Training with ranks gives what one process gives: to the bit where the order of addition is the same.
#include "lockstep/parallel/data/distributed_data_parallel.h"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include "lockstep/base/deadline.h"

#include "tests/parallel/nets.h"
#include "tests/support/ranks.h"

namespace lockstep::parallel {
namespace {

using test::all_samples;
using test::descend;
using test::loss_of;
using test::Net;
using test::run_ranks;
using test::same_bits;
using test::samples;

constexpr int kSteps = 3;

std::shared_ptr<Net> net_of(int seed, at::ScalarType dtype = at::kFloat) {
  return std::make_shared<Net>(seed, dtype);
}

// As optimizers do it by default: in libtorch 1.13, and in 2.x.
void zero_gradients(Net& net, bool set_to_none) {
  for (at::Tensor& parameter : net.parameters()) {
    if (!parameter.grad().defined()) continue;
    if (set_to_none) {
      parameter.mutable_grad().reset();
    } else {
      parameter.mutable_grad().detach_().zero_();
    }
  }
}

// One process that computes the shards of all ranks one after the other and adds their gradients as a tree.
std::shared_ptr<Net> trained_by_shards(int world, at::ScalarType dtype, int passes_per_step) {
  std::shared_ptr<Net> net = net_of(0, dtype);
  const std::vector<at::Tensor> parameters = net->parameters();
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<at::Tensor>> gradients(parameters.size());
    for (int rank = 0; rank < world; ++rank) {
      zero_gradients(*net, /*set_to_none=*/true);
      for (int pass = 0; pass < passes_per_step; ++pass) {
        loss_of(*net, samples(step + 100 * pass, rank, dtype)).backward();
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].grad().defined()) gradients[i].push_back(parameters[i].grad());
      }
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!gradients[i].empty()) parameters[i].mutable_grad() = test::tree_average(gradients[i]);
    }
    descend(*net);
  }
  return net;
}

void expect_same_weights(Net& net, Net& reference) {
  for (const auto& item : net.named_parameters()) {
    EXPECT_TRUE(same_bits(item.value(), reference.named_parameters()[item.key()])) << item.key();
  }
}

class EveryWorldAndDtype : public ::testing::TestWithParam<std::tuple<int, at::ScalarType>> {};

TEST_P(EveryWorldAndDtype, AddsShardsInTheCanonicalOrder) {
  const auto [world, dtype] = GetParam();
  const std::shared_ptr<Net> reference = trained_by_shards(world, dtype, 1);
  for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 20}) {
    run_ranks(world, [&, type = dtype](comm::Communicator& group) {
      const std::shared_ptr<Net> net = net_of(group.rank(), type);
      const DistributedDataParallel ddp(net, group, {.bucket_bytes = bucket_bytes});
      for (int step = 0; step < kSteps; ++step) {
        zero_gradients(*net, /*set_to_none=*/step == 1);
        loss_of(*net, samples(step, group.rank(), type)).backward();
        descend(*net);
      }
      expect_same_weights(*net, *reference);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, EveryWorldAndDtype,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4),
                                            ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16)));

class EveryWorld : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryWorld, ::testing::Values(1, 2, 3, 4));

TEST_P(EveryWorld, TrainsAsOneProcessWithTheWholeBatch) {
  const int world = GetParam();
  const std::shared_ptr<Net> reference = net_of(0);
  for (int step = 0; step < kSteps; ++step) {
    zero_gradients(*reference, /*set_to_none=*/true);
    loss_of(*reference, all_samples(step, world, at::kFloat)).backward();
    descend(*reference);
  }
  run_ranks(world, [&](comm::Communicator& group) {
    const std::shared_ptr<Net> net = net_of(group.rank());
    const DistributedDataParallel ddp(net, group);
    for (int step = 0; step < kSteps; ++step) {
      zero_gradients(*net, /*set_to_none=*/false);
      loss_of(*net, samples(step, group.rank(), at::kFloat)).backward();
      descend(*net);
    }
    for (const auto& item : net->named_parameters()) {
      EXPECT_TRUE(at::allclose(item.value(), reference->named_parameters()[item.key()], 1e-6, 1e-6))
          << item.key();
    }
  });
}

TEST_P(EveryWorld, NoSyncAddsPassesBeforeTheyAreAveraged) {
  const int world = GetParam();
  const std::shared_ptr<Net> reference = trained_by_shards(world, at::kFloat, 3);
  run_ranks(world, [&](comm::Communicator& group) {
    const std::shared_ptr<Net> net = net_of(group.rank());
    const DistributedDataParallel ddp(net, group, {.bucket_bytes = 100});
    for (int step = 0; step < kSteps; ++step) {
      zero_gradients(*net, /*set_to_none=*/false);
      {
        const auto guard = ddp.no_sync();
        loss_of(*net, samples(step, group.rank(), at::kFloat)).backward();
        loss_of(*net, samples(step + 100, group.rank(), at::kFloat)).backward();
      }
      loss_of(*net, samples(step + 200, group.rank(), at::kFloat)).backward();
      descend(*net);
    }
    expect_same_weights(*net, *reference);
  });
}

TEST_P(EveryWorld, CarriesTwoModelsAtOnce) {
  const int world = GetParam();
  const std::shared_ptr<Net> reference = trained_by_shards(world, at::kFloat, 1);
  run_ranks(world, [&](comm::Communicator& group) {
    const std::shared_ptr<Net> first = net_of(group.rank());
    const std::shared_ptr<Net> second = net_of(group.rank());
    const DistributedDataParallel ddp_of_first(first, group, {.bucket_bytes = 100});
    const DistributedDataParallel ddp_of_second(second, group, {.bucket_bytes = 1});
    for (int step = 0; step < kSteps; ++step) {
      zero_gradients(*first, /*set_to_none=*/false);
      zero_gradients(*second, /*set_to_none=*/false);
      const at::Tensor x = samples(step, group.rank(), at::kFloat);
      loss_of(*first, x).add(loss_of(*second, x)).backward();
      descend(*first);
      descend(*second);
    }
    expect_same_weights(*first, *reference);
    expect_same_weights(*second, *reference);
  });
}

TEST_P(EveryWorld, GivesAllRanksTheStateOfRank0) {
  run_ranks(GetParam(), [](comm::Communicator& group) {
    const std::shared_ptr<Net> net = net_of(group.rank());
    const std::shared_ptr<Net> first = net_of(0);
    const DistributedDataParallel ddp(net, group);
    expect_same_weights(*net, *first);
    EXPECT_TRUE(same_bits(net->seen, first->seen));

    loss_of(*net, samples(0, group.rank(), at::kFloat)).backward();
    loss_of(*first, samples(0, 0, at::kFloat));
    EXPECT_TRUE(same_bits(net->seen, first->seen));
  });
}

TEST(DistributedDataParallel, LeavesBuffersAloneWhenToldTo) {
  run_ranks(2, [](comm::Communicator& group) {
    const std::shared_ptr<Net> net = net_of(0);
    const DistributedDataParallel ddp(net, group, {.broadcast_buffers = false});
    const std::shared_ptr<Net> alone = net_of(0);
    loss_of(*net, samples(0, group.rank(), at::kFloat)).backward();
    loss_of(*alone, samples(0, group.rank(), at::kFloat));
    EXPECT_TRUE(same_bits(net->seen, alone->seen));
  });
}

TEST(DistributedDataParallel, KeepsGradientsInOneBucketFromStepToStep) {
  run_ranks(2, [](comm::Communicator& group) {
    const std::shared_ptr<Net> net = net_of(0);
    const DistributedDataParallel ddp(net, group);
    std::vector<const void*> places;
    for (int step = 0; step < kSteps; ++step) {
      zero_gradients(*net, /*set_to_none=*/step == 1);
      loss_of(*net, samples(step, group.rank(), at::kFloat)).backward();
      std::vector<const void*> now;
      for (const at::Tensor& parameter : net->parameters()) {
        if (parameter.grad().defined()) now.push_back(parameter.grad().data_ptr());
      }
      if (step > 0) {
        EXPECT_EQ(now, places);
      }
      places = now;
      EXPECT_EQ(net->out.grad().strides(), net->out.strides());
      const auto [low, high] = std::minmax_element(now.begin(), now.end());
      EXPECT_LT(static_cast<const char*>(*high) - static_cast<const char*>(*low), 2048);
    }
  });
}

// Of a tensor that another thread may be writing.
float first_value(const at::Tensor& tensor) {
  return std::atomic_ref(*tensor.data_ptr<float>()).load(std::memory_order_acquire);
}

// A hook in the middle of the pass waits for the average of what backward has left behind.
TEST(DistributedDataParallel, AveragesWhileBackwardStillRuns) {
  constexpr std::array kGradients = {1.0F, 2.0F, 6.0F};  // by rank
  constexpr float kAverage = 3.0F;
  run_ranks(static_cast<int>(kGradients.size()), [&](comm::Communicator& group) {
    const std::shared_ptr<Net> net = net_of(0);
    const DistributedDataParallel ddp(net, group, {.bucket_bytes = 1});
    bool reached_the_first = false;
    net->in.register_hook([&](const at::Tensor&) { reached_the_first = true; });
    bool averaged_the_last = false;
    const auto middle = [&](const at::Tensor&) {
      EXPECT_FALSE(reached_the_first);
      const Deadline deadline = Deadline::after(std::chrono::seconds(30));
      while (!averaged_the_last && !deadline.passed()) {
        averaged_the_last = first_value(net->out_bias.grad()) == kAverage;
      }
    };
    for (int pass = 0; pass < 2; ++pass) {
      zero_gradients(*net, /*set_to_none=*/false);
      reached_the_first = averaged_the_last = false;
      const at::Tensor hidden = net->in.sum().add(net->in_bias.sum());
      // The second pass has its buckets in the order in which the first has reached them.
      if (pass == 1) hidden.register_hook(middle);
      const float mine = kGradients[static_cast<std::size_t>(group.rank())];
      const at::Tensor last = net->out_bias.mul(mine).sum().add(net->out.sum()).add(net->scale);
      hidden.add(last).backward();
      EXPECT_TRUE(reached_the_first);
      EXPECT_EQ(averaged_the_last, pass == 1);
    }
  });
}

TEST(DistributedDataParallel, CountsATiedParameterOnce) {
  struct Tied : torch::nn::Module {
    Tied() : weight(register_parameter("first", test::values({3}, 1, at::kFloat))) {
      register_parameter("second", weight);
    }
    at::Tensor weight;
  };
  run_ranks(2, [](comm::Communicator& group) {
    const auto net = std::make_shared<Tied>();
    const DistributedDataParallel ddp(net, group);
    net->weight.mul(group.rank() + 1.0).sum().backward();
    EXPECT_TRUE(same_bits(net->weight.grad(), at::Tensor(net->weight.detach().clone().fill_(1.5))));
  });
}

TEST(DistributedDataParallel, LetsGoOfTheModuleWithItsLastCopy) {
  run_ranks(2, [](comm::Communicator& group) {
    const std::shared_ptr<Net> net = net_of(0);
    std::optional<DistributedDataParallel> ddp(std::in_place, net, group);
    std::optional<DistributedDataParallel> copy = ddp;
    ddp.reset();
    loss_of(*net, samples(0, group.rank(), at::kFloat)).backward();
    const at::Tensor averaged = net->in.grad();  // outlives what it came from
    copy.reset();
    zero_gradients(*net, /*set_to_none=*/true);
    loss_of(*net, samples(0, group.rank(), at::kFloat)).backward();
    EXPECT_FALSE(same_bits(net->in.grad(), averaged));
  });
}

}  // namespace
}  // namespace lockstep::parallel
