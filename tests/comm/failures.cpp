// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/failures.h"

#include <array>
#include <span>

#include "lockstep/base/error.h"

#include "tests/support/ranks.h"
#include "tests/support/worlds.h"

namespace lockstep::test {

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
    return "nothing";
  } catch (const ContractMismatch& error) {
    return std::string("ContractMismatch: ") + error.what();
  } catch (const Timeout& error) {
    return std::string("Timeout: ") + error.what();
  } catch (const PeerLost& error) {
    return std::string("PeerLost: ") + error.what();
  } catch (const Aborted& error) {
    return std::string("Aborted: ") + error.what();
  }
}

Bytes floats(std::size_t count) {
  thread_local std::array<float, 1024> buffer{};
  return std::as_writable_bytes(std::span(buffer).first(count));
}

void OverTransport::run(int world, const std::function<void(comm::Communicator&)>& body,
                        std::chrono::milliseconds timeout) {
  run_ranks(make_world(GetParam(), world), {.name = "dp", .timeout = timeout}, body);
}

std::string name_of_transport(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace lockstep::test
