// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/compose.h"

#include <cstdlib>
#include <memory>

#include <utf8proc.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

std::string compose(std::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
      &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(composed, &std::free);
  if (size < 0) throw DataError(std::string("cannot normalize the text: ") + utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(composed), static_cast<std::size_t>(size)};
}

}  // namespace lockstep::data
