// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trace_bubble.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/pipeline/pass_name.h"
#include "lockstep/schedule/pipeline/timeline.h"

namespace lockstep::cli {
namespace {

using schedule::kPasses;
using schedule::Pass;
using schedule::Pipeline;
using Json = nlohmann::ordered_json;

std::size_t index_of(Pass pass) {
  return static_cast<std::size_t>(pass);
}

// Of a number that must be below `end`.
template <typename Number>
Number read_number(const Json& from, const char* name,
                   std::int64_t end = std::numeric_limits<Number>::max()) {
  const Json& value = from.at(name);
  // One with a point would be made a whole number, and there may be none.
  if (!value.is_number_integer()) throw std::out_of_range(name);
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number >= end) throw std::out_of_range(name);
  return static_cast<Number>(number);
}

TracedPass read_pass(const Json& event) {
  const auto name = event.at("name").get<std::string>();
  const auto pass = schedule::pass_named(std::string_view(name).substr(0, name.find(' ')));
  if (!pass) throw std::out_of_range(name);
  const Json& details = event.at("args");
  const auto begin = event.at("ts").get<double>();
  return {.step = read_number<std::int64_t>(details, "step"),
          .rank = read_number<Rank>(event, "pid"),
          .stage = read_number<Rank>(details, "stage", schedule::kMaxPipelineStages),
          .part = read_number<int>(details, "part", schedule::kMaxPipelinePasses),
          .entry = {.pass = *pass,
                    .micro_batch = read_number<int>(details, "micro_batch", schedule::kMaxMicroBatches),
                    .chunk = read_number<int>(details, "chunk", schedule::kMaxPipelinePasses)},
          .begin_us = begin,
          .end_us = begin + event.at("dur").get<double>()};
}

// The passes of the ranks that compute the same samples in a step, one rank for each stage.
using PipelineStep = std::vector<std::vector<const TracedPass*>>;  // by stage, in the order of their time

// Ranks follow each other in the same order on every stage: those with the same place are a pipeline.
std::map<Rank, int> places_in_stages(std::span<const TracedPass> passes) {
  std::map<Rank, std::set<Rank>> ranks;  // by stage
  for (const TracedPass& pass : passes) ranks[pass.stage].insert(pass.rank);
  std::map<Rank, int> places;
  for (const auto& [stage, members] : ranks) {
    for (int place = 0; const Rank rank : members) places[rank] = place++;
  }
  return places;
}

std::map<std::int64_t, std::map<int, PipelineStep>> by_step_and_pipeline(std::span<const TracedPass> passes) {
  const std::map<Rank, int> places = places_in_stages(passes);
  const Rank last_stage = std::ranges::max(passes, {}, &TracedPass::stage).stage;
  std::map<std::int64_t, std::map<int, PipelineStep>> steps;
  for (const TracedPass& pass : passes) {
    PipelineStep& pipeline = steps[pass.step][places.at(pass.rank)];
    pipeline.resize(static_cast<std::size_t>(last_stage) + 1);
    pipeline[static_cast<std::size_t>(pass.stage)].push_back(&pass);
  }
  for (auto& [step, pipelines] : steps) {
    for (auto& [place, pipeline] : pipelines) {
      for (auto& stage : pipeline) std::ranges::sort(stage, {}, &TracedPass::begin_us);
    }
  }
  return steps;
}

// What the stages have computed, as a schedule; nothing when it is none, because passes are missing.
std::optional<Pipeline> schedule_of(const PipelineStep& step) {
  Pipeline pipeline = {
      .placement = {.stages = static_cast<int>(step.size())}, .micro_batches = 0, .programs = {}};
  for (const auto& stage : step) {
    schedule::PipelineProgram& program = pipeline.programs.emplace_back();
    for (const TracedPass* pass : stage) {
      program.push_back(pass->entry);
      pipeline.placement.chunks = std::max(pipeline.placement.chunks, pass->entry.chunk + 1);
      pipeline.micro_batches = std::max(pipeline.micro_batches, pass->entry.micro_batch + 1);
    }
  }
  const auto fits = [&](const TracedPass* pass) {
    return pipeline.placement.part_of(pass->stage, pass->entry.chunk) == pass->part;
  };
  const auto all_fit = [&] {
    return std::ranges::all_of(step, [&](const auto& stage) { return std::ranges::all_of(stage, fits); });
  };
  if (pipeline.placement.chunks == 2 && !all_fit()) {
    pipeline.placement.shape = schedule::PlacementShape::v_shape;
  }
  const std::int64_t forward = std::int64_t{pipeline.placement.parts()} * pipeline.micro_batches;
  if (forward == 0 || forward > schedule::kMaxPipelinePasses || !all_fit()) return std::nullopt;
  if (schedule::check_pipeline(pipeline).violation) return std::nullopt;
  return pipeline;
}

// Adds up the steps.
class Sums {
 public:
  explicit Sums(std::size_t stages) : busy_us_(stages), passes_(stages), counts_(stages) {}

