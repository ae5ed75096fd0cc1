// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::rendezvous {

struct ServerOptions {
  transport::Address listen;
  int world = 1;
  std::string run;
  std::uint64_t generation = 0;
  transport::Secret secret;
  std::shared_ptr<transport::TlsContext>
      tls;  // shared with the other connections of the process; may be null
  // How long those who come after a refusal are still told why.
  std::chrono::milliseconds linger{2'000};
};

// 32 random hexadecimal digits.
std::string fresh_nonce();

// Where to listen so that others find us at the master's address. The name they use may stand for a router or
// a service, so anything but loopback means all interfaces; strangers are refused by the secret. A name may
// also stand for addresses of both families, so only an IPv4 address means IPv4 alone, where there is IPv6.
transport::Address listening_address(const transport::Address& master);

// Where the ranks of one run meet, once. Nothing a client does or fails to do ends it early or holds up the
// others.
class Server {
 public:
  // Listens from here on. UsageError as transport::Listener.
  explicit Server(ServerOptions options);

  const transport::Address& address() const { return listener_.address(); }

  // Waits for all ranks and answers them: with the table, or all with the same refusal when two claim one
  // rank, their worlds, versions or configurations differ, or some are missing when the deadline (or the
  // patience of the first rank to give up) is reached. A rank whose process goes away while it waits may come
  // again. Returns when all are answered. A stop makes it refuse those who wait and return within a second,
  // unless it is already answering.
  void serve(Deadline deadline, const std::stop_token& stop = {});

 private:
  ServerOptions options_;
  transport::Listener listener_;
};

}  // namespace lockstep::rendezvous
