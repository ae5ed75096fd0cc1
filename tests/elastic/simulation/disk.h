// SPDX-License-Identifier: Apache-2.0
//
// A disk in memory that survives the processes that write to it, except for what they had not synced. It can
// be full, and the machine can go down in the middle of what it does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/disk.h"

#include "tests/elastic/simulation/random.h"

namespace lockstep::elastic::simulation {

// The machine has gone down.
struct PowerLoss {};

class MemoryDisk : public Disk {
 public:
  explicit MemoryDisk(Random& random) : random_(random) {}

  std::unique_ptr<File> create(const std::string& path) override;
  void make_folder(const std::string&) override {}
  void rename(const std::string& from, const std::string& to) override;
  void sync_folder(const std::string& path) override;
  void remove_all(const std::string& path) override;

  void set_full(bool is_full) { is_full_ = is_full; }
  // One of the operations to come, when it is counted down to, is the last.
  void lose_power_after(int operations) { operations_left_ = operations; }
  // Each change that was not synced is there or not, a write also in part.
  void crash();
  void flip_bit(const std::string& path, std::size_t from_end);
  std::string read(const std::string& path) const;  // empty: it is not there

 private:
  struct Node {
    std::string synced;
    std::string unsynced;  // behind it
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;  // null: removed
  class MemoryFile;

  void count_operation();
  void change(const Names& names);

  Random& random_;
  Names names_;
  Names synced_names_;
  std::vector<Names> unsynced_names_;
  bool is_full_ = false;
  int operations_left_ = -1;
};

}  // namespace lockstep::elastic::simulation