  void add(const PipelineStep& step, const Pipeline& pipeline) {
    double begin = step.front().front()->begin_us;
    double end = begin;
    for (std::size_t stage = 0; stage < step.size(); ++stage) {
      for (const TracedPass* pass : step[stage]) {
        begin = std::min(begin, pass->begin_us);
        end = std::max(end, pass->end_us);
        busy_us_[stage] += pass->end_us - pass->begin_us;
        passes_[stage][index_of(pass->entry.pass)] += pass->end_us - pass->begin_us;
        ++counts_[stage][index_of(pass->entry.pass)];
      }
    }
    makespan_us_ += end - begin;
    predicted_ += schedule::time_pipeline(pipeline).bubble;
    micro_batches_ = std::max(micro_batches_, pipeline.micro_batches);
    ++pipelines_;
  }

  TraceBubble result(int steps) const {
    TraceBubble bubble = {
        .micro_batches = micro_batches_, .steps = steps, .predicted = predicted_ / pipelines_};
    double busy = 0;
    for (std::size_t stage = 0; stage < busy_us_.size(); ++stage) {
      TraceBubble::Stage& of = bubble.stages.emplace_back();
      of.busy = makespan_us_ > 0 ? busy_us_[stage] / makespan_us_ : 1;
      busy += of.busy / static_cast<double>(busy_us_.size());
      for (const Pass pass : kPasses) {
        const int count = counts_[stage][index_of(pass)];
        if (count > 0) of.mean_us[index_of(pass)] = passes_[stage][index_of(pass)] / count;
      }
    }
    bubble.measured = 1 - busy;
    return bubble;
  }

  bool is_empty() const { return pipelines_ == 0; }

 private:
  std::vector<double> busy_us_;                             // by stage
  std::vector<std::array<double, kPasses.size()>> passes_;  // likewise, the same by pass
  std::vector<std::array<int, kPasses.size()>> counts_;
  double makespan_us_ = 0;
  double predicted_ = 0;
  int micro_batches_ = 0;
  int pipelines_ = 0;  // those of each step counted again
};

}  // namespace

std::vector<TracedPass> passes_in(std::string_view events, std::string_view file) {
  std::vector<TracedPass> passes;
  try {
    const Json all = Json::parse(fmt::format("[{}]", events));
    for (const Json& event : all) {
      if (!event.contains("ph")) throw std::out_of_range("it has an event without ph");
      if (event.value("cat", "") == "pass") passes.push_back(read_pass(event));
    }
  } catch (const std::exception& error) {
    throw DataError(fmt::format("{} is no trace that lockstep has written: {}", file, error.what()));
  }
  return passes;
}

TraceBubble bubble_of(std::span<const TracedPass> passes, std::string_view file) {
  const UsageError nothing(
      fmt::format("{} has no step with the passes of all stages: give the trace of a whole "
                  "run, or those of all its ranks",
                  file));
  if (passes.empty()) throw nothing;
  auto steps = by_step_and_pipeline(passes);
  if (steps.size() > 1) steps.erase(steps.begin());
  Sums sums(steps.begin()->second.begin()->second.size());
  int counted = 0;
  for (const auto& [number, pipelines] : steps) {
    bool is_counted = false;
    for (const auto& [place, pipeline] : pipelines) {
      const auto schedule = schedule_of(pipeline);
      if (!schedule) continue;
      sums.add(pipeline, *schedule);
      is_counted = true;
    }
    counted += is_counted ? 1 : 0;
  }
  if (sums.is_empty()) throw nothing;
  return sums.result(counted);
}

std::string to_text(const TraceBubble& bubble) {
  const auto has = [&](Pass pass) {
    return std::ranges::any_of(bubble.stages,
                               [&](const auto& stage) { return stage.mean_us[index_of(pass)] > 0; });
  };
  std::string text =
      fmt::format("{}, {}, {}\n{:>5}", counted(bubble.stages.size(), "stage"),
                  counted(bubble.micro_batches, "micro-batch", "es"), counted(bubble.steps, "step"), "stage");
  for (const Pass pass : kPasses) {
    if (has(pass)) text += fmt::format("  {:>18}", fmt::format("{} ms", name_of(pass)));
  }
  text += fmt::format("  {:>6}\n", "busy");
  for (std::size_t number = 0; number < bubble.stages.size(); ++number) {
    const TraceBubble::Stage& stage = bubble.stages[number];
    text += fmt::format("{:>5}", number);
    for (const Pass pass : kPasses) {
      if (has(pass)) text += fmt::format("  {:>18.3f}", stage.mean_us[index_of(pass)] / 1000);
    }
    text += fmt::format("  {:>4.1f} %\n", 100 * stage.busy);
  }
  return text +
         fmt::format("bubble {:.1f} % (predicted {:.1f} %)\n", 100 * bubble.measured, 100 * bubble.predicted);
}

std::string to_json(const TraceBubble& bubble) {
  Json stages = Json::array();
  for (const TraceBubble::Stage& stage : bubble.stages) {
    Json times = Json::object();
    for (const Pass pass : kPasses) {
      if (stage.mean_us[index_of(pass)] > 0)
        times[std::string(name_of(pass))] = stage.mean_us[index_of(pass)];
    }
    stages.push_back({{"mean_us", times}, {"busy", stage.busy}});
  }
  return Json{{"bubble", bubble.measured},
              {"predicted_bubble", bubble.predicted},
              {"micro_batches", bubble.micro_batches},
              {"steps", bubble.steps},
              {"stages", stages}}
             .dump() +
         "\n";
}

}  // namespace lockstep::cli
