// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/cli/diagnosis.h"
#include "lockstep/rendezvous/table.h"

namespace lockstep::cli {

// For people: sections with one fact per line, then what is wrong in sentences.
std::string report_text(const Examination& examination, const Diagnosis& diagnosis,
                        const std::optional<rendezvous::PeerTable>& peers);

// The same as one JSON object, pretty-printed: numbers as numbers, null for what is not known yet.
std::string report_json(const Examination& examination, const Diagnosis& diagnosis,
                        const std::optional<rendezvous::PeerTable>& peers);

}  // namespace lockstep::cli
