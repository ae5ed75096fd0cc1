// SPDX-License-Identifier: Apache-2.0
//
// gloo as an opponent, used as its users do: ring allreduce over its TCP transport, in place, buffers from
// ordinary memory. gloo_absent.cpp takes its place in a build without gloo.
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/common/error.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/memory.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/bench/values.h"

namespace lockstep::cli {
namespace {

constexpr std::chrono::seconds kTimeout{30};

using Context = std::shared_ptr<gloo::rendezvous::Context>;  // gloo's own interface shares it

void meet_over(const Context& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

Context connect(Rank rank, int ranks, const std::filesystem::path& folder) {
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->setTimeout(kTimeout);
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  gloo::rendezvous::FileStore store(folder.native());
  context->connectFullMesh(store, device);
  meet_over(context);
  return context;
}

template <typename T>
void all_reduce_as(const Context& context, Bytes data) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setOutput(reinterpret_cast<T*>(data.data()), data.size() / sizeof(T));
  options.setReduceFunction(
      [](void* to, const void* a, const void* b, std::size_t n) { gloo::sum<T>(to, a, b, n); });
  gloo::allreduce(options);
}

using AllReduce = void (*)(const Context&, Bytes);

AllReduce all_reduce_for(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return all_reduce_as<float>;
    case DType::fp64:
      return all_reduce_as<double>;
    case DType::fp16:
      return all_reduce_as<gloo::float16>;
    case DType::int32:
      return all_reduce_as<std::int32_t>;
    case DType::int64:
      return all_reduce_as<std::int64_t>;
    case DType::uint8:
      return all_reduce_as<std::uint8_t>;
    case DType::bf16:
      break;
  }
  throw UsageError("gloo has no bf16; measure it with another dtype, or leave gloo out of --against");
}

// gloo's exceptions share no base of their own that says what failed; ours do.
template <typename Function>
void translated(Function function) {
  try {
    function();
  } catch (const gloo::Exception& error) {
    throw CommError(fmt::format("gloo: {}", error.what()));
  }
}

class GlooTrial : public Trial {
 public:
  GlooTrial(Context context, const Case& what)
      : context_(std::move(context)),
        dtype_(what.dtype),
        data_(what.bytes),
        all_reduce_(all_reduce_for(what.dtype)) {}

  void fill() override { fill_values(data_.bytes(), dtype_, context_->rank, all()); }
  bool is_correct() const override {
    return holds_sum(data_.bytes(), dtype_, context_->size, all(), Comparison::rounding);
  }
  void clear() override { std::memset(data_.bytes().data(), 0, data_.bytes().size()); }
  void run_once() override {
    translated([this] { all_reduce_(context_, data_.bytes()); });
  }
  void meet() override {
    translated([this] { meet_over(context_); });
  }

 private:
  Range all() const { return {0, data_.bytes().size() / size_of(dtype_)}; }

  Context context_;
  DType dtype_;
  PlainMemory data_;
  AllReduce all_reduce_;
};

}  // namespace

TrialFactory gloo_trials(Rank rank, int ranks, std::filesystem::path store) {
  return [rank, ranks, store = std::move(store),
          context = Context()](const Case& what) mutable -> std::unique_ptr<Trial> {
    if (what.op != schedule::Op::all_reduce) {
      throw UsageError(
          "gloo is measured in all_reduce only; leave gloo out of --against for other operations");
    }
    if (!context) translated([&] { context = connect(rank, ranks, store); });
    return std::make_unique<GlooTrial>(context, what);
  };
}

}  // namespace lockstep::cli
