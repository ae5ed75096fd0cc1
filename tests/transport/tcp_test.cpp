// SPDX-License-Identifier: Apache-2.0
//
// TCP between threads of this process, over 127.0.0.1.
#include <chrono>
#include <exception>
#include <thread>

#include <gtest/gtest.h>

#include "lockstep/transport/tcp/endpoint.h"

#include "tests/support/files.h"
#include "tests/transport/certificates.h"
#include "tests/transport/conformance.h"
#include "tests/transport/tcp_world.h"

namespace lockstep::transport {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Tcp, Conformance,
    testing::Values(TransportUnderTest{"OneStream", [](int world) { return make_tcp_world(world, 1); }},
                    TransportUnderTest{"ThreeStreams", [](int world) { return make_tcp_world(world, 3); }},
                    TransportUnderTest{"Tls",
                                       [](int world) {
                                         const test::TemporaryFolder scratch;
                                         const Authority authority("test");
                                         return make_tcp_world(world, 2,
                                                               load_tls(authority.issue(scratch, "rank")));
                                       }}),
    transport_name);

}  // namespace
}  // namespace lockstep::transport
