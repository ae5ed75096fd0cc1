// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/tls.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/private_file.h"
#include "lockstep/transport/connect/tls_context.h"

namespace lockstep::transport {
namespace {

using BioPointer = std::unique_ptr<BIO, OpenSslDeleter<BIO_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpenSslDeleter<EVP_PKEY_free>>;

constexpr std::size_t kMaxKeyFile = std::size_t{64} * 1024;

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path, std::string_view otherwise) {
  throw UsageError(
      fmt::format("cannot use the TLS {} {}: {}", what, path.string(), take_openssl_error(otherwise)));
}

void use_key(SSL_CTX* context, const std::filesystem::path& path) {
  const std::string text = read_private_file(path, "TLS key", kMaxKeyFile);
  const BioPointer memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  // No pass phrase: a training process has nobody to ask.
  const auto no_pass_phrase = [](char*, int, int, void*) { return 0; };
  const KeyPointer key(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_pass_phrase, nullptr));
  if (key == nullptr) fail("key", path, "it holds no PEM private key without a pass phrase");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) fail("key", path, "it does not fit the certificate");
  if (SSL_CTX_check_private_key(context) != 1) fail("key", path, "it does not fit the certificate");
}

}  // namespace

std::string take_openssl_error(std::string_view otherwise) {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? std::string(otherwise) : reason;
}

std::shared_ptr<TlsContext> load_tls(const TlsFiles& files) {
  ERR_clear_error();
  SslContextPointer context(SSL_CTX_new(TLS_method()));
  LOCKSTEP_CHECK(context != nullptr, "OpenSSL cannot make a context");
  SSL_CTX* raw = context.get();
  LOCKSTEP_CHECK(SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) == 1, "OpenSSL lacks TLS 1.3");
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Connections live as long as the run: nothing would ever be resumed.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_AUTO_RETRY | SSL_MODE_RELEASE_BUFFERS);

  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    fail("certificate", files.certificate, "it holds no PEM certificate");
  }
  use_key(raw, files.key);
  if (SSL_CTX_load_verify_locations(raw, files.authority.c_str(), nullptr) != 1) {
    fail("authority", files.authority, "it holds no PEM certificate");
  }
  return std::make_shared<TlsContext>(std::move(context), make_socket_bio_method());
}

std::shared_ptr<TlsContext> tls_from_environment() {
  const std::array<const char*, 3> values = {std::getenv("LOCKSTEP_TLS_CERT"),
                                             std::getenv("LOCKSTEP_TLS_KEY"), std::getenv("LOCKSTEP_TLS_CA")};
  int given = 0;
  for (const char* value : values) given += value != nullptr ? 1 : 0;
  if (given == 0) return nullptr;
  if (given < 3) {
    throw UsageError("TLS needs LOCKSTEP_TLS_CERT, LOCKSTEP_TLS_KEY and LOCKSTEP_TLS_CA, but only " +
                     std::to_string(given) + " of the three are set: set all or none");
  }
  return load_tls({.certificate = values[0], .key = values[1], .authority = values[2]});
}

}  // namespace lockstep::transport
