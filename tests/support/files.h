// SPDX-License-Identifier: Apache-2.0
//
// Files that tests write and read.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <sys/stat.h>

namespace lockstep::test {

// All bytes of a file; none when it cannot be read.
inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of what is in a folder, in no order.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    found.push_back(entry.path().filename().string());
  }
  return found;
}

inline constexpr const char* kTemporaryPrefix = "lockstep-test-";

// What is left in the file system of shared memory, sorted; not the folders of tests that work there.
inline std::vector<std::string> shared_memory_names() {
  std::vector<std::string> names = names_in("/dev/shm");
  std::erase_if(names, [](const std::string& name) { return name.starts_with(kTemporaryPrefix); });
  std::sort(names.begin(), names.end());
  return names;
}

// A new folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / (std::string(kTemporaryPrefix) + "XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

  // Writes a file, with the folders it is in, and gives its path.
  std::string write(const std::string& name, const std::string& content, mode_t mode = 0600) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
    ::chmod(path(name).c_str(), mode);
    return path(name);
  }
  std::string read(const std::string& name) const { return read_file(path(name)); }

  std::vector<std::string> names() const { return names_in(path_); }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::test
