// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/data/module_state.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

std::vector<NamedTensor> each_once(const torch::OrderedDict<std::string, at::Tensor>& named) {
  std::set<const c10::TensorImpl*> seen;
  std::vector<NamedTensor> tensors;
  for (const auto& item : named) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) tensors.push_back({item.key(), item.value()});
  }
  return tensors;
}

std::vector<std::string> lines_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : tensors) {
    lines.push_back(fmt::format("'{}' {} with strides [{}]{}", name, shape_of(tensor),
                                fmt::join(tensor.strides(), ", "),
                                tensor.requires_grad() ? " and a gradient" : ""));
  }
  return lines;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> lines_of_rank_0(const comm::Communicator& group,
                                         const std::vector<std::string>& mine) {
  std::string text;
  for (const std::string& line : mine) text += line + '\n';
  std::uint64_t bytes = text.size();
  group.broadcast(as_writable_bytes_of(bytes), {.dtype = DType::uint8});
  text.resize(bytes);
  group.broadcast(std::as_writable_bytes(std::span(text)), {.dtype = DType::uint8});
  return split_lines(text);
}

// Empty if they are equal.
std::string first_difference(const std::vector<std::string>& mine, const std::vector<std::string>& first) {
  const auto [here, there] = std::mismatch(mine.begin(), mine.end(), first.begin(), first.end());
  if (here == mine.end() && there == first.end()) return {};
  return fmt::format("it has {} where rank 0 has {}", here == mine.end() ? "nothing more" : *here,
                     there == first.end() ? "nothing more" : *there);
}

// Collective: the ranks that say `yes`.
std::vector<Rank> ranks_with(const comm::Communicator& group, bool yes) {
  std::vector<std::int32_t> said(static_cast<std::size_t>(group.size()));
  said[static_cast<std::size_t>(group.rank())] = yes ? 1 : 0;
  group.all_reduce(std::as_writable_bytes(std::span(said)), {.dtype = DType::int32});
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    if (said[rank] != 0) ranks.push_back(static_cast<Rank>(rank));
  }
  return ranks;
}

bool is_plain_memory(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense();
}

}  // namespace

std::vector<NamedTensor> parameters_of(const torch::nn::Module& module) {
  return each_once(module.named_parameters());
}

std::vector<NamedTensor> buffers_of(const torch::nn::Module& module) {
  return each_once(module.named_buffers());
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("{} [{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

void require_same_on_all_ranks(const comm::Communicator& group, const std::string& settings,
                               const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> mine = lines_of(tensors);
  mine.insert(mine.begin(), settings);
  const std::string difference = first_difference(mine, lines_of_rank_0(group, mine));
  const std::vector<Rank> others = ranks_with(group, !difference.empty());
  if (others.empty()) return;
  if (difference.empty()) {
    throw UsageError(
        fmt::format("the model of rank {} is not that of rank 0 (its own error says where): build the same "
                    "model on all ranks of group '{}'",
                    fmt::join(others, ", "), group.name()));
  }
  throw UsageError(
      fmt::format("the model of rank {} is not that of rank 0: {}; build the same model on all ranks of "
                  "group '{}'",
                  group.rank(), difference, group.name()));
}

void broadcast_values(const comm::Communicator& group, const std::vector<NamedTensor>& tensors) {
  std::vector<comm::Work> works;
  std::vector<at::Tensor> memory;
  for (const auto& [name, tensor] : tensors) {
    memory.push_back(is_plain_memory(tensor) ? tensor.detach() : tensor.detach().contiguous());
    works.push_back(group.broadcast_async(
        {static_cast<std::byte*>(memory.back().data_ptr()), tensor.nbytes()}, {.dtype = DType::uint8}));
  }
  for (comm::Work& work : works) work.wait();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!is_plain_memory(tensors[i].tensor)) tensors[i].tensor.detach().copy_(memory[i]);
  }
}

}  // namespace lockstep::parallel
