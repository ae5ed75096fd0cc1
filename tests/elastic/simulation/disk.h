// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tests/checkpoint/crash_disk.h"
#include "tests/elastic/simulation/process.h"
#include "tests/elastic/simulation/random.h"
#include "tests/elastic/simulation/tally.h"

namespace lockstep::elastic::simulation {

// A disk that survives the processes that write to it, except for what they had not synced. It can be full
// and slow, operations can fail, and it can go down in the middle of what a process does: then every
// operation fails until crash() says what is left.
class SimulatedDisk : public Disk {
 public:
  // All paths are beneath `root`, which is made.
  SimulatedDisk(const std::string& root, Random& random, Tally& tally);

  std::unique_ptr<File> create(const std::string& path) override;
  void make_folder(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_folder(const std::string& path) override;
  void remove_all(const std::string& path) override;

  void set_full(bool is_full) { is_full_ = is_full; }
  void set_slow(bool is_slow);
  // How long work on it takes that takes `time` on a good day.
  Time duration(Time time);
  // So many operations succeed, and the next one fails, or is the last.
  void fail_after(int operations) { until_failure_ = operations; }
  void go_down_after(int operations) { until_down_ = operations; }
  bool is_down() const { return is_down_; }

  // It is up again. Each change that was not synced is there or not, a write also in part.
  void crash();
  // It is up again, and only who has worked on it has ended.
  void revive() { is_down_ = false; }
  void flip_bit(const std::string& path, std::size_t byte);
  std::string read(const std::string& path) const;  // empty: it is not there

  // A disk that does not do what it promises: a test of the test.
  void forget_file_syncs() { disk_.forget_file_syncs(); }

 private:
  class SimulatedFile;
  void before_operation();

  checkpoint::testing::CrashDisk disk_;
  Random& random_;
  Tally& tally_;
  bool is_full_ = false;
  bool is_slow_ = false;
  bool is_down_ = false;
  int until_failure_ = -1;
  int until_down_ = -1;
};

}  // namespace lockstep::elastic::simulation
