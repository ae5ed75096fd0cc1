// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shared_counter.h"

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/transport/shm/segment.h"

namespace lockstep::test {
namespace {

// Rank 0 makes the file, which has no name; the others open it where the system shows it.
transport::Descriptor open_shared_file(const comm::Communicator& world) {
  transport::Descriptor file;
  std::array<std::int64_t, 2> where = {};
  if (world.rank() == 0) {
    file = transport::make_segment(1, transport::Reserve::when_touched);
    where = {::getpid(), file.get()};
  }
  world.broadcast(std::as_writable_bytes(std::span(where)), {.dtype = DType::int64, .root = 0});
  if (world.rank() == 0) return file;
  const std::string path = fmt::format("/proc/{}/fd/{}", where[0], where[1]);
  file = transport::Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  return file;
}

}  // namespace

SharedCounter::SharedCounter(const comm::Communicator& world)
    : file_(open_shared_file(world)),
      memory_(transport::Mapping::of_file(file_.get(), 0, transport::whole_pages(1),
                                          transport::Mapping::Access::write)) {}

}  // namespace lockstep::test
