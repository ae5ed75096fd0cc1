// SPDX-License-Identifier: Apache-2.0
//
// Certificates made on the spot, for tests of TLS.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "lockstep/transport/connect/tls.h"

#include "tests/support/files.h"

namespace lockstep::transport {

// A certificate authority with its own key.
class Authority {
 public:
  explicit Authority(const std::string& name);

  std::filesystem::path write_certificate(const test::TemporaryFolder& where, const std::string& name) const;

  // A key and a certificate signed by this authority, beside the authority's own certificate.
  TlsFiles issue(const test::TemporaryFolder& where, const std::string& name) const;

 private:
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
};

}  // namespace lockstep::transport
