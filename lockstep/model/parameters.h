// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/mesh/range.h"
#include "lockstep/model/block.h"

namespace lockstep::model {

// Where a parameter lies in flat parameters.
struct Place {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// The lanes (nn/lanes.h) whose parameters are held, of a model whose blocks declare what one lane has.
struct HeldLanes {
  int lanes = 1;  // of the model, a power of two
  int first = 0;  // of those that are held
  int count = 1;
  // How many lanes have the same values of a parameter: a power of two, and a run of lanes that begins at a
  // multiple of it. Null: each has its own.
  std::function<int(const ParameterSpec&)> sharing = nullptr;
};

// The parameters of a model, or of some of its blocks, one after the other. Those of a block, and those of a
// head of its own, are a *segment* that begins at a multiple of kernels::kSquaresBlock in every layout, so
// that sums over blocks of that size do not depend on who holds which segments. A shared parameter is in the
// segment of the first block that has it. With several lanes a block has such a segment for each lane that is
// held, in their order, and of each lane one for those parameters that as many lanes share. Pure arithmetic:
// every rank comes to the same result.
class FlatLayout {
 public:
  // The whole model.
  explicit FlatLayout(const Model& model);
  // Chunks of the model: runs of blocks in ascending order, the last with the head if it has the last block.
  // Each begins at a multiple of `unit`, itself one of kernels::kSquaresBlock. A head that shares a parameter
  // with a block elsewhere has a copy of it, before all else: it is *borrowed*. UsageError when a block
  // shares a parameter with one that is not held.
  FlatLayout(const Model& model, std::span<const Range> chunks, std::size_t unit,
             const HeldLanes& lanes = {});

  const std::vector<ParameterSpec>& specs() const { return specs_; }  // every lane has its own
  const std::vector<Place>& places() const { return places_; }        // of the specs
  int lane_of(std::size_t spec) const { return lane_of_spec_[spec]; }
  std::size_t lanes() const { return lanes_; }         // that are held
  std::int64_t elements() const { return elements_; }  // with what fills up segments
  // The parameter that the element belongs to.
  const ParameterSpec& at(std::size_t element) const;

  std::size_t blocks() const { return blocks_.size(); }  // of the model
  // Indices among the specs, of the first lane, then of the next, ...; none for a block that is not held.
  const std::vector<std::size_t>& of_block(std::size_t block) const { return blocks_[block]; }
  // The head's parameter, as the lane numbered so among those held has it; only when it is held: with the
  // last block, or with the first one that has it.
  std::size_t head(std::size_t lane = 0) const { return heads_[lane]; }
  const std::vector<std::size_t>& heads() const { return heads_; }  // none when it is not held

  // By chunk: its elements.
  const std::vector<Range>& chunks() const { return chunks_; }
  bool borrows_head() const { return borrowed_ > 0; }
  // All but a borrowed head.
  Range owned() const { return {borrowed_, static_cast<std::size_t>(elements_)}; }

  // What is owned, piece by piece, and where each begins in the layout of the whole model with all lanes.
  struct Segment {
    Range elements;
    std::size_t in_whole = 0;
    bool is_copy = false;  // of what a lower lane has
  };
  const std::vector<Segment>& segments() const { return segments_; }
  std::size_t elements_of_whole() const { return elements_of_whole_; }

 private:
  // Parameters of a block that as many lanes share.
  struct Kind {
    int sharing = 1;
    std::vector<ParameterSpec> specs;
  };
  using Kinds = std::vector<Kind>;
  static Kinds kinds_of(const std::vector<ParameterSpec>& segment, const HeldLanes& lanes);
  static std::size_t elements_of(const Kinds& kinds);
  void add_segment(const Kinds& kinds, std::size_t in_whole, const HeldLanes& lanes);
  void list_parameters(const Model& model, std::size_t block, const HeldLanes& lanes);
  void list_heads(const ParameterSpec& head, const HeldLanes& lanes);
  std::optional<std::size_t> find(const std::string& name, int lane) const;
  void add(const ParameterSpec& spec, int lane);
  void fill_up_to(std::size_t unit);

  std::vector<ParameterSpec> specs_;
  std::vector<Place> places_;
  std::vector<int> lane_of_spec_;
  std::map<std::pair<std::string, int>, std::size_t> index_;  // of the specs, by name and lane
  std::size_t lanes_ = 1;
  std::vector<std::vector<std::size_t>> blocks_;
  std::vector<Range> chunks_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> heads_;
  std::size_t borrowed_ = 0;
  std::int64_t elements_ = 0;
  std::size_t elements_of_whole_ = 0;
};

// The head computes with a parameter of the first block.
bool is_tied(const Model& model);

// The parameters as blocks want them: views of memory that others own as well.
class Parameters {
 public:
  // The elements of a place, flat.
  using Views = std::function<at::Tensor(const Place&)>;
  // `values` are of the working dtype, `gradients` fp32.
  Parameters(const FlatLayout& layout, const Views& values, const Views& gradients);
  // The same, of flat tensors with layout.elements().
  Parameters(const FlatLayout& layout, const at::Tensor& values, const at::Tensor& gradients);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  const std::vector<nn::Parameter>& all() const { return all_; }
  BlockParameters of_block(std::size_t block) const { return {blocks_[block], lanes_}; }
  // Of the lanes that are held; only when the head's parameter is.
  std::span<const nn::Parameter* const> heads() const { return heads_; }
  const nn::Parameter& head() const { return *heads_.front(); }  // when there is one lane

 private:
  std::vector<nn::Parameter> all_;
  std::vector<std::vector<const nn::Parameter*>> blocks_;
  std::vector<const nn::Parameter*> heads_;
  std::size_t lanes_;
};

}  // namespace lockstep::model
