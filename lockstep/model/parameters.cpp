// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/parameters.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/update/vectors.h"

namespace lockstep::model {
namespace {

bool has(const std::vector<ParameterSpec>& specs, const std::string& name) {
  return std::ranges::any_of(specs, [&](const ParameterSpec& spec) { return spec.name == name; });
}

// What each segment of the whole model holds: those of the blocks, then that of the head, which is empty when
// it is shared.
std::vector<std::vector<ParameterSpec>> segments_of(const Model& model) {
  std::vector<std::vector<ParameterSpec>> segments;
  std::vector<ParameterSpec> left = parameters_of(model);
  const auto take = [&](const std::string& name) {
    const auto found = std::ranges::find(left, name, &ParameterSpec::name);
    if (found == left.end()) return;
    segments.back().push_back(*found);
    left.erase(found);
  };
  for (const auto& block : model.blocks) {
    segments.emplace_back();
    for (const ParameterSpec& spec : block->parameters()) take(spec.name);
  }
  segments.emplace_back();
  take(model.head.weight.name);
  return segments;
}

// The last chunk of the model has the head's segment as well.
std::size_t end_of_segments(const std::vector<std::vector<ParameterSpec>>& segments, Range chunk) {
  return chunk.end + 1 == segments.size() ? segments.size() : chunk.end;
}

bool holds(const std::vector<std::vector<ParameterSpec>>& segments, std::span<const Range> chunks,
           const std::string& name) {
  return std::ranges::any_of(chunks, [&](Range chunk) {
    for (std::size_t segment = chunk.begin; segment < end_of_segments(segments, chunk); ++segment) {
      if (has(segments[segment], name)) return true;
    }
    return false;
  });
}

std::size_t rounded_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

FlatLayout::FlatLayout(const Model& model)
    : FlatLayout(model, std::vector<Range>{{0, model.blocks.size()}}, kernels::kSquaresBlock) {}

FlatLayout::FlatLayout(const Model& model, std::span<const Range> chunks, std::size_t unit,
                       const HeldLanes& lanes)
    : lanes_(static_cast<std::size_t>(lanes.count)), blocks_(model.blocks.size()) {
  const std::vector<std::vector<ParameterSpec>> segments = segments_of(model);
  std::vector<Kinds> kinds;
  std::vector<std::size_t> begins_in_whole;
  for (const std::vector<ParameterSpec>& segment : segments) {
    kinds.push_back(kinds_of(segment, lanes));
    begins_in_whole.push_back(elements_of_whole_);
    elements_of_whole_ += static_cast<std::size_t>(lanes.lanes) * elements_of(kinds.back());
  }
  const bool has_last = chunks.back().end == model.blocks.size();
  if (has_last && !holds(segments, chunks, model.head.weight.name)) {
    for (int lane = lanes.first; lane < lanes.first + lanes.count; ++lane) add(model.head.weight, lane);
    fill_up_to(unit);
    borrowed_ = static_cast<std::size_t>(elements_);
  }
  for (const Range& chunk : chunks) {
    fill_up_to(unit);
    const auto first = static_cast<std::size_t>(elements_);
    for (std::size_t segment = chunk.begin; segment < end_of_segments(segments, chunk); ++segment) {
      add_segment(kinds[segment], begins_in_whole[segment], lanes);
    }
    chunks_.push_back({first, static_cast<std::size_t>(elements_)});
    for (std::size_t block = chunk.begin; block < chunk.end; ++block) list_parameters(model, block, lanes);
  }
  list_heads(model.head.weight, lanes);
}

FlatLayout::Kinds FlatLayout::kinds_of(const std::vector<ParameterSpec>& segment, const HeldLanes& lanes) {
  std::map<int, std::vector<ParameterSpec>> by_sharing = {{1, {}}};
  for (const ParameterSpec& spec : segment) {
    by_sharing[lanes.sharing ? lanes.sharing(spec) : 1].push_back(spec);
  }
  Kinds kinds;
  for (auto& [sharing, specs] : by_sharing) kinds.push_back({sharing, std::move(specs)});
  return kinds;
}

// Of one lane.
std::size_t FlatLayout::elements_of(const Kinds& kinds) {
  std::size_t elements = 0;
  for (const Kind& kind : kinds) {
    for (const ParameterSpec& spec : kind.specs) elements += static_cast<std::size_t>(spec.elements());
    elements = rounded_up(elements, kernels::kSquaresBlock);
  }
  return elements;
}

void FlatLayout::add_segment(const Kinds& kinds, std::size_t in_whole, const HeldLanes& lanes) {
  for (int lane = lanes.first; lane < lanes.first + lanes.count; ++lane) {
    std::size_t place = in_whole + static_cast<std::size_t>(lane) * elements_of(kinds);
    for (const Kind& kind : kinds) {
      const auto begin = static_cast<std::size_t>(elements_);
      for (const ParameterSpec& spec : kind.specs) add(spec, lane);
      fill_up_to(kernels::kSquaresBlock);
      const Range elements = {begin, static_cast<std::size_t>(elements_)};
      segments_.push_back({.elements = elements, .in_whole = place, .is_copy = lane % kind.sharing != 0});
      place += elements.size();
    }
  }
}

void FlatLayout::list_parameters(const Model& model, std::size_t block, const HeldLanes& lanes) {
  const std::vector<ParameterSpec> specs = model.blocks[block]->parameters();
  for (int lane = lanes.first; lane < lanes.first + lanes.count; ++lane) {
    for (const ParameterSpec& spec : specs) {
      const std::optional<std::size_t> index = find(spec.name, lane);
      if (!index) {
        throw UsageError(fmt::format(
            "block {} shares {} with a block that is on another stage; put both on one", block, spec.name));
      }
      blocks_[block].push_back(*index);
    }
  }
}

void FlatLayout::list_heads(const ParameterSpec& head, const HeldLanes& lanes) {
  for (int lane = lanes.first; lane < lanes.first + lanes.count; ++lane) {
    if (const auto index = find(head.name, lane)) heads_.push_back(*index);
  }
}

std::optional<std::size_t> FlatLayout::find(const std::string& name, int lane) const {
  const auto found = index_.find({name, lane});
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

void FlatLayout::add(const ParameterSpec& spec, int lane) {
  index_.emplace(std::pair{spec.name, lane}, specs_.size());
  specs_.push_back(spec);
  lane_of_spec_.push_back(lane);
  places_.push_back({.first = elements_, .count = spec.elements()});
  elements_ += spec.elements();
}

void FlatLayout::fill_up_to(std::size_t unit) {
  elements_ = static_cast<std::int64_t>(rounded_up(static_cast<std::size_t>(elements_), unit));
}

bool is_tied(const Model& model) {
  return has(model.blocks.front()->parameters(), model.head.weight.name);
}

const ParameterSpec& FlatLayout::at(std::size_t element) const {
  const auto behind = std::upper_bound(
      places_.begin(), places_.end(), static_cast<std::int64_t>(element),
      [](std::int64_t wanted, const Place& place) { return wanted < place.first + place.count; });
  LOCKSTEP_CHECK(behind != places_.end(), "there is no such element");
  return specs_[static_cast<std::size_t>(behind - places_.begin())];
}

namespace {

Parameters::Views views_of(const FlatLayout& layout, const at::Tensor& flat) {
  LOCKSTEP_CHECK(flat.numel() == layout.elements());
  return [flat](const Place& place) { return flat.narrow(0, place.first, place.count); };
}

}  // namespace

Parameters::Parameters(const FlatLayout& layout, const at::Tensor& values, const at::Tensor& gradients)
    : Parameters(layout, views_of(layout, values), views_of(layout, gradients)) {}

Parameters::Parameters(const FlatLayout& layout, const Views& values, const Views& gradients)
    : lanes_(layout.lanes()) {
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    const Place& place = layout.places()[i];
    const ParameterSpec& spec = layout.specs()[i];
    all_.push_back({.name = spec.name,
                    .value = values(place).view(spec.shape).detach().requires_grad_(),
                    .gradient = gradients(place).view(spec.shape)});
  }
  for (std::size_t block = 0; block < layout.blocks(); ++block) {
    std::vector<const nn::Parameter*>& mine = blocks_.emplace_back();
    for (std::size_t index : layout.of_block(block)) mine.push_back(&all_[index]);
  }
  for (std::size_t index : layout.heads()) heads_.push_back(&all_[index]);
}

}  // namespace lockstep::model
