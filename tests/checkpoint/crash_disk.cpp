// SPDX-License-Identifier: Apache-2.0
#include "tests/checkpoint/crash_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint::testing {
namespace {

constexpr const char* kItself = ".";  // the name of the root in itself

}  // namespace

class CrashDisk::CrashFile : public Disk::File {
 public:
  CrashFile(CrashDisk& disk, std::unique_ptr<File> real, std::shared_ptr<Node> node)
      : disk_(disk), real_(std::move(real)), node_(std::move(node)) {}

  void write(ConstBytes bytes) override {
    real_->write(bytes);
    node_->unsynced.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    disk_.after_operation_();
  }
  void sync() override {
    if (disk_.keeps_file_syncs_) {
      for (const std::string& text : std::exchange(node_->unsynced, {})) node_->synced += text;
    }
    disk_.after_operation_();
  }

 private:
  CrashDisk& disk_;
  std::unique_ptr<File> real_;
  std::shared_ptr<Node> node_;
};

CrashDisk::CrashDisk(std::string root, std::function<void()> after_operation)
    : root_path_(std::move(root)), after_operation_(std::move(after_operation)) {
  if (root_path_.ends_with('/')) root_path_.pop_back();
  add_node(true);
}

std::shared_ptr<CrashDisk::Node> CrashDisk::add_node(bool is_folder) {
  nodes_.push_back(std::make_shared<Node>());
  nodes_.back()->is_folder = is_folder;
  return nodes_.back();
}

CrashDisk::Place CrashDisk::place_of(std::string_view path) {
  LOCKSTEP_CHECK(path.starts_with(root_path_), std::string(path));
  Place place = {nodes_.front().get(), kItself};
  for (std::size_t at = root_path_.size() + 1; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (place.name != kItself) place.folder = place.node().get();
    place.name = path.substr(at, end - at);
    at = end + 1;
  }
  return place;
}

std::shared_ptr<CrashDisk::Node> CrashDisk::Place::node() const {
  if (folder == nullptr) return nullptr;
  const auto found = folder->names.find(name);
  return found == folder->names.end() ? nullptr : found->second;
}

void CrashDisk::change(Node& folder, const Names& names) {
  for (const auto& [name, node] : names) {
    if (node == nullptr) {
      folder.names.erase(name);
    } else {
      folder.names[name] = node;
    }
  }
  folder.unsynced_names.push_back(names);
}

std::unique_ptr<Disk::File> CrashDisk::create(const std::string& path) {
  auto real = real_disk().create(path);
  const Place place = place_of(path);
  const auto node = add_node(false);
  change(*place.folder, {{place.name, node}});
  after_operation_();
  return std::make_unique<CrashFile>(*this, std::move(real), node);
}

void CrashDisk::make_folder(const std::string& path) {
  real_disk().make_folder(path);
  const Place above = place_of(std::filesystem::path(path).parent_path().string());
  if (above.name != kItself && above.node() == nullptr) {
    make_folder(std::filesystem::path(path).parent_path().string());
  }
  const Place place = place_of(path);
  if (place.node() == nullptr) change(*place.folder, {{place.name, add_node(true)}});
  after_operation_();
}

void CrashDisk::rename(const std::string& from, const std::string& to) {
  real_disk().rename(from, to);
  const Place old_place = place_of(from);
  const Place new_place = place_of(to);
  LOCKSTEP_CHECK(old_place.folder == new_place.folder, "a rename from folder to folder is not modelled");
  const auto node = old_place.node();
  change(*old_place.folder, {{old_place.name, nullptr}, {new_place.name, node}});
  after_operation_();
}

void CrashDisk::sync_folder(const std::string& path) {
  const Place place = place_of(path);
  Node* const folder = place.name == kItself ? place.folder : place.node().get();
  if (folder == nullptr) throw UsageError("there is no folder " + path);
  if (keeps_folder_syncs_) {
    folder->synced_names = folder->names;
    folder->unsynced_names.clear();
  }
  after_operation_();
}

