// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

#include "lockstep/transport/connect/stream.h"

namespace lockstep::transport {
namespace {

class PlainConnection final : public Connection {
 public:
  explicit PlainConnection(Descriptor socket) : socket_(std::move(socket)) {}

  std::ptrdiff_t try_read(Bytes into) override {
    const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (got == 0) error_ = 0;
    return got > 0 ? got : (got == 0 ? kClosed : outcome(errno, Readiness::read));
  }

  std::ptrdiff_t try_write(std::span<const ConstBytes> pieces) override {
    std::array<iovec, 32> vectors;
    const std::size_t count = std::min(pieces.size(), vectors.size());
    for (std::size_t i = 0; i < count; ++i) {
      vectors[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    const ssize_t put = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return put > 0 ? put : outcome(errno, Readiness::write);
  }

  Readiness awaits() const override { return awaits_; }
  int fd() const override { return socket_.get(); }

  std::string close_reason() const override {
    return error_ == 0 ? "the other side closed the connection" : std::strerror(error_);
  }

 private:
  std::ptrdiff_t outcome(int error, Readiness wanted) {
    awaits_ = wanted;
    if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) return kWouldBlock;
    error_ = error;
    return kClosed;
  }

  Descriptor socket_;
  Readiness awaits_ = Readiness::read;
  int error_ = 0;
};

bool is_unix_socket(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

}  // namespace

std::unique_ptr<Connection> make_plain_connection(Descriptor socket) {
  return std::make_unique<PlainConnection>(std::move(socket));
}

std::unique_ptr<Connection> make_connection(Descriptor socket, const std::shared_ptr<TlsContext>& tls,
                                            Side side) {
  if (tls == nullptr || is_unix_socket(socket.get())) return make_plain_connection(std::move(socket));
  return make_tls_connection(std::move(socket), tls, side);
}

}  // namespace lockstep::transport
