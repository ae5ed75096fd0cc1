// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/data/distributed_data_parallel.h"

#include <utility>

#include "lockstep/parallel/data/gradient_reducer.h"

namespace lockstep::parallel {

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<torch::nn::Module> module,
                                                 const comm::Communicator& group,
                                                 const DataParallelOptions& options)
    : reducer_(std::make_shared<GradientReducer>(std::move(module), group, options)) {}

DistributedDataParallel::NoSync::NoSync(std::shared_ptr<GradientReducer> reducer)
    : reducer_(std::move(reducer)) {
  reducer_->hold();
}

DistributedDataParallel::NoSync::~NoSync() {
  reducer_->resume();
}

}  // namespace lockstep::parallel
