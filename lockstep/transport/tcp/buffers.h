// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::transport::tcp {

// Between processes of one host: gives the connection buffers so large that its two ends seldom have to take
// turns. Other connections are left to the system, which fits their buffers to the delay; so are these when
// the system's limits (net.core.rmem_max, wmem_max) do not allow it.
void widen_loopback_buffers(int fd);

}  // namespace lockstep::transport::tcp
