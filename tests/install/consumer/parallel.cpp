// SPDX-License-Identifier: Apache-2.0
//
// A project that uses the half with libtorch: two ranks as threads average the gradient of one parameter.
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <torch/nn/module.h>

#include "lockstep/parallel/data/distributed_data_parallel.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace {

struct Scale : torch::nn::Module {
  Scale() : factor(register_parameter("factor", at::ones({1}))) {}
  at::Tensor factor;
};

}  // namespace

int main() {
  auto endpoints = lockstep::transport::make_loopback(2);
  std::vector<float> gradients(2);
  {
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        const lockstep::comm::Communicator world(std::move(endpoints[rank]));
        const auto net = std::make_shared<Scale>();
        const lockstep::parallel::DistributedDataParallel ddp(net, world);
        net->factor.mul(2.0 * static_cast<double>(rank)).sum().backward();
        gradients[rank] = net->factor.grad().item<float>();
      });
    }
  }
  const bool right = gradients == std::vector<float>{1.0F, 1.0F};
  std::puts(right ? "consumer: right" : "consumer: WRONG");
  return right ? 0 : 1;
}
