// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/elastic/decision_log.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::elastic;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view bytes = input.rest();
  LogContent content;
  if (!fuzz::accepts<DataError>([&] { content = parse_log(bytes, "log"); })) return 0;
  const std::string good = to_bytes(content.records);
  if (!bytes.empty()) fuzz::require(bytes.starts_with(good), "what was read is the begin of the file");
  fuzz::require((content.lost_generations == 0) == (bytes.size() <= good.size()),
                "what was not read is counted");
  fuzz::require(parse_log(good, "log") == LogContent{content.records, 0}, "it goes there and back");
  return 0;
}
