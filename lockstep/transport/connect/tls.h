// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

namespace lockstep::transport {

// Certificates for TLS 1.3 with mutual verification; files in PEM.
struct TlsFiles {
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path authority;  // both sides must be signed by it
};

class TlsContext;  // an OpenSSL context, shared by all connections of a process

// UsageError naming the file that is missing or unusable, or a key readable by others.
std::shared_ptr<TlsContext> load_tls(const TlsFiles& files);

// LOCKSTEP_TLS_CERT, LOCKSTEP_TLS_KEY, LOCKSTEP_TLS_CA: all three or none (then null); UsageError otherwise.
std::shared_ptr<TlsContext> tls_from_environment();

}  // namespace lockstep::transport
