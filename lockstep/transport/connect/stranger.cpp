// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/stranger.h"

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::seconds kDrainTime{1};
constexpr std::size_t kDrainBytes = std::size_t{64} * 1024;

// To one that did not even begin our handshake: neither TLS nor our magic, so that a dialer with TLS on at
// one side only learns it at once instead of trying again.
constexpr std::string_view kNotLockstep = "closed: this port speaks only Lockstep\n";

}  // namespace

Stranger::Stranger(asio::io_context& io, std::unique_ptr<Connection> connection, Handshake handshake,
                   OnEnd on_end)
    : connection_(std::move(connection)),
      handshake_(std::move(handshake)),
      on_end_(std::move(on_end)),
      watch_(io, connection_->fd()),
      timer_(io),
      name_(describe_peer(connection_->fd())) {}

void Stranger::start(std::chrono::milliseconds timeout) {
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->state_ != State::talking) return;
    self->refuse(End::timed_out, "it did not finish the handshake in time");
  });
  step();
}

void Stranger::drop() {
  if (state_ != State::ended) end(End::dropped, "");
}

AuthenticatedConnection Stranger::take() {
  return {.connection = std::move(connection_), .peer = *handshake_.peer()};
}

void Stranger::step() {
  if (state_ != State::talking) return;
  try {
    while (flush() && advance()) {
    }
  } catch (const std::exception& error) {
    // Also one of ours: it is between this stranger and us alone.
    refuse(End::refused, error.what());
  }
}

// One read of the handshake; false when it must wait or has ended.
bool Stranger::advance() {
  if (handshake_.done()) {
    end(End::accepted, "");
    return false;
  }
  std::array<std::byte, Handshake::kMaxBytes> buffer;
  const std::ptrdiff_t got = connection_->try_read(Bytes(buffer).first(handshake_.wanted()));
  if (got == Connection::kWouldBlock) {
    wait(connection_->awaits(), &Stranger::step);
    return false;
  }
  if (got == Connection::kClosed) throw AuthenticationError(connection_->close_reason());
  handshake_.feed(ConstBytes(buffer).first(static_cast<std::size_t>(got)));
  return true;
}

// Writes what the handshake has to say; false when it must wait for room.
bool Stranger::flush() {
  const std::vector<std::byte> more = handshake_.take_output();
  output_.insert(output_.end(), more.begin(), more.end());
  has_spoken_ |= !more.empty();
  while (!output_.empty()) {
    const ConstBytes piece(output_);
    const std::ptrdiff_t put = connection_->try_write(std::span(&piece, 1));
    if (put == Connection::kWouldBlock) {
      wait(connection_->awaits(), &Stranger::step);
      return false;
    }
    if (put == Connection::kClosed) throw AuthenticationError(connection_->close_reason());
    output_.erase(output_.begin(), output_.begin() + put);
  }
  return true;
}

void Stranger::wait(Readiness what, void (Stranger::*then)()) {
  const auto event = what == Readiness::read ? Watch::wait_read : Watch::wait_write;
  watch_.async_wait(event, [self = shared_from_this(), then](const asio::error_code& error) {
    if (!error) ((*self).*then)();
  });
}

// Closing a socket that holds unread bytes would reset the connection, and the peer might lose our last words
// (a verdict, a TLS alert); so we stop writing and read the rest away, for a short while.
void Stranger::refuse(End how, const std::string& why) {
  state_ = State::draining;
  on_end_(*this, how, why);  // first, so that who reads the last words finds the refusal counted
  const std::vector<std::byte> last_words = handshake_.take_output();
  const ConstBytes piece(last_words);
  if (output_.empty() && !piece.empty()) connection_->try_write(std::span(&piece, 1));
  if (how == End::refused && !has_spoken_ && last_words.empty()) {
    ::send(connection_->fd(), kNotLockstep.data(), kNotLockstep.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ::shutdown(connection_->fd(), SHUT_WR);
  watch_.cancel();
  timer_.expires_after(kDrainTime);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && self->state_ == State::draining) self->end(End::drained, "");
  });
  drain();
}

void Stranger::drain() {
  if (state_ != State::draining) return;
  std::array<std::byte, 4096> waste;
  ssize_t got = 0;
  do {
    got = ::recv(connection_->fd(), waste.data(), waste.size(), MSG_DONTWAIT);
    drained_bytes_ += got > 0 ? static_cast<std::size_t>(got) : 0;
  } while (got > 0 && drained_bytes_ < kDrainBytes);
  const bool more_may_come = got < 0 && (errno == EAGAIN || errno == EINTR);
  if (!more_may_come) return end(End::drained, "");
  wait(Readiness::read, &Stranger::drain);
}

void Stranger::end(End how, const std::string& why) {
  const auto self = shared_from_this();  // on_end_ may forget us
  state_ = State::ended;
  timer_.cancel();
  watch_.let_go();
  if (how != End::dropped) on_end_(*this, how, why);
  connection_.reset();
}

}  // namespace lockstep::transport
