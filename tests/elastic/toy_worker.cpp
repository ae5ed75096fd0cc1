// SPDX-License-Identifier: Apache-2.0
//
// A worker of an elastic run that trains a single number: at each step the lanes' integers are summed over
// all workers and mixed into it. Everybody holds the number; who is new gets it from one who has it. What
// comes out must not depend on who took part.
//
//   TOY_FOLDER   where it tells what it does: at.<pid> (the step it is in) and final.<pid> (step and number)
//   TOY_STEPS    how many steps
//   TOY_STEP_MS  how long each takes at least
//   TOY_END      exit code to end with at once, before anything else
//   TOY_END_SLOT the worker of its host that does so; else all
//   TOY_END_STEP the step after which it does so; "left": kills itself when it has left
//   TOY_LINGER_MS how long it goes on after its last step before it leaves
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/comm/connect.h"
#include "lockstep/elastic/membership.h"
#include "lockstep/rendezvous/environment.h"

namespace lockstep::elastic {
namespace {

constexpr int kLanes = 8;
constexpr int kResumable = 75;

volatile std::sig_atomic_t asked_to_stop = 0;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void sleep_for(const std::string& ms) {
  if (!ms.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(ms)));
}

// Whole or not at all, for somebody reads it at any time.
void write(const std::string& name, const std::string& text) {
  const std::string path = fmt::format("{}/{}.{}", variable("TOY_FOLDER"), name, ::getpid());
  std::ofstream(path + ".new") << text << std::endl;
  std::filesystem::rename(path + ".new", path);
}

// After this step; empty: before anything else.
bool is_to_end(const std::string& step) {
  const std::string slot = variable("TOY_END_SLOT");
  return !variable("TOY_END").empty() && variable("TOY_END_STEP") == step &&
         (slot.empty() || slot == variable("LOCAL_RANK"));
}

struct State {
  std::int64_t step = kNoStep;
  std::int64_t number = 0;
};

std::int64_t lane_value(int lane, std::int64_t step) {
  return (step * 1'000'003 + lane * 7'919) % 65'537;
}

std::int64_t mixed(std::int64_t number, std::int64_t sum) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(number) * 6'364'136'223'846'793'005U) ^
                                   static_cast<std::uint64_t>(sum));
}

template <typename T, std::size_t N>
Bytes bytes_of(std::array<T, N>& values) {
  return std::as_writable_bytes(std::span(values));
}

class Toy {
 public:
  int run() {
    std::string reason = "it is new";
    for (;;) {
      const Place place =
          membership_.take_place({.step = state_.step, .voted = voted_ ? voted_->step : kNoStep}, reason);
      if (voted_ && voted_->step == place.decided) state_ = *voted_;
      voted_.reset();
      if (state_.step != place.decided) state_ = {};
      try {
        if (const std::optional<int> code = train(place)) return *code;
        reason = "members have come";
      } catch (const CommError& error) {
        reason = error.what();
      }
      membership_.on_abandon({});
    }
  }

 private:
  // Until the run, this worker or the generation has ended.
  std::optional<int> train(const Place& place) {
    std::stop_source connecting;
    membership_.on_abandon([connecting](const std::string&) mutable { connecting.request_stop(); });
    const comm::Communicator world = comm::connect(
        placement_of(place, rendezvous::placement_from_environment()), {.stop = connecting.get_token()});
    membership_.on_abandon([world](const std::string& reason) { world.abort(reason); });
    heal(world);
    membership_.begun(state_.step);
    const std::int64_t steps = std::stoll(variable("TOY_STEPS"));
    bool stops = false;
    while (state_.step < steps && !stops) {
      if (is_to_end(std::to_string(state_.step))) return std::stoi(variable("TOY_END"));
      const State next = step(world, stops);
      voted_ = next;
      const Decision decision = membership_.vote(next.step);
      state_ = next;
      voted_.reset();
      if (decision.regroup && state_.step < steps && !stops) return std::nullopt;
    }
    write("final", fmt::format("{} {}", state_.step, state_.number));
    sleep_for(variable("TOY_LINGER_MS"));
    membership_.leave();
    if (is_to_end("left")) std::raise(SIGKILL);
    return state_.step < steps ? kResumable : 0;
  }

  // What was decided last, from the first who has it; nobody does at the begin, or when all were lost.
  void heal(const comm::Communicator& world) {
    std::array<std::int64_t, 1> newest = {state_.step};
    world.all_reduce(bytes_of(newest), {.dtype = DType::int64, .op = comm::ReduceOp::max});
    if (newest[0] == kNoStep) return void(state_ = {.step = 0, .number = 1});
    std::array<std::int64_t, 1> root = {state_.step == newest[0] ? world.rank() : world.size()};
    world.all_reduce(bytes_of(root), {.dtype = DType::int64, .op = comm::ReduceOp::min});
    std::array<std::int64_t, 2> held = {state_.step, state_.number};
    world.broadcast(bytes_of(held), {.dtype = DType::int64, .root = static_cast<Rank>(root[0])});
    state_ = {.step = held[0], .number = held[1]};
  }

  State step(const comm::Communicator& world, bool& stops) {
    write("at", std::to_string(state_.step));
    sleep_for(variable("TOY_STEP_MS"));
    std::array<std::int64_t, 2> sums = {0, asked_to_stop};
    for (int lane = world.rank(); lane < kLanes; lane += world.size()) {
      sums[0] += lane_value(lane, state_.step + 1);
    }
    {
      const Activity::Wait waiting(&membership_.activity());
      world.all_reduce(bytes_of(sums), {.dtype = DType::int64});
    }
    stops = sums[1] > 0;
    return {.step = state_.step + 1, .number = mixed(state_.number, sums[0])};
  }

  Membership membership_{*membership_from_environment()};
  State state_;
  std::optional<State> voted_;  // without having heard the decision
};

int main_of_worker() {
  if (is_to_end("")) return std::stoi(variable("TOY_END"));
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    std::signal(number, [](int) { asked_to_stop = 1; });
  try {
    return Toy().run();
  } catch (const Dismissed& dismissed) {
    std::cerr << "dismissed: " << dismissed.what() << std::endl;
    if (dismissed.is_over()) return 0;
  } catch (const CommError& error) {
    std::cerr << error.what() << std::endl;
  }
  return kResumable;
}

}  // namespace
}  // namespace lockstep::elastic

int main() {
  return lockstep::elastic::main_of_worker();
}
