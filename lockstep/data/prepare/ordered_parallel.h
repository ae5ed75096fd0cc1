// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::data {

// Items go through three stages on several threads:
//   produce()         -> std::optional<Item>   one call at a time; none: the end
//   make_transform()  -> Item -> Result        at most once for each thread, which alone uses the result
//   consume(Result)                            one call at a time, in the order of production
// At most one item for each thread is in memory. The first failure in that order ends everything and is
// raised here, after all threads have ended.
template <typename Produce, typename MakeTransform, typename Consume>
void ordered_parallel(int threads, Produce&& produce, MakeTransform&& make_transform, Consume&& consume) {
  std::mutex source, sink;
  std::condition_variable turn_came;
  std::uint64_t taken = 0;     // under source
  bool exhausted = false;      // under source
  std::uint64_t turn = 0;      // under sink
  std::exception_ptr failure;  // under sink; nothing is consumed after it

  const auto take = [&](auto& item, std::exception_ptr& error) -> std::optional<std::uint64_t> {
    const std::lock_guard lock(source);
    if (exhausted) return std::nullopt;
    try {
      item = produce();
      exhausted = !item;
    } catch (...) {
      error = std::current_exception();
      exhausted = true;
    }
    return item || error ? std::optional(taken++) : std::nullopt;
  };
  // False when all shall end.
  const auto hand_over = [&](std::uint64_t index, auto& result, const std::exception_ptr& error) {
    std::unique_lock lock(sink);
    turn_came.wait(lock, [&] { return turn == index || failure; });
    if (failure) return false;
    try {
      if (error) std::rethrow_exception(error);
      consume(std::move(*result));
    } catch (...) {
      failure = std::current_exception();
    }
    ++turn;
    turn_came.notify_all();
    return !failure;
  };
  const auto work = [&] {
    std::optional<decltype(make_transform())> transform;
    while (true) {
      decltype(produce()) item;
      std::exception_ptr error;
      const auto index = take(item, error);
      if (!index) return;
      std::optional<decltype((*transform)(std::move(*item)))> result;
      if (!error) {
        try {
          if (!transform) transform.emplace(make_transform());
          result = (*transform)(std::move(*item));
        } catch (...) {
          error = std::current_exception();
        }
      }
      if (!hand_over(*index, result, error)) return;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lockstep::data
