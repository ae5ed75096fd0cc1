// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/mesh/lanes.h"

#include "tests/comm/case_support.h"
#include "tests/support/shared_counter.h"
#include "tests/support/values.h"

namespace lockstep::test {
namespace {

using comm::Communicator;
using comm::Options;
using comm::ReduceOp;
using comm::Work;

using Buffers = std::vector<std::vector<std::byte>>;
using Views = std::vector<Bytes>;

// A collective in both forms, and what it promises to leave.
struct TwoForms {
  std::string_view name;
  Options options;
  Buffers data;  // of this rank
  std::function<void(const Views&, const Options&)> call;
  std::function<Work(const Views&, const Options&)> start;
  std::size_t result_buffer = 0;
  Range result;  // elements of it
};

Views views_of(Buffers& buffers) {
  return {buffers.begin(), buffers.end()};
}

struct OfOneBuffer {
  std::string_view name;
  void (Communicator::*call)(Bytes, const Options&) const;
  Work (Communicator::*start)(Bytes, const Options&) const;
  Options options;
  Range result;
};

TwoForms two_forms(const Communicator& world, const OfOneBuffer& of, std::size_t count) {
  return {.name = of.name,
          .options = of.options,
          .data = {values_of(world.rank(), 200, of.options.dtype, count, Values::rough)},
          .call = [&world, call = of.call](const Views& data,
                                           const Options& how) { (world.*call)(data.front(), how); },
          .start = [&world, start = of.start](
                       const Views& data, const Options& how) { return (world.*start)(data.front(), how); },
          .result = of.result};
}

TwoForms all_to_all_of(const Communicator& world, std::size_t block) {
  const std::size_t count = block * static_cast<std::size_t>(world.size());
  const Options options{.dtype = DType::fp16};
  auto input = values_of(world.rank(), 210, options.dtype, count, Values::rough);
  std::vector<std::byte> output(input.size());
  return {
      .name = "all_to_all",
      .options = options,
      .data = {std::move(input), std::move(output)},
      .call = [&world](const Views& data, const Options& how) { world.all_to_all(data[0], data[1], how); },
      .start = [&world](const Views& data,
                        const Options& how) { return world.all_to_all_async(data[0], data[1], how); },
      .result_buffer = 1,
      .result = {0, count}};
}

// With different numbers of lanes on the ranks.
std::array<TwoForms, 2> of_lanes(const Communicator& world, std::size_t count) {
  std::vector<double> weights;
  for (Rank rank = 0; rank < world.size(); ++rank) weights.push_back(static_cast<double>(rank * rank + 1));
  const comm::LanePieces pieces = single_lanes(weighted_ownership(8, weights));
  return {
      TwoForms{.name = "all_reduce_lanes",
               .options = {},
               .data = lane_partials(world, pieces, 211, count),
               .call = [&world, pieces](const Views& data,
                                        const Options& how) { world.all_reduce_lanes(data, pieces, how); },
               .start = [&world, pieces](
                            const Views& data,
                            const Options& how) { return world.all_reduce_lanes_async(data, pieces, how); },
               .result = {0, count}},
      TwoForms{
          .name = "reduce_scatter_lanes",
          .options = {},
          .data = lane_partials(world, pieces, 212, count),
          .call = [&world, pieces](const Views& data,
                                   const Options& how) { world.reduce_scatter_lanes(data, pieces, how); },
          .start = [&world, pieces](
                       const Views& data,
                       const Options& how) { return world.reduce_scatter_lanes_async(data, pieces, how); },
          .result = own_chunk(world, count)}};
}

// Options that are not those by default, so that one that got lost shows.
std::vector<TwoForms> all_in_two_forms(const Communicator& world, std::size_t count) {
  using C = Communicator;
  const Rank last = world.size() - 1;
  const Range all = {0, count};
  const Range at_root = world.rank() == last ? all : Range{};
  const std::array<OfOneBuffer, 5> of_one_buffer = {{
      {"all_reduce", &C::all_reduce, &C::all_reduce_async, {.dtype = DType::bf16, .op = ReduceOp::max}, all},
      {"reduce_scatter",
       &C::reduce_scatter,
       &C::reduce_scatter_async,
       {.op = ReduceOp::average},
       own_chunk(world, count)},
      {"all_gather", &C::all_gather, &C::all_gather_async, {.dtype = DType::uint8}, all},
      {"broadcast", &C::broadcast, &C::broadcast_async, {.dtype = DType::fp64, .root = last}, all},
      {"reduce",
       &C::reduce,
       &C::reduce_async,
       {.dtype = DType::int64, .op = ReduceOp::min, .root = last},
       at_root},
  }};
  std::vector<TwoForms> forms;
  for (const OfOneBuffer& each : of_one_buffer) forms.push_back(two_forms(world, each, count));
  forms.push_back(all_to_all_of(world, count / static_cast<std::size_t>(world.size())));
  for (TwoForms& lanes : of_lanes(world, count)) forms.push_back(std::move(lanes));
  return forms;
}

void both_forms_of_a_collective_do_the_same(Communicator& world) {
  std::vector<TwoForms> forms = all_in_two_forms(world, 1003);
  for (TwoForms& large : all_in_two_forms(world, kManyElements)) forms.push_back(std::move(large));

  std::vector<Buffers> background;
  std::vector<Work> works;
  for (const TwoForms& form : forms) background.push_back(form.data);
  // All at once: several wait on each stream.
  for (std::size_t i = 0; i < forms.size(); ++i) {
    Options options = forms[i].options;
    options.stream = static_cast<std::uint32_t>(i % comm::kStreamsPerGroup);
    works.push_back(forms[i].start(views_of(background[i]), options));
  }
  for (std::size_t i = forms.size(); i-- > 0;) works[i].wait();

  for (std::size_t i = 0; i < forms.size(); ++i) {
    TwoForms& form = forms[i];
    form.call(views_of(form.data), form.options);
    const DType dtype = form.options.dtype;
    EXPECT_SAME(part(background[i][form.result_buffer], form.result, dtype),
                part(form.data[form.result_buffer], form.result, dtype), dtype,
                "{} of {} bytes in the background", form.name, form.data.front().size());
  }
}

// The last rank comes late: nobody else may see its barriers end before that.
void barriers_in_the_background_wait_for_all(Communicator& world) {
  SharedCounter arrivals(world);
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  arrivals.add_one();
  std::vector<Work> works;
  for (std::uint32_t i = 0; i < 2 * comm::kStreamsPerGroup; ++i) {
    works.push_back(world.barrier_async({.stream = i % comm::kStreamsPerGroup}));
  }
  for (std::size_t i = works.size(); i-- > 0;) {
    works[i].wait();
    EXPECT_EQ(arrivals.value(), static_cast<std::uint64_t>(world.size())) << "barrier " << i;
  }
  world.barrier();
}

void many_operations_in_flight_on_all_streams(Communicator& world) {
  constexpr std::size_t kOperations = 24;
  std::vector<std::vector<std::byte>> data;
  std::vector<Work> works;
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    data.push_back(values_of(world.rank(), 100 + i, DType::fp32, 100 + 5000 * (i % 5), Values::rough));
  }
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    works.push_back(world.all_reduce_async(data[i], {.stream = i % comm::kStreamsPerGroup}));
  }
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    works[i].wait();
    EXPECT_TRUE(works[i].test());
    EXPECT_SAME(
        data[i],
        reduced_values(world.size(), 100 + i, DType::fp32, data[i].size() / 4, Values::rough, ReduceOp::sum),
        DType::fp32, "operation {}", i);
  }
}

void background_work_ends_without_being_waited_for(Communicator& world) {
  auto data = values_of(world.rank(), 11, DType::fp32, 5000, Values::rough);
  Work work = world.all_reduce_async(data);
  while (!work.test()) std::this_thread::yield();
  EXPECT_SAME(data, reduced_values(world.size(), 11, DType::fp32, 5000, Values::rough, ReduceOp::sum),
              DType::fp32, "in the background");
}

}  // namespace

std::vector<CollectiveCase> background_cases() {
  return {
      {"BothFormsOfACollectiveDoTheSame", both_forms_of_a_collective_do_the_same},
      {"BarriersInTheBackgroundWaitForAll", barriers_in_the_background_wait_for_all},
      {"ManyOperationsInFlightOnAllStreams", many_operations_in_flight_on_all_streams},
      {"BackgroundWorkEndsWithoutBeingWaitedFor", background_work_ends_without_being_waited_for},
  };
}

}  // namespace lockstep::test
