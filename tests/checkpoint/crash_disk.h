// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/disk.h"

namespace lockstep::checkpoint::testing {

// A disk that does what it is asked and remembers which of it a crash could undo. What was written to a file
// since its last sync, and what was done to the names in a folder since its last sync, may be there after a
// crash or not, each change for itself, and a write may be there in part. The sync of a file does not keep
// its name. A rename inside a folder is one change.
class CrashDisk : public Disk {
 public:
  enum class Fate { kept, torn, lost };
  // The fate of a change, by its number among those that a crash could undo now. Only writes can be torn.
  using Fates = std::function<Fate(std::size_t)>;
  using Content = std::map<std::string, std::string>;  // files by path, and "path/" for folders

  // All paths are beneath `root`, which is there. Calls `after_operation` after each.
  CrashDisk(std::string root, std::function<void()> after_operation);

  std::unique_ptr<File> create(const std::string& path) override;
  void make_folder(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_folder(const std::string& path) override;
  void remove_all(const std::string& path) override;

  // What does not happen on this disk: a test of the test.
  void forget_file_syncs() { keeps_file_syncs_ = false; }
  void forget_folder_syncs() { keeps_folder_syncs_ = false; }

  // Those that a crash could undo now, and which of them are writes.
  std::vector<bool> unsynced() const;
  // What is beneath the root after a crash at this moment.
  Content after_crash(const Fates& fates) const;
  // The crash happens: that is what is there now, and all of it is on the disk.
  void crash(const Fates& fates);
  // What is on the disk of a file changes by itself.
  void flip_bit(const std::string& path, std::size_t byte, int bit);

 private:
  struct Node;
  using Names = std::map<std::string, std::shared_ptr<Node>>;  // those of gone ones are null
  struct Node {
    bool is_folder = false;
    std::string synced;                 // of a file
    std::vector<std::string> unsynced;  // writes behind it
    Names names;                        // of a folder, as the program sees them
    Names synced_names;
    std::vector<Names> unsynced_names;  // changes of one or two names
  };
  class CrashFile;
  class AfterCrash;
  struct Place {
    Node* folder;  // null: there is none
    std::string name;

    std::shared_ptr<Node> node() const;  // null: there is none
  };

  Place place_of(std::string_view path);
  void change(Node& folder, const Names& names);
  void forget(Node& folder, const std::string& name);
  std::shared_ptr<Node> add_node(bool is_folder);

  std::string root_path_;
  std::function<void()> after_operation_;
  std::vector<std::shared_ptr<Node>> nodes_;  // all that ever were, the root first
  bool keeps_file_syncs_ = true;
  bool keeps_folder_syncs_ = true;
};

// Puts it beneath a folder.
void materialize(const CrashDisk::Content& content, const std::string& root);

}  // namespace lockstep::checkpoint::testing
