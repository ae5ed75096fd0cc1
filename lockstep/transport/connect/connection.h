// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/handshake.h"

namespace lockstep::transport {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// What a descriptor can be ready for.
enum class Readiness : std::uint8_t { read, write };

// A connected, authenticated, non-blocking byte stream: TCP (plain or TLS) or a Unix socket.
class Connection {
 public:
  virtual ~Connection() = default;

  // What try_read and try_write return when nothing can move now, and when the stream has ended or failed.
  static constexpr std::ptrdiff_t kWouldBlock = -1;
  static constexpr std::ptrdiff_t kClosed = -2;

  // Bytes moved, at least 1, or one of the two values above. Never raises a signal. After a try_write that
  // would block, the next one must begin with the same bytes (TLS has already encrypted some of them).
  virtual std::ptrdiff_t try_read(Bytes into) = 0;
  virtual std::ptrdiff_t try_write(std::span<const ConstBytes> pieces) = 0;

  // After kWouldBlock: what the descriptor must be ready for before that call can go on. Not always what its
  // name says: TLS may have to read before it can write, and the other way round.
  virtual Readiness awaits() const = 0;

  // Whether try_read could return data without the descriptor becoming readable (TLS keeps decrypted bytes).
  virtual bool has_buffered() const { return false; }

  virtual int fd() const = 0;

  // Why the stream ended, after kClosed; for messages.
  virtual std::string close_reason() const = 0;
  // Whether it ended because one side refused what the other sent (a certificate, bytes that are no TLS), and
  // not because the network or the peer's process failed.
  virtual bool protocol_failed() const { return false; }

  // All of it, by the deadline; Timeout or PeerLost otherwise, Aborted when the caller is to stop. For
  // control messages, not for the data path.
  void read_all(Bytes into, Deadline deadline, const std::stop_token& stop = {});
  void write_all(ConstBytes bytes, Deadline deadline);
};

// A connection whose other end has proved who it is.
struct AuthenticatedConnection {
  std::unique_ptr<Connection> connection;
  Identity peer;
};

}  // namespace lockstep::transport
