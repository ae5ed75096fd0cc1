// SPDX-License-Identifier: Apache-2.0
//
// The few things that a protocol of files asks of a disk, so that tests can put a disk in its place that
// fails, fills up, or forgets what was not synced.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/bytes.h"

namespace lockstep {

// UsageError naming path and reason when something cannot be done, a full disk included.
class Disk {
 public:
  class File {
   public:
    virtual ~File() = default;
    virtual void write(ConstBytes bytes) = 0;  // behind what was written before; may wait for that
    virtual void sync() = 0;                   // returns when the bytes are on the disk
  };

  virtual ~Disk() = default;
  virtual std::unique_ptr<File> create(const std::string& path) = 0;  // replaces what is there
  virtual void make_folder(const std::string& path) = 0;              // and those above it; it may be there
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void sync_folder(const std::string& path) = 0;  // the names in it are on the disk
  virtual void remove_all(const std::string& path) = 0;   // a file or a folder; it need not be there
};

// That of the host. A sync of its files waits for the last 48 MiB at most: writes have waited for the others.
Disk& real_disk();

// Creates, writes and syncs a file.
void write_synced(Disk& disk, const std::string& path, std::string_view content);
// Replaces `path` in one step, durably.
void replace_file(Disk& disk, const std::string& path, std::string_view content);

}  // namespace lockstep
