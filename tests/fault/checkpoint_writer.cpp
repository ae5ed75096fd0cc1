// SPDX-License-Identifier: Apache-2.0
//
// A program that saves a checkpoint as the trainer does, for tests that break it while it works:
//   checkpoint_writer STORE STEP VARIANT ROWS
// Ends with 0 when the checkpoint is committed, and with 1 and the reason on standard error when it is not.
#include <cstdlib>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/failpoint.h"
#include "lockstep/base/log.h"

#include "tests/fault/saved_variant.h"

namespace lockstep::checkpoint {
namespace {

void save(const std::string& folder, std::int64_t step, int variant, std::int64_t rows) {
  CheckpointStore store(folder);
  const auto tensors = testing::variant_tensors(variant, rows);
  const std::string id = fmt::format("test-{}", ::getpid());
  try {
    testing::save(store, real_disk(), tensors, testing::cut_by_rows(rows),
                  testing::manifest_of(tensors, step), id);
  } catch (...) {
    store.abandon(step, id);
    throw;
  }
  try {
    store.remove_leftovers();
    store.collect({.last = 1});
  } catch (const std::exception& error) {
    log::warning(fmt::format("old checkpoints stay: {}", error.what()));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    lockstep::failpoint::arm_from_environment();
    lockstep::checkpoint::save(argv[1], std::atoll(argv[2]), std::atoi(argv[3]), std::atoll(argv[4]));
  } catch (const std::exception& error) {
    lockstep::log::error(error.what());
    return 1;
  }
  return 0;
}
