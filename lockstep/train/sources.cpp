// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/sources.h"

#include <string>

#include "lockstep/mesh/host_grid.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/async_file.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/settings.h"
#include "lockstep/train/validation.h"

namespace lockstep::train {
namespace {

// Of the workers that sum their gradients with this one, in their order.
std::vector<int> hosts_of_replicas(const spec::RunSpec& run, const comm::Communicator& world) {
  const std::vector<int> all = world.hosts();
  std::vector<int> hosts;
  for (const Rank rank : plan::mesh_of(run, world.size()).group_of(world.rank(), Axis::data)) {
    hosts.push_back(all[static_cast<std::size_t>(rank)]);
  }
  return hosts;
}

}  // namespace

Sources open_sources(const spec::RunSpec& run, const comm::Communicator& world, bool is_new) {
  Feed::Options options;
  Sources sources;
  together(world, [&] {
    options = feed_options(run, spec::workload_of(run, world.size()));
    require_division(run);
    require_order(plan::first_ownership(run, world.size()), sum_options(run.comm));
    require_hosts_in_order(hosts_of_replicas(run, world), sum_options(run.comm));
    if (run.parallelism.zero_scope == spec::ZeroScope::host) {
      data_grid(plan::mesh_of(run, world.size()), world.hosts());
    }
    sources.pipeline = plan::read_pipeline_plan(run, world.size());
    if (const std::string folder = weight_options(run).offload_folder; !folder.empty()) {
      const AsyncFile try_out(folder, 1);
    }
    sources.feed.emplace(options);
    if (run.validation.freq > 0) {
      sources.validation.emplace(validation_feed(run));
    }
    if (!is_new || run.checkpoint.initial_load_path.empty()) return;
    sources.first_values.emplace(run.checkpoint.initial_load_path, run.model);
  });
  require_same_run(run, world);
  require_same_arithmetic(run, world);
  require_same_schedule(sources.pipeline, world);
  require_same_data(*sources.feed, options.shape, run.training.steps, world);
  return sources;
}

}  // namespace lockstep::train
