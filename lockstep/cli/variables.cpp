// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/variables.h"

#include <algorithm>

#include <fmt/format.h>

#include "lockstep/base/suggest.h"

namespace lockstep::cli {

std::vector<std::string> known_variables() {
  return {"LOCKSTEP_ADDRESS",
          "LOCKSTEP_BENCH_SOCKET",
          "LOCKSTEP_BENCH_STORE",
          "LOCKSTEP_COORDINATOR",
          "LOCKSTEP_FAILPOINTS",
          "LOCKSTEP_GENERATION",
          "LOCKSTEP_HOST_ID",
          "LOCKSTEP_LINK_MODEL",
          "LOCKSTEP_LOCAL_RANK",
          "LOCKSTEP_LOCAL_WORLD_SIZE",
          "LOCKSTEP_MASTER_ADDR",
          "LOCKSTEP_MASTER_PORT",
          "LOCKSTEP_MEMBER",
          "LOCKSTEP_NODE_RANK",
          "LOCKSTEP_RANK",
          "LOCKSTEP_RENDEZVOUS_SERVER",
          "LOCKSTEP_RENDEZVOUS_TIMEOUT",
          "LOCKSTEP_RUN_ID",
          "LOCKSTEP_SECRET",
          "LOCKSTEP_SECRET_FILE",
          "LOCKSTEP_THREADS",
          "LOCKSTEP_TLS_CA",
          "LOCKSTEP_TLS_CERT",
          "LOCKSTEP_TLS_KEY",
          "LOCKSTEP_WORLD_SIZE"};
}

std::vector<std::string> unread_variables(const rendezvous::Environment& environment) {
  const std::vector<std::string> known = known_variables();
  std::vector<std::string> sentences;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with("LOCKSTEP_") || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    const std::string meant = closest(name, known);
    sentences.push_back(fmt::format("{} is set, but nothing reads it{}", printable_name(name),
                                    meant.empty() ? "" : fmt::format(": did you mean '{}'?", meant)));
  }
  return sentences;
}

}  // namespace lockstep::cli
