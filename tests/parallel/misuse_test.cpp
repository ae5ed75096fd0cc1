// SPDX-License-Identifier: Apache-2.0
//
// Unused parameters, and everything that is refused: who gets which error, and that nobody waits for it.
#include <functional>
#include <memory>
#include <string>

#include <ATen/ops/embedding.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/data/distributed_data_parallel.h"

#include "tests/parallel/nets.h"
#include "tests/support/ranks.h"

namespace lockstep::parallel {
namespace {

using test::run_ranks;
using test::same_bits;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Uses `left` or `right` or both.
struct Branches : torch::nn::Module {
  explicit Branches(std::int64_t size = 3)
      : left(register_parameter("left", test::values({size}, 1, at::kFloat))),
        right(register_parameter("right", test::values({4}, 2, at::kFloat))) {}

  at::Tensor loss(bool use_left, bool use_right) const {
    at::Tensor sum = at::zeros({});
    if (use_left) sum = sum.add(left.sum());
    if (use_right) sum = sum.add(right.mul(2).sum());
    return sum;
  }
  at::Tensor left, right;
};

at::Tensor filled(const at::Tensor& like, double value) {
  return like.detach().clone().fill_(value);
}

// By rank: the kind of the error and its sentence, or "no error".
std::vector<std::string> errors_of(int world, const std::function<void(comm::Communicator&)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(world), "no error");
  run_ranks(world, [&](comm::Communicator& group) {
    std::string& error = errors[static_cast<std::size_t>(group.rank())];
    try {
      body(group);
    } catch (const UsageError& caught) {
      error = std::string("usage: ") + caught.what();
    } catch (const Aborted& caught) {
      error = std::string("aborted: ") + caught.what();
    } catch (const std::exception& caught) {
      error = std::string("other: ") + caught.what();
    }
  });
  return errors;
}

TEST(UnusedParameters, AreNamedOnAllRanksAndTheModelGoesOn) {
  const auto errors = errors_of(3, [](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    const DistributedDataParallel ddp(net, group);
    std::string error;
    try {
      net->loss(true, group.rank() != 1).backward();
    } catch (const UsageError& caught) {
      error = caught.what();
    }
    net->zero_grad();
    net->loss(true, true).backward();
    EXPECT_TRUE(same_bits(net->right.grad(), filled(net->right, 2)));
    throw UsageError(error);
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, StartsWith("usage: 'right' got no gradient on 1 of 3 ranks"));
    EXPECT_THAT(error, HasSubstr("find_unused"));
  }
}

TEST(UnusedParameters, CountAsZeroWhereTheyAreUnused) {
  for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{1} << 20}) {
    run_ranks(4, [&](comm::Communicator& group) {
      const auto net = std::make_shared<Branches>();
      const DistributedDataParallel ddp(net, group, {.bucket_bytes = bucket_bytes, .find_unused = true});
      net->loss(true, false).backward();
      EXPECT_TRUE(same_bits(net->left.grad(), filled(net->left, 1)));
      EXPECT_FALSE(net->right.grad().defined());

      net->left.mutable_grad().reset();
      net->loss(group.rank() == 2, true).backward();
      EXPECT_TRUE(same_bits(net->left.grad(), filled(net->left, 0.25)));
      EXPECT_TRUE(same_bits(net->right.grad(), filled(net->right, 2)));
    });
  }
}

// (x + x + x) / 3 is another number for the first two values, and infinite for the others.
TEST(UnusedParameters, KeepTheBitsTheyHadIfNobodyUsesThem) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const std::size_t bucket_bytes : {std::size_t{1}, std::size_t{1} << 20}) {
      for (const bool static_graph : {false, true}) {
        run_ranks(3, [&](comm::Communicator& group) {
          const auto net = std::make_shared<Branches>();
          net->to(dtype);
          const at::Tensor old = filled(net->right, 3e38);
          old.select(0, 0).fill_(1.5 + 0x1p-22);
          old.select(0, 1).fill_(1.515625);
          net->right.mutable_grad() = old.clone();
          const DistributedDataParallel ddp(
              net, group, {.bucket_bytes = bucket_bytes, .find_unused = true, .static_graph = static_graph});
          for (int pass = 1; pass <= 3; ++pass) {
            net->loss(true, false).backward();
            EXPECT_TRUE(same_bits(net->left.grad(), filled(net->left, pass)));
            EXPECT_TRUE(same_bits(net->right.grad(), old)) << net->right.grad();
          }
        });
      }
    }
  }
}

