// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lockstep/transport/connect/listener.h"

namespace lockstep::test {

struct CredentialOptions {
  std::string secret = "0123456789abcdef";  // empty: none
  std::shared_ptr<transport::TlsContext> tls = nullptr;
};

// Those of a rank in the one run that the tests of connections have.
inline transport::Credentials credentials(Rank rank, CredentialOptions options = {}) {
  return {
      .me = {.role = "tcp", .rank = rank, .run = "test-run", .generation = 1},
      .secret = options.secret.empty() ? transport::Secret() : transport::Secret::from_value(options.secret),
      .tls = std::move(options.tls)};
}

}  // namespace lockstep::test
