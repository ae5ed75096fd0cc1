// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <openssl/err.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/stream.h"
#include "lockstep/transport/connect/tls_context.h"

namespace lockstep::transport {
namespace {

int descriptor_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

// One transfer through the BIO: tells OpenSSL to come back when the socket is not ready.
int finish(BIO* bio, ssize_t moved, void (*set_retry)(BIO*)) {
  BIO_clear_retry_flags(bio);
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) set_retry(bio);
  return static_cast<int>(moved);
}

int bio_write(BIO* bio, const char* data, int size) {
  return finish(bio, ::send(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL),
                [](BIO* b) { BIO_set_retry_write(b); });
}

int bio_read(BIO* bio, char* data, int size) {
  return finish(bio, ::recv(descriptor_of(bio), data, static_cast<std::size_t>(size), 0),
                [](BIO* b) { BIO_set_retry_read(b); });
}

long bio_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

class TlsConnection final : public Connection {
 public:
  TlsConnection(Descriptor socket, std::shared_ptr<TlsContext> context, Side side)
      : socket_(std::move(socket)), context_(std::move(context)), ssl_(SSL_new(context_->get())) {
    LOCKSTEP_CHECK(ssl_ != nullptr, "OpenSSL cannot make a connection");
    BIO* bio = BIO_new(context_->socket_bio());
    LOCKSTEP_CHECK(bio != nullptr, "OpenSSL cannot make a BIO");
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket_.get())));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (side == Side::dialer) {
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_accept_state(ssl_.get());
    }
  }

  std::ptrdiff_t try_read(Bytes into) override {
    std::size_t total = 0;
    while (total < into.size()) {
      std::size_t got = 0;
      ERR_clear_error();
      const int result = SSL_read_ex(ssl_.get(), into.data() + total, into.size() - total, &got);
      if (result != 1) return total > 0 ? static_cast<std::ptrdiff_t>(total) : outcome(result);
      total += got;
    }
    return static_cast<std::ptrdiff_t>(total);
  }

  std::ptrdiff_t try_write(std::span<const ConstBytes> pieces) override {
    std::size_t total = 0;
    while (true) {
      if (staged_bytes_ == 0) stage(pieces, total);
      if (staged_bytes_ == 0) break;
      std::size_t put = 0;
      ERR_clear_error();
      const int result = SSL_write_ex(ssl_.get(), staged_.data(), staged_bytes_, &put);
      if (result != 1) return total > 0 ? static_cast<std::ptrdiff_t>(total) : outcome(result);
      total += std::exchange(staged_bytes_, 0);
    }
    return static_cast<std::ptrdiff_t>(total);
  }

  Readiness awaits() const override { return awaits_; }
  bool has_buffered() const override { return SSL_pending(ssl_.get()) > 0; }
  int fd() const override { return socket_.get(); }
  std::string close_reason() const override { return reason_; }
  bool protocol_failed() const override { return protocol_failed_; }

 private:
  // Fills the record to be written next with the bytes that follow the first `skip`. A record that could not
  // be written at once is kept as it is: OpenSSL wants the same bytes again.
  void stage(std::span<const ConstBytes> pieces, std::size_t skip) {
    for (const ConstBytes& piece : pieces) {
      const std::size_t skipped = std::min(skip, piece.size());
      skip -= skipped;
      const std::size_t taken = std::min(piece.size() - skipped, staged_.size() - staged_bytes_);
      std::copy_n(piece.begin() + static_cast<std::ptrdiff_t>(skipped), taken,
                  staged_.begin() + static_cast<std::ptrdiff_t>(staged_bytes_));
      staged_bytes_ += taken;
    }
  }

  std::ptrdiff_t outcome(int result) {
    const int saved_errno = errno;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        awaits_ = Readiness::read;
        return kWouldBlock;
      case SSL_ERROR_WANT_WRITE:
        awaits_ = Readiness::write;
        return kWouldBlock;
      case SSL_ERROR_ZERO_RETURN:
        break;
      case SSL_ERROR_SSL:
        if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) break;
        protocol_failed_ = true;
        reason_ = "TLS failed: " + take_openssl_error("unknown reason");
        break;
      default:
        if (saved_errno != 0) reason_ = std::strerror(saved_errno);
    }
    return kClosed;
  }

  Descriptor socket_;
  std::shared_ptr<TlsContext> context_;  // shared by all connections of the process
  SslPointer ssl_;
  std::array<std::byte, SSL3_RT_MAX_PLAIN_LENGTH> staged_;
  std::size_t staged_bytes_ = 0;
  Readiness awaits_ = Readiness::read;
  bool protocol_failed_ = false;
  std::string reason_ = "the other side closed the connection";
};

}  // namespace

BioMethodPointer make_socket_bio_method() {
  BioMethodPointer method(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lockstep socket"));
  LOCKSTEP_CHECK(method != nullptr, "OpenSSL cannot make a BIO method");
  BIO_meth_set_write(method.get(), bio_write);
  BIO_meth_set_read(method.get(), bio_read);
  BIO_meth_set_ctrl(method.get(), bio_control);
  return method;
}

std::unique_ptr<Connection> make_tls_connection(Descriptor socket, std::shared_ptr<TlsContext> context,
                                                Side side) {
  return std::make_unique<TlsConnection>(std::move(socket), std::move(context), side);
}

}  // namespace lockstep::transport