TEST(UnusedParameters, AreUsedIfAPassWithoutSyncUsedThem) {
  run_ranks(2, [](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    const DistributedDataParallel ddp(net, group);
    {
      const auto guard = ddp.no_sync();
      net->loss(false, true).backward();
    }
    net->loss(true, false).backward();
    EXPECT_TRUE(same_bits(net->left.grad(), filled(net->left, 1)));
    EXPECT_TRUE(same_bits(net->right.grad(), filled(net->right, 2)));
  });
}

TEST(StaticGraph, MayDifferBetweenRanks) {
  run_ranks(2, [](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    const DistributedDataParallel ddp(net, group,
                                      {.bucket_bytes = 1, .find_unused = true, .static_graph = true});
    for (int step = 0; step < 3; ++step) {
      net->zero_grad(/*set_to_none=*/step == 1);
      net->loss(true, group.rank() == 1).backward();
      EXPECT_TRUE(same_bits(net->left.grad(), filled(net->left, 1)));
      EXPECT_TRUE(same_bits(net->right.grad(), filled(net->right, 1)));
    }
  });
}

TEST(StaticGraph, HoldsForPassesWithoutSyncToo) {
  const auto errors = errors_of(2, [&](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    const DistributedDataParallel ddp(net, group,
                                      {.bucket_bytes = 1, .find_unused = true, .static_graph = true});
    net->loss(true, false).backward();
    const auto guard = ddp.no_sync();
    net->loss(true, true).backward();
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("'right' got a gradient that it did not get in the first pass"));
  }
}

TEST(StaticGraph, EndsTheGroupWhenItsPromiseIsBroken) {
  for (const bool more : {false, true}) {
    const auto errors = errors_of(2, [&](comm::Communicator& group) {
      const auto net = std::make_shared<Branches>();
      const DistributedDataParallel ddp(net, group,
                                        {.bucket_bytes = 1, .find_unused = true, .static_graph = true});
      net->loss(true, !more).backward();
      net->loss(true, group.rank() == 1 ? more : !more).backward();
      net->loss(true, !more).backward();
    });
    EXPECT_THAT(errors[1], AllOf(StartsWith("usage: parameter 'right'"), HasSubstr("static_graph")));
    EXPECT_THAT(errors[0], StartsWith("aborted: "));
  }
}

TEST(DifferentModels, AreNamedWhereTheyDiffer) {
  const auto errors = errors_of(3, [](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>(group.rank() == 1 ? 4 : 3);
    const DistributedDataParallel ddp(net, group);
  });
  EXPECT_THAT(errors[1],
              AllOf(StartsWith("usage: the model of rank 1 is not that of rank 0: it has 'left' Float [4]"),
                    HasSubstr("where rank 0 has 'left' Float [3]")));
  EXPECT_THAT(errors[0], StartsWith("usage: the model of rank 1 is not that of rank 0"));
  EXPECT_EQ(errors[0], errors[2]);
}

TEST(DifferentModels, MayHaveMoreOrFewerParameters) {
  const auto errors = errors_of(2, [](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    if (group.rank() == 1) net->register_parameter("extra", at::zeros({2}));
    const DistributedDataParallel ddp(net, group);
  });
  EXPECT_THAT(
      errors[1],
      HasSubstr("it has 'extra' Float [2] with strides [1] and a gradient where rank 0 has nothing more"));
}

TEST(DifferentModels, MayDifferInTheirOptions) {
  const auto errors = errors_of(2, [](comm::Communicator& group) {
    const DistributedDataParallel ddp(std::make_shared<Branches>(), group,
                                      {.static_graph = group.rank() == 1});
  });
  EXPECT_THAT(errors[1], AllOf(StartsWith("usage: "), HasSubstr("static_graph true")));
}

