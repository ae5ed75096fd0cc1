// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/data/tokenizer/tokenizer.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// The one that the run names, or that `lockstep prepare` has left beside a corpus of it; null when there is
// none. Errors are those of load_tokenizer().
std::unique_ptr<data::Tokenizer> tokenizer_of(const spec::Data& data);

}  // namespace lockstep::train
