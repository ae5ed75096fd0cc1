// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/data/gradient_reducer.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/parallel/data/module_state.h"

namespace lockstep::parallel {
namespace {

using torch::autograd::variable_list;

constexpr std::size_t kMostNames = 8;  // of parameters in one message
// Streams of the group: what ranks say about a pass must not wait behind its gradients, nor giving up behind
// either.
constexpr std::uint32_t kCountStream = 1;
constexpr std::uint32_t kAbandonStream = 2;

// Called with whether the parameter got a gradient.
class AfterAccumulation : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void(bool)> body) : body_(std::move(body)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    body_(!inputs.empty() && inputs[0].defined());
    return outputs;
  }

 private:
  std::function<void(bool)> body_;
};

void require_host_memory(const NamedTensor& item) {
  if (item.tensor.is_cpu() && item.tensor.layout() == at::kStrided) return;
  throw UsageError(
      fmt::format("'{}' is not a dense tensor in CPU memory: data parallelism averages there; move "
                  "the module with to(torch::kCPU) first",
                  item.name));
}

void require_average(const NamedTensor& item) {
  const at::ScalarType type = item.tensor.scalar_type();
  if (type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf) return;
  throw UsageError(fmt::format("'{}' is {}: only float, double, bfloat16 and half gradients can be averaged",
                               item.name, shape_of(item.tensor)));
}

std::string list_of(const std::vector<std::string>& names) {
  const std::span shown(names.data(), std::min(names.size(), kMostNames));
  const std::string more =
      names.size() > kMostNames ? fmt::format(" and {} more", names.size() - kMostNames) : "";
  return fmt::format("'{}'{}", fmt::join(shown, "', '"), more);
}

std::string text_of(const DataParallelOptions& options) {
  const char* const exact = !options.exact ? "as the group" : *options.exact ? "true" : "false";
  return fmt::format(
      "options bucket_bytes {}, find_unused {}, static_graph {}, broadcast_buffers {}, exact {}",
      options.bucket_bytes, options.find_unused, options.static_graph, options.broadcast_buffers, exact);
}

}  // namespace

GradientReducer::GradientReducer(std::shared_ptr<torch::nn::Module> module, const comm::Communicator& group,
                                 const DataParallelOptions& options)
    : module_(std::move(module)), group_(group.split(0, group.rank(), "ddp")), options_(options) {
  take_parameters();
  std::vector<std::size_t> last_first(parameters_.size());
  std::iota(last_first.rbegin(), last_first.rend(), 0);
  buckets_ = make_buckets(plan_for(last_first));
  users_.resize(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) add_hooks(i);
}

GradientReducer::~GradientReducer() {
  for (const Parameter& parameter : parameters_) {
    parameter.accumulator->del_post_hook(parameter.after);
    parameter.tensor.remove_hook(parameter.before);
  }
  // A backward that ended with an error left reductions that the other ranks still wait for.
  if (in_pass_) abandon();
}

// Local errors are found after the ranks have agreed, for a rank that left earlier would keep others waiting.
void GradientReducer::take_parameters() {
  std::vector<NamedTensor> state = parameters_of(*module_);
  const std::size_t parameters = state.size();
  std::ranges::move(buffers_of(*module_), std::back_inserter(state));
  require_same_on_all_ranks(group_, text_of(options_), state);
  for (const NamedTensor& item : state) require_host_memory(item);
  for (const NamedTensor& item : std::span(state).first(parameters)) {
    if (!item.tensor.requires_grad()) continue;
    require_average(item);
    parameters_.push_back({.name = item.name,
                           .tensor = item.tensor,
                           .dtype = item.tensor.scalar_type(),
                           .sizes = item.tensor.sizes().vec()});
  }
  if (parameters_.empty()) throw UsageError("the module has no parameter that needs a gradient");
  broadcast_values(group_, state);
}

void GradientReducer::add_hooks(std::size_t index) {
  Parameter& parameter = parameters_[index];
  // Belongs to the parameter, so that it also sees one whose accumulator was replaced with its dtype.
  parameter.before = parameter.tensor.register_hook(
      [this, index](const at::Tensor& gradient) { check(parameters_[index], gradient); });
  parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
  parameter.after = parameter.accumulator->add_post_hook(
      std::make_unique<AfterAccumulation>([this, index](bool got_gradient) {
        if (got_gradient) accumulated(index);
      }));
}

BucketPlan GradientReducer::plan_for(const std::vector<std::size_t>& order) const {
  std::vector<GradientSize> sizes;
  for (const Parameter& parameter : parameters_) {
    sizes.push_back({nn::dtype_of(parameter.tensor), parameter.tensor.nbytes()});
  }
  return plan_buckets(sizes, order, options_.bucket_bytes);
}

std::unique_ptr<GradientBuckets> GradientReducer::make_buckets(BucketPlan plan) const {
  std::vector<at::Tensor> tensors;
  for (const Parameter& parameter : parameters_) tensors.push_back(parameter.tensor);
  return std::make_unique<GradientBuckets>(group_, std::move(tensors), std::move(plan), options_.exact);
}

// Breaks the group first: this rank leaves in the middle of a pass.
void GradientReducer::refuse(const Parameter& parameter, std::string_view why) const {
  abandon();
  throw UsageError(fmt::format("parameter '{}' {}", parameter.name, why));
}

