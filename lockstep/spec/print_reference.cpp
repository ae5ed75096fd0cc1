// SPDX-License-Identifier: Apache-2.0
//
// configuration_reference > docs/configuration.md
#include <iostream>

#include "lockstep/spec/write.h"

int main() {
  std::cout << lockstep::spec::configuration_reference();
}
