// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/data/sentencepiece/tokenizer.h"

namespace lockstep::data {

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path) {
  throw UsageError(
      "cannot use " + path +
      ": this program was built without sentencepiece; install libsentencepiece-dev and build again");
}

}  // namespace lockstep::data
