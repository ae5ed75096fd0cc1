// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/connect/peer_user.h"
#include "lockstep/transport/connect/socket.h"
#include "lockstep/transport/connect/stream.h"

namespace lockstep::transport {
namespace {

// A try that gets no answer is given up, for the host or the listener may have been replaced meanwhile.
constexpr std::chrono::seconds kTryTime{10};
constexpr std::chrono::milliseconds kFirstPause{5};
constexpr std::chrono::milliseconds kLongestPause{250};

// How long one try may take.
struct Patience {
  Deadline deadline;
  const std::stop_token& stop;
};

// What would block is waited for; a connection that ends is worth another try unless the protocol itself was
// refused.
void check_moved(const Connection& connection, std::ptrdiff_t moved, const Patience& patience) {
  if (moved == Connection::kWouldBlock &&
      !wait_ready(connection.fd(), connection.awaits(), patience.deadline, patience.stop)) {
    throw CommError("it accepted the connection but does not answer");
  }
  if (moved != Connection::kClosed) return;
  if (connection.protocol_failed()) throw AuthenticationError(connection.close_reason());
  throw CommError(connection.close_reason());
}

void send_output(Connection& connection, Handshake& handshake, const Patience& patience) {
  const std::vector<std::byte> output = handshake.take_output();
  std::size_t sent = 0;
  while (sent < output.size()) {
    const ConstBytes rest = ConstBytes(output).subspan(sent);
    const std::ptrdiff_t put = connection.try_write(std::span(&rest, 1));
    check_moved(connection, put, patience);
    if (put > 0) sent += static_cast<std::size_t>(put);
  }
}

Identity authenticate(Connection& connection, const Credentials& credentials, const Patience& patience) {
  Handshake handshake(Side::dialer, credentials.me, credentials.secret, random_nonce());
  std::array<std::byte, Handshake::kMaxBytes> buffer;
  while (!handshake.done()) {
    send_output(connection, handshake, patience);
    const std::ptrdiff_t got = connection.try_read(Bytes(buffer).first(handshake.wanted()));
    check_moved(connection, got, patience);
    if (got > 0) handshake.feed(ConstBytes(buffer).first(static_cast<std::size_t>(got)));
  }
  return *handshake.peer();
}

AuthenticatedConnection try_once(const Address& address, const Credentials& credentials,
                                 const Patience& patience) {
  Descriptor socket = connect_to_any(resolve(address, patience.deadline), patience.deadline, patience.stop);
  if (!unix_peer_is_our_user(socket.get())) throw AuthenticationError("it runs as another user");
  auto connection = make_connection(std::move(socket), credentials.tls, Side::dialer);
  Identity peer = authenticate(*connection, credentials, patience);
  if (credentials.prove_nothing()) require_tcp_peer_is_our_user(connection->fd());
  return {.connection = std::move(connection), .peer = std::move(peer)};
}

}  // namespace

AuthenticatedConnection dial(const Address& address, const Credentials& credentials, Deadline deadline,
                             const std::stop_token& stop) {
  if (!is_loopback(address) && credentials.prove_nothing()) {
    throw UsageError(
        fmt::format("will not connect to {} without a secret or TLS, for anyone could answer: make a "
                    "secret with `lockstep keygen FILE`, copy it to all hosts and set LOCKSTEP_SECRET_FILE",
                    address.to_string()));
  }
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    if (stop.stop_requested()) {
      throw Aborted(fmt::format("connecting to {} was given up", address.to_string()));
    }
    try {
      const auto limit = std::min<std::chrono::nanoseconds>(deadline.left(), kTryTime);
      return try_once(address, credentials, {.deadline = Deadline::after(limit), .stop = stop});
    } catch (const AuthenticationError& error) {
      throw AuthenticationError(fmt::format("connecting to {}: {}", address.to_string(), error.what()));
    } catch (const CommError& error) {
      if (deadline.left() <= pause) {
        throw Timeout(fmt::format(
            "could not connect to {} within {:.1f} s: {}; is the process there running?", address.to_string(),
            std::chrono::duration<double>(deadline.waited()).count(), error.what()));
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace lockstep::transport
