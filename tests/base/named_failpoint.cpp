// SPDX-License-Identifier: Apache-2.0
//
// Compiles when the table has NAME, and not otherwise.
#include "lockstep/base/failpoint.h"

void pass() {
  LOCKSTEP_FAILPOINT(NAME);
}
