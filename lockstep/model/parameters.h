// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
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

// The parameters of a model, or of some of its blocks, one after the other. Those of a block, and those of a
// head of its own, are a *segment* that begins at a multiple of kernels::kSquaresBlock in every layout, so
// that sums over blocks of that size do not depend on who holds which segments. A shared parameter is in the
// segment of the first block that has it. Pure arithmetic: every rank comes to the same result.
class FlatLayout {
 public:
  // The whole model.
  explicit FlatLayout(const Model& model);
  // Chunks of the model: runs of blocks in ascending order, the last with the head if it has the last block.
  // Each begins at a multiple of `unit`, itself one of kernels::kSquaresBlock. A head that shares a parameter
  // with a block elsewhere has a copy of it, before all else: it is *borrowed*. UsageError when a block
  // shares a parameter with one that is not held.
  FlatLayout(const Model& model, std::span<const Range> chunks, std::size_t unit);

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  const std::vector<Place>& places() const { return places_; }  // of the specs
  std::int64_t elements() const { return elements_; }           // with what fills up segments
  // The parameter that the element belongs to.
  const ParameterSpec& at(std::size_t element) const;

  std::size_t blocks() const { return blocks_.size(); }  // of the model
  // Indices among the specs; none for a block that is not held.
  const std::vector<std::size_t>& of_block(std::size_t block) const { return blocks_[block]; }
  // Of the head's parameter; only when the last block is held.
  std::size_t head() const { return head_; }

  // By chunk: its elements.
  const std::vector<Range>& chunks() const { return chunks_; }
  bool borrows_head() const { return borrowed_ > 0; }
  // All but a borrowed head.
  Range owned() const { return {borrowed_, static_cast<std::size_t>(elements_)}; }

  // What is owned, piece by piece, and where each begins in the layout of the whole model.
  struct Segment {
    Range elements;
    std::size_t in_whole = 0;
  };
  const std::vector<Segment>& segments() const { return segments_; }
  std::size_t elements_of_whole() const { return elements_of_whole_; }

 private:
  std::vector<std::size_t> lay_out_whole(const std::vector<std::vector<ParameterSpec>>& segments);
  void add_segment(const std::vector<ParameterSpec>& specs, std::size_t in_whole);
  void list_parameters(const Model& model, std::size_t block);
  void add(const ParameterSpec& spec);
  void fill_up_to(std::size_t unit);

  std::vector<ParameterSpec> specs_;
  std::vector<Place> places_;
  std::vector<std::vector<std::size_t>> blocks_;
  std::vector<Range> chunks_;
  std::vector<Segment> segments_;
  std::size_t head_ = 0;
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
  BlockParameters of_block(std::size_t block) const { return blocks_[block]; }
  const nn::Parameter& head() const { return all_[head_]; }  // only when the last block is held

 private:
  std::vector<nn::Parameter> all_;
  std::vector<std::vector<const nn::Parameter*>> blocks_;
  std::size_t head_;
};

}  // namespace lockstep::model
