// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads that meet over 127.0.0.1.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/rendezvous/server.h"

namespace lockstep::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;
using transport::Address;
using transport::Secret;

inline const Secret kSecret = Secret::from_value("a secret of the tests");

// What became of one rank: a table or an error.
struct Outcome {
  std::optional<PeerTable> table;
  std::exception_ptr error;

  std::string message() const {
    if (!error) return "no error";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& raised) {
      return raised.what();
    }
  }

  template <typename Kind>
  bool is() const {
    if (!error) return false;
    try {
      std::rethrow_exception(error);
    } catch (const Kind&) {
      return true;
    } catch (...) {
      return false;
    }
  }
};

template <typename Action>
std::future<Outcome> in_thread(Action action) {
  return std::async(std::launch::async, [action = std::move(action)] {
    Outcome outcome;
    try {
      outcome.table = action();
    } catch (...) {
      outcome.error = std::current_exception();
    }
    return outcome;
  });
}

// A server on a free port in a thread of its own, as a launcher runs it.
class Served {
 public:
  explicit Served(int world, seconds time = seconds(30), milliseconds linger = milliseconds(100))
      : server_({.listen = {"127.0.0.1", 0, {}},
                 .world = world,
                 .run = "test",
                 .generation = 0,
                 .secret = kSecret,
                 .tls = nullptr,
                 .linger = linger}),
        thread_([this, time](const std::stop_token& stop) { server_.serve(Deadline::after(time), stop); }) {}

  Address address() const { return server_.address(); }
  void stop() { thread_.request_stop(); }
  void join() { thread_.join(); }

 private:
  Server server_;
  std::jthread thread_;
};

inline Placement placement_of(Rank rank, int world, const Address& server) {
  Placement placement;
  placement.rank.value = rank;
  placement.world.value = world;
  placement.master_host.value = server.host;
  placement.master_port.value = server.port;
  placement.served_by_rank0.value = false;
  placement.run.value = "test";
  placement.host_id.value = fmt::format("host{}", rank / 2);
  return placement;
}

inline std::future<Outcome> start_rank(const Placement& placement, LocalInfo local = {},
                                       Secret secret = kSecret, milliseconds time = seconds(30)) {
  return in_thread([=] { return rendezvous(placement, secret, local, Deadline::after(time)); });
}

// A connection that has proved to be `rank` of the run of these tests.
inline transport::AuthenticatedConnection dial_as(Rank rank, const Address& server) {
  return transport::dial(server, {.me = {"rendezvous", rank, "test", 0}, .secret = kSecret, .tls = nullptr},
                         Deadline::after(seconds(10)));
}

}  // namespace lockstep::rendezvous