// Rank 1 does `change` to its module between two steps.
std::vector<std::string> errors_after(const std::function<void(Branches&)>& change) {
  return errors_of(2, [&](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    const DistributedDataParallel ddp(net, group);
    net->loss(true, true).backward();
    if (group.rank() == 1) change(*net);
    net->loss(true, true).backward();
    net->loss(true, true).backward();
  });
}

TEST(ChangedModule, IsRefusedAfterAConversion) {
  const auto errors = errors_after([](Branches& net) { net.to(at::kDouble); });
  EXPECT_THAT(errors[1], AllOf(StartsWith("usage: parameter "), HasSubstr("became Double [")));
  EXPECT_THAT(errors[0], StartsWith("aborted: "));
}

TEST(ChangedModule, IsRefusedWithANewParameter) {
  const auto errors = errors_after([](Branches& net) { net.register_parameter("extra", at::zeros({2})); });
  EXPECT_THAT(errors[1], StartsWith("usage: parameter 'extra' was added, removed, replaced or frozen"));
  EXPECT_THAT(errors[0], StartsWith("aborted: "));
}

TEST(ChangedModule, IsRefusedWithAFrozenParameter) {
  const auto errors = errors_after([](Branches& net) { net.left.set_requires_grad(false); });
  EXPECT_THAT(errors[1], StartsWith("usage: parameter 'left' was added, removed, replaced or frozen"));
}

TEST(Options, MustBeTheSameOnAllRanks) {
  const auto errors = errors_of(2, [](comm::Communicator& group) {
    const DistributedDataParallel ddp(std::make_shared<Branches>(), group, {.exact = group.rank() == 0});
  });
  EXPECT_THAT(errors[0], StartsWith("usage: the model of rank 1 is not that of rank 0"));
  EXPECT_THAT(errors[1], AllOf(StartsWith("usage: "), HasSubstr("exact true"), HasSubstr("exact false")));
}

TEST(Gradients, MustNotBeSparse) {
  struct Table : torch::nn::Module {
    Table() : rows(register_parameter("rows", test::values({5, 2}, 1, at::kFloat))) {}
    at::Tensor rows;
  };
  const auto errors = errors_of(2, [](comm::Communicator& group) {
    const auto net = std::make_shared<Table>();
    const DistributedDataParallel ddp(net, group);
    at::embedding(net->rows, at::zeros({3}, at::kLong), -1, false, /*sparse=*/true).sum().backward();
  });
  EXPECT_THAT(errors[0], StartsWith("usage: parameter 'rows' has a sparse gradient"));
}

TEST(Gradients, MustNotHaveAGraph) {
  const auto errors = errors_of(2, [](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    const DistributedDataParallel ddp(net, group);
    net->loss(true, true).backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  });
  EXPECT_THAT(errors[0], AllOf(StartsWith("usage: "), HasSubstr("create_graph")));
}

TEST(Gradients, MustBeRealNumbers) {
  struct Complex : torch::nn::Module {
    Complex() { register_parameter("z", at::zeros({2}, at::kComplexFloat)); }
  };
  const auto errors = errors_of(2, [](comm::Communicator& group) {
    const DistributedDataParallel ddp(std::make_shared<Complex>(), group);
  });
  EXPECT_THAT(errors[0], StartsWith("usage: 'z' is ComplexFloat [2]"));
}

TEST(ModuleWithoutParameters, IsRefused) {
  const auto errors = errors_of(1, [](comm::Communicator& group) {
    const DistributedDataParallel ddp(std::make_shared<torch::nn::Module>(), group);
  });
  EXPECT_EQ(errors[0], "usage: the module has no parameter that needs a gradient");
}

TEST(FailedBackward, TellsTheOthersWhenItsOwnerGivesUp) {
  const auto errors = errors_of(2, [](comm::Communicator& group) {
    const auto net = std::make_shared<Branches>();
    const DistributedDataParallel ddp(net, group, {.bucket_bytes = 1});
    const at::Tensor middle = net->left.mul(1);
    if (group.rank() == 1) {
      middle.register_hook([](const at::Tensor&) { throw std::runtime_error("the user's own"); });
    }
    middle.sum().add(net->right.sum()).backward();
  });
  EXPECT_EQ(errors[1], "other: the user's own");
  EXPECT_THAT(errors[0], StartsWith("aborted: "));
}

}  // namespace
}  // namespace lockstep::parallel
