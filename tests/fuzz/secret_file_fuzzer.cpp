// SPDX-License-Identifier: Apache-2.0
//
// A file of a secret: its mode, then its bytes.
#include <algorithm>

#include <sys/stat.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/secret.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto mode = static_cast<mode_t>(input.number<std::uint16_t>() & 0777);
  std::string_view text = input.rest();
  const fuzz::MemoryFile file(text);
  fuzz::require(::chmod(file.path().c_str(), mode) == 0, "its mode can be set");
  transport::Secret secret;
  if (!fuzz::accepts<UsageError>([&] { secret = transport::Secret::from_file(file.path()); })) return 0;
  fuzz::require((mode & (S_IRWXG | S_IRWXO)) == 0, "only its owner can read it");
  if (text.ends_with('\n')) text.remove_suffix(1);
  fuzz::require(std::ranges::equal(secret.bytes(), std::as_bytes(std::span(text))),
                "it is what the file says");
  return 0;
}
