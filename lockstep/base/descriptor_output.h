// SPDX-License-Identifier: Apache-2.0
//
// What all that writes files through descriptors does in the same way.
#pragma once

#include <string>

#include "lockstep/base/bytes.h"

namespace lockstep {

// UsageError "cannot write PATH: REASON", the reason being errno's.
[[noreturn]] void cannot_write(const std::string& path);

// All of it, however often the kernel takes only a part or a signal comes. UsageError naming `path`.
void write_all(int fd, ConstBytes bytes, const std::string& path);

// Returns when the bytes of the file are on the disk. UsageError naming `path`.
void sync_data(int fd, const std::string& path);

}  // namespace lockstep
