// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/address.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/secret.h"
#include "lockstep/transport/connect/tls.h"

namespace lockstep::transport {

// What both ends of a connection need to prove and protect it.
struct Credentials {
  Identity me;
  Secret secret;
  std::shared_ptr<TlsContext> tls;  // shared by all connections; null: plain. Ignored on Unix sockets.

  // Neither secret nor certificate: anyone could give such a proof.
  bool prove_nothing() const { return secret.empty() && tls == nullptr; }
};

struct ListenerLimits {
  std::size_t max_pending = 256;  // strangers that have not proved themselves; more are closed
  std::chrono::milliseconds handshake_timeout{5'000};  // for each of them
  std::size_t max_ready = 4096;  // that proved themselves and wait for accept(); more are closed
};

// How often strangers were turned away, by reason.
struct ListenerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;     // wrong, missing, replayed or reflected proof, garbage, another user
  std::uint64_t timed_out = 0;   // silent or slow
  std::uint64_t overflowed = 0;  // closed because too many were pending, or waited for accept()
};

// Listens and authenticates; nothing a stranger sends or does not send holds up the others. Refusals are
// counted, and logged at most once per second. On a Unix socket, and without a secret or TLS, the peer must
// also be a process of our user.
class Listener {
 public:
  // UsageError: port in use, address not ours, or not loopback while the credentials hold neither secret nor
  // TLS. CommError: no descriptor or thread is left.
  Listener(const Address& address, Credentials credentials, ListenerLimits limits = {});
  ~Listener();

  // Where it listens, with the port the system chose.
  const Address& address() const;

  // The next connection that proved itself. Timeout at the deadline, Aborted when the caller is to stop,
  // CommError when the listener had to.
  AuthenticatedConnection accept(Deadline deadline, const std::stop_token& stop = {});

  // The same when there is one, without waiting. CommError when the listener had to stop.
  std::optional<AuthenticatedConnection> try_accept();
  // Readable while try_accept() has something to say.
  int fd() const;

  ListenerCounters counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Connects and authenticates. Retries while nobody listens yet or the connection is reset early, until the
// deadline; then Timeout with the last reason. AuthenticationError at once when the other side refuses the
// proof or cannot give its own, or is of another user where a Listener would mind. Aborted soon after the
// caller is to stop.
AuthenticatedConnection dial(const Address& address, const Credentials& credentials, Deadline deadline,
                             const std::stop_token& stop = {});

}  // namespace lockstep::transport
