// SPDX-License-Identifier: Apache-2.0
//
// Disks that do most of what they are asked.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lockstep/base/disk.h"
#include "lockstep/base/error.h"

namespace lockstep::checkpoint::testing {

// The host's, without waiting for it: nothing survives a crash of the host, which no test makes.
class HastyDisk : public Disk {
 public:
  std::unique_ptr<File> create(const std::string& path) override {
    return std::make_unique<HastyFile>(*this, path);
  }
  void make_folder(const std::string& path) override { real_disk().make_folder(path); }
  void rename(const std::string& from, const std::string& to) override { real_disk().rename(from, to); }
  void sync_folder(const std::string&) override {}
  void remove_all(const std::string& path) override { real_disk().remove_all(path); }

 protected:
  virtual void write(File& file, ConstBytes bytes) { file.write(bytes); }
  virtual void sync_file() {}

 private:
  class HastyFile : public File {
   public:
    HastyFile(HastyDisk& disk, const std::string& path) : disk_(disk), file_(real_disk().create(path)) {}
    void write(ConstBytes bytes) override { disk_.write(*file_, bytes); }
    void sync() override { disk_.sync_file(); }

   private:
    HastyDisk& disk_;
    std::unique_ptr<File> file_;
  };
};

// Keeps something else than it was given.
class LyingDisk : public HastyDisk {
 protected:
  void write(File& file, ConstBytes bytes) override {
    std::vector<std::byte> changed(bytes.begin(), bytes.end());
    changed.back() ^= std::byte{4};
    file.write(changed);
  }
};

// Fails at one operation, counted from 1, or from that one on. Half of what cannot be written is.
class FailingDisk : public HastyDisk {
 public:
  FailingDisk(int first_failure, bool stays_broken)
      : first_failure_(first_failure), stays_broken_(stays_broken) {}

  int operations() const { return operations_; }
  bool has_failed() const { return operations_ >= first_failure_; }

  std::unique_ptr<File> create(const std::string& path) override {
    count("create");
    return HastyDisk::create(path);
  }
  void make_folder(const std::string& path) override {
    count("make_folder");
    HastyDisk::make_folder(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    count("rename");
    HastyDisk::rename(from, to);
  }
  void sync_folder(const std::string&) override { count("sync_folder"); }
  void remove_all(const std::string& path) override {
    count("remove_all");
    HastyDisk::remove_all(path);
  }

 protected:
  void write(File& file, ConstBytes bytes) override {
    if (fails_next()) file.write(bytes.first(bytes.size() / 2));
    count("write");
    file.write(bytes);
  }
  void sync_file() override { count("sync"); }

 private:
  bool fails_next() const {
    return stays_broken_ ? operations_ + 1 >= first_failure_ : operations_ + 1 == first_failure_;
  }
  void count(const char* operation) {
    const bool fails = fails_next();
    ++operations_;
    if (fails) throw UsageError(std::string("this disk fails at ") + operation);
  }

  int first_failure_;
  bool stays_broken_;
  int operations_ = 0;
};

}  // namespace lockstep::checkpoint::testing
