// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/sentencepiece.h"

namespace lockstep::data {

std::unique_ptr<Tokenizer> sentencepiece_tokenizer(std::string, const std::string& name) {
  throw UsageError("cannot use " + name +
                   ": this build is without sentencepiece; install libsentencepiece-dev and build again");
}

}  // namespace lockstep::data
