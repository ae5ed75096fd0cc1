// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/version.h"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <openssl/crypto.h>

#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/transport/mpi/endpoint.h"

namespace lockstep::cli {

std::string simd_target() {
  // The lowest bit is the best target.
  const std::int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);
}

std::string version_text() {
  return fmt::format(
      "lockstep {}\ntransports: loopback shm tcp{}\nsimd: {}\ncompiler: {}\nlibraries: {}, Highway {}.{}.{}",
      rendezvous::version(), transport::mpi_available() ? " mpi" : "", simd_target(), __VERSION__,
      ::OpenSSL_version(OPENSSL_VERSION), HWY_MAJOR, HWY_MINOR, HWY_PATCH);
}

}  // namespace lockstep::cli
