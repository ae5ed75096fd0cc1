// SPDX-License-Identifier: Apache-2.0
//
// The names of things that users type.
#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/connect.h"
#include "lockstep/schedule/collective/collective.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

namespace {

template <typename Parse>
void require_named(Parse parse, std::string_view text) {
  fuzz::accepts<UsageError>(
      [&] { fuzz::require(name_of(parse(text)) == text, "what is accepted is the name itself"); });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  require_named(parse_dtype, text);
  require_named(schedule::parse_op, text);
  require_named(schedule::parse_algorithm, text);
  require_named(comm::parse_carrier, text);
  return 0;
}