void GradientReducer::check(const Parameter& parameter, const at::Tensor& gradient) const {
  if (parameter.tensor.scalar_type() != parameter.dtype || parameter.tensor.sizes() != parameter.sizes) {
    refuse(parameter,
           fmt::format("became {} after DistributedDataParallel was made (it was {} [{}]): make it "
                       "anew after such a change",
                       shape_of(parameter.tensor), c10::toString(parameter.dtype),
                       fmt::join(parameter.sizes, ", ")));
  }
  if (gradient.layout() != at::kStrided) {
    refuse(parameter, "has a sparse gradient, which cannot be averaged: make it dense");
  }
  if (held_ == 0 && at::GradMode::is_enabled()) {
    refuse(
        parameter,
        "was reached by a backward with create_graph, but averages of gradients have no graph: take second "
        "derivatives in no_sync, or without DistributedDataParallel");
  }
}

void GradientReducer::accumulated(std::size_t index) {
  Parameter& parameter = parameters_[index];
  parameter.used = true;
  if (!parameter.expected) {
    refuse(parameter,
           "got a gradient that it did not get in the first pass, against the promise of static_graph");
  }
  if (held_ > 0) return;
  if (!in_pass_) begin_pass();
  if (parameter.reached) {
    refuse(parameter,
           "got a second gradient in one backward pass: an earlier pass ended with an error, or passes are "
           "nested");
  }
  parameter.reached = true;
  order_.push_back(index);
  buckets_->take(index);
  buckets_->complete(index);
}

void GradientReducer::begin_pass() {
  in_pass_ = true;
  torch::autograd::Engine::get_default_engine().queue_callback([this] { finish(); });
  buckets_->start_pass();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].expected) complete_without(i);
  }
}

void GradientReducer::finish() {
  try {
    require_unchanged();
    const bool graph_is_known = options_.static_graph && !first_pass_;
    if (!graph_is_known) count_users();
    complete_unreached();
    buckets_->wait();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (users_[i] > 0) buckets_->give(i);
    }
    if (std::exchange(first_pass_, false)) adopt_order();
    if (options_.broadcast_buffers) broadcast_values(group_, buffers_of(*module_));
  } catch (...) {
    abandon();
    throw;
  }
  end_pass();
  if (!options_.find_unused) refuse_unused();
}

void GradientReducer::require_unchanged() const {
  std::vector<NamedTensor> now = parameters_of(*module_);
  std::erase_if(now, [](const NamedTensor& item) { return !item.tensor.requires_grad(); });
  const auto [then, here] =
      std::mismatch(parameters_.begin(), parameters_.end(), now.begin(), now.end(),
                    [](const Parameter& a, const NamedTensor& b) { return a.tensor.is_same(b.tensor); });
  if (then == parameters_.end() && here == now.end()) return;
  throw UsageError(fmt::format(
      "parameter '{}' was added, removed, replaced or frozen after DistributedDataParallel was made: "
      "make it anew after such a change",
      then == parameters_.end() ? here->name : then->name));
}

void GradientReducer::complete_unreached() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.reached || !parameter.expected) continue;
    if (options_.static_graph && !first_pass_) {
      refuse(parameter,
             "got no gradient though it got one in the first pass, against the promise of static_graph");
    }
    complete_without(i);
  }
}

void GradientReducer::complete_without(std::size_t index) {
  users_[index] > 0 ? buckets_->take(index) : buckets_->take_unused(index);
  buckets_->complete(index);
}

void GradientReducer::count_users() {
  std::ranges::transform(parameters_, users_.begin(), [](const Parameter& p) { return p.used ? 1 : 0; });
  group_.all_reduce(std::as_writable_bytes(std::span(users_)),
                    {.dtype = DType::int32, .stream = kCountStream});
}

void GradientReducer::end_pass() {
  for (Parameter& parameter : parameters_) {
    if (options_.static_graph) parameter.expected = parameter.reached;
    parameter.reached = false;
    parameter.used = false;
  }
  order_.clear();
  in_pass_ = false;
}

// The order in which rank 0's first pass reached the parameters is how all passes are likely to go.
void GradientReducer::adopt_order() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].reached) order_.push_back(i);
  }
  group_.broadcast(std::as_writable_bytes(std::span(order_)), {.dtype = DType::int64});
  BucketPlan plan = plan_for(order_);
  if (plan == buckets_->plan()) return;
  std::unique_ptr<GradientBuckets> buckets = make_buckets(std::move(plan));
  for (std::size_t i = 0; i < parameters_.size(); ++i) buckets->take(i);
  buckets_ = std::move(buckets);
}

void GradientReducer::refuse_unused() const {
  std::vector<std::string> names;
  std::int32_t fewest = group_.size();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (users_[i] == group_.size()) continue;
    names.push_back(parameters_[i].name);
    fewest = std::min(fewest, users_[i]);
  }
  if (names.empty()) return;
  throw UsageError(fmt::format(
      "{} got no gradient on {} of {} ranks: let every parameter take part in the loss, freeze those "
      "that do not (set_requires_grad), or set find_unused",
      list_of(names), group_.size() - fewest, group_.size()));
}

// Lets the other ranks know at once that this one goes no further: a cancelled call breaks the group.
void GradientReducer::abandon() const noexcept {
  try {
    group_.barrier_async({.stream = kAbandonStream}).cancel();
  } catch (const Error&) {  // broken already; what broke it is on its way to the caller
  }
}

}  // namespace lockstep::parallel
