// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/disk.h"

#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::elastic::simulation {

class MemoryDisk::MemoryFile : public Disk::File {
 public:
  MemoryFile(MemoryDisk& disk, std::shared_ptr<Node> node) : disk_(disk), node_(std::move(node)) {}

  void write(ConstBytes bytes) override {
    const std::size_t written = disk_.is_full_ ? bytes.size() / 2 : bytes.size();
    node_->unsynced.append(reinterpret_cast<const char*>(bytes.data()), written);
    disk_.count_operation();
    if (disk_.is_full_) throw UsageError("the simulated disk is full");
  }
  void sync() override {
    disk_.count_operation();
    node_->synced += std::exchange(node_->unsynced, {});
  }

 private:
  MemoryDisk& disk_;
  std::shared_ptr<Node> node_;
};

void MemoryDisk::count_operation() {
  if (operations_left_ >= 0 && operations_left_-- == 0) throw PowerLoss();
}

void MemoryDisk::change(const Names& names) {
  for (const auto& [name, node] : names) names_[name] = node;
  unsynced_names_.push_back(names);
  count_operation();
}

std::unique_ptr<Disk::File> MemoryDisk::create(const std::string& path) {
  const auto node = std::make_shared<Node>();
  change({{path, node}});
  return std::make_unique<MemoryFile>(*this, node);
}

void MemoryDisk::rename(const std::string& from, const std::string& to) {
  change({{to, names_.at(from)}, {from, nullptr}});
}

void MemoryDisk::sync_folder(const std::string&) {
  count_operation();
  synced_names_ = names_;
  unsynced_names_.clear();
}

void MemoryDisk::remove_all(const std::string& path) {
  change({{path, nullptr}});
}

void MemoryDisk::crash() {
  operations_left_ = -1;
  names_ = synced_names_;
  for (const Names& names : std::exchange(unsynced_names_, {})) {
    if (!random_.happens(0.5)) continue;
    for (const auto& [name, node] : names) names_[name] = node;
  }
  for (const auto& [name, node] : names_) {
    if (node == nullptr) continue;
    node->synced += node->unsynced.substr(0, random_.number() % (node->unsynced.size() + 1));
    node->unsynced.clear();
  }
  synced_names_ = names_;
}

void MemoryDisk::flip_bit(const std::string& path, std::size_t from_end) {
  std::string& bytes = names_.at(path)->synced;
  bytes[bytes.size() - 1 - from_end] ^= static_cast<char>(1 << random_.between(0, 7));
}

std::string MemoryDisk::read(const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() || found->second == nullptr ? ""
                                                           : found->second->synced + found->second->unsynced;
}

}  // namespace lockstep::elastic::simulation
