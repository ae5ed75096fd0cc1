// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <openssl/bio.h>
#include <openssl/ssl.h>

namespace lockstep::transport {

template <auto Free>
struct OpenSslDeleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using SslContextPointer = std::unique_ptr<SSL_CTX, OpenSslDeleter<SSL_CTX_free>>;
using BioMethodPointer = std::unique_ptr<BIO_METHOD, OpenSslDeleter<BIO_meth_free>>;
using SslPointer = std::unique_ptr<SSL, OpenSslDeleter<SSL_free>>;

// Immutable once built, so that threads may share it.
class TlsContext {
 public:
  TlsContext(SslContextPointer context, BioMethodPointer socket_bio)
      : context_(std::move(context)), socket_bio_(std::move(socket_bio)) {}

  SSL_CTX* get() const { return context_.get(); }
  // Reads and writes a socket without raising SIGPIPE, which OpenSSL's own does.
  const BIO_METHOD* socket_bio() const { return socket_bio_.get(); }

 private:
  SslContextPointer context_;
  BioMethodPointer socket_bio_;
};

// Makes the method above. The data of such a BIO is the descriptor as a pointer-sized integer.
BioMethodPointer make_socket_bio_method();

// The newest reason in OpenSSL's error queue, which it empties; `otherwise` when there is none.
std::string take_openssl_error(std::string_view otherwise);

}  // namespace lockstep::transport