void CrashDisk::remove_all(const std::string& path) {
  real_disk().remove_all(path);
  const Place place = place_of(path);
  if (place.node() != nullptr) forget(*place.folder, place.name);
  after_operation_();
}

void CrashDisk::forget(Node& folder, const std::string& name) {
  Node& node = *folder.names.at(name);
  while (!node.names.empty()) forget(node, node.names.begin()->first);
  change(folder, {{name, nullptr}});
}

std::vector<bool> CrashDisk::unsynced() const {
  std::vector<bool> writes;
  for (const auto& node : nodes_) {
    writes.insert(writes.end(), node->unsynced.size(), true);
    writes.insert(writes.end(), node->unsynced_names.size(), false);
  }
  return writes;
}

class CrashDisk::AfterCrash {
 public:
  AfterCrash(const std::vector<std::shared_ptr<Node>>& nodes, const Fates& fates) : fates_(fates) {
    std::size_t number = 0;
    for (const auto& node : nodes) {
      first_number_[node.get()] = number;
      number += node->unsynced.size() + node->unsynced_names.size();
    }
  }

  void add(const Node& node, const std::string& path, Content& content) const {
    if (!node.is_folder) {
      content[path] = text_of(node);
      return;
    }
    if (!path.empty()) content[path + "/"];
    for (const auto& [name, inner] : names_of(node)) {
      if (inner != nullptr) add(*inner, path.empty() ? name : path + "/" + name, content);
    }
  }

 private:
  // A write that is lost before one that is not leaves zeros.
  std::string text_of(const Node& node) const {
    std::string text = node.synced;
    std::string lost;
    for (std::size_t i = 0; i < node.unsynced.size(); ++i) {
      const std::string& write = node.unsynced[i];
      const Fate fate = fates_(first_number_.at(&node) + i);
      const std::size_t kept = fate == Fate::kept ? write.size() : fate == Fate::torn ? write.size() / 2 : 0;
      if (kept > 0) text += std::exchange(lost, {}) + write.substr(0, kept);
      lost += std::string(write.size() - kept, '\0');
    }
    return text;
  }
  Names names_of(const Node& node) const {
    Names names = node.synced_names;
    const std::size_t first = first_number_.at(&node) + node.unsynced.size();
    for (std::size_t i = 0; i < node.unsynced_names.size(); ++i) {
      if (fates_(first + i) == Fate::lost) continue;
      for (const auto& [name, inner] : node.unsynced_names[i]) names[name] = inner;
    }
    return names;
  }

  const Fates& fates_;
  std::map<const Node*, std::size_t> first_number_;
};

CrashDisk::Content CrashDisk::after_crash(const Fates& fates) const {
  Content content;
  AfterCrash(nodes_, fates).add(*nodes_.front(), "", content);
  return content;
}

void CrashDisk::crash(const Fates& fates) {
  const Content content = after_crash(fates);
  std::filesystem::remove_all(root_path_);
  std::filesystem::create_directories(root_path_);
  materialize(content, root_path_);
  nodes_.clear();
  add_node(true);
  for (const auto& [path, text] : content) {
    const bool is_folder = path.ends_with('/');
    const Place place = place_of(root_path_ + "/" + path);
    const auto node = add_node(is_folder);
    node->synced = text;
    place.folder->names[place.name] = node;
    place.folder->synced_names[place.name] = node;
  }
}

void CrashDisk::flip_bit(const std::string& path, std::size_t byte, int bit) {
  const auto node = place_of(path).node();
  LOCKSTEP_CHECK(node != nullptr && byte < node->synced.size(), path);
  node->synced[byte] = static_cast<char>(node->synced[byte] ^ 1 << bit);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(byte));
  file.put(node->synced[byte]);
}

void materialize(const CrashDisk::Content& content, const std::string& root) {
  for (const auto& [path, text] : content) {
    if (path.ends_with('/')) {
      std::filesystem::create_directories(root + "/" + path);
    } else {
      std::ofstream(root + "/" + path, std::ios::binary) << text;
    }
  }
}

}  // namespace lockstep::checkpoint::testing
