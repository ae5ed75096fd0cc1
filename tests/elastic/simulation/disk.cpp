// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/disk.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"

#include "tests/support/files.h"

namespace lockstep::elastic::simulation {

using checkpoint::testing::CrashDisk;

class SimulatedDisk::SimulatedFile : public Disk::File {
 public:
  SimulatedFile(SimulatedDisk& disk, std::unique_ptr<File> file) : disk_(disk), file_(std::move(file)) {}

  void write(ConstBytes bytes) override {
    disk_.before_operation();
    if (disk_.is_full_) {
      disk_.tally_.add(Fault::full_disk);
      file_->write(bytes.first(bytes.size() / 2));
      throw UsageError("the simulated disk is full");
    }
    file_->write(bytes);
  }
  void sync() override {
    disk_.before_operation();
    file_->sync();
  }

 private:
  SimulatedDisk& disk_;
  std::unique_ptr<File> file_;
};

SimulatedDisk::SimulatedDisk(const std::string& root, Random& random, Tally& tally)
    : disk_(root, [] {}), random_(random), tally_(tally) {
  std::filesystem::create_directories(root);
}

void SimulatedDisk::before_operation() {
  if (until_down_ >= 0 && until_down_-- == 0) is_down_ = true;
  if (is_down_) throw UsageError("the simulated disk is down");
  if (until_failure_ >= 0 && until_failure_-- == 0) {
    tally_.add(Fault::disk_error);
    throw UsageError("the simulated disk has failed");
  }
}

std::unique_ptr<Disk::File> SimulatedDisk::create(const std::string& path) {
  before_operation();
  return std::make_unique<SimulatedFile>(*this, disk_.create(path));
}

void SimulatedDisk::make_folder(const std::string& path) {
  before_operation();
  disk_.make_folder(path);
}

void SimulatedDisk::rename(const std::string& from, const std::string& to) {
  before_operation();
  disk_.rename(from, to);
}

void SimulatedDisk::sync_folder(const std::string& path) {
  before_operation();
  disk_.sync_folder(path);
}

void SimulatedDisk::remove_all(const std::string& path) {
  before_operation();
  disk_.remove_all(path);
}

void SimulatedDisk::set_slow(bool is_slow) {
  is_slow_ = is_slow;
  if (is_slow) tally_.add(Fault::slow_disk);
}

Time SimulatedDisk::duration(Time time) {
  return is_slow_ ? time * random_.between(2, 8) + random_.milliseconds(10, 1000) : time;
}

void SimulatedDisk::crash() {
  std::vector<CrashDisk::Fate> fates;
  bool has_lost = false;
  for (const bool is_write : disk_.unsynced()) {
    const bool is_torn = is_write && random_.happens(0.3);
    const CrashDisk::Fate fate = random_.happens(0.5) ? CrashDisk::Fate::kept
                                 : is_torn            ? CrashDisk::Fate::torn
                                                      : CrashDisk::Fate::lost;
    has_lost = has_lost || fate != CrashDisk::Fate::kept;
    fates.push_back(fate);
  }
  disk_.crash([&](std::size_t change) { return fates[change]; });
  if (has_lost) tally_.add(Fault::lost_writes);
  revive();
}

void SimulatedDisk::flip_bit(const std::string& path, std::size_t byte) {
  disk_.flip_bit(path, byte, random_.between(0, 7));
  tally_.add(Fault::bit_flip);
}

std::string SimulatedDisk::read(const std::string& path) const {
  return test::read_file(path);
}

}  // namespace lockstep::elastic::simulation
