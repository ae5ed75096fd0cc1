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
  for (const Record& record : content.records) {
    fuzz::require(record.generation <= content.last_generation || &record != &content.records.back(),
                  "no number of the log is used again");
  }
  if (!content.is_cut && !bytes.empty()) {
    fuzz::require(to_bytes(content.records, content.run) == bytes, "a whole log keeps its bytes");
  }
  return 0;
}
