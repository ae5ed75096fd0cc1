// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/coverage.h"
#include "lockstep/checkpoint/store/manifest.h"

namespace lockstep::checkpoint {
namespace {

// So that four times as many bytes, and sums of a few such numbers, are far from the end of 64 bits.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 60;

class Checker {
 public:
  explicit Checker(const std::string& name) : name_(name) {}

  void check(const Progress& progress) const {
    at_least(progress.step, 0, "progress.step");
    at_least(progress.bad_steps, 0, "progress.bad_steps");
    at_least(progress.bad_in_a_row, 0, "progress.bad_in_a_row");
    at_least(progress.good_steps, 0, "progress.good_steps");
    positive(progress.loss_scale, "progress.loss_scale");
  }

  void check(const LastStep& step) const {
    // Of a step that was skipped the norm may be no number.
    if (step.gradient_norm < 0) refuse("last_step.gradient_norm is below 0");
    not_negative(step.learning_rate, "last_step.learning_rate");
    positive(step.loss_scale, "last_step.loss_scale");
    not_negative(step.seconds, "last_step.seconds");
    if (step.updated != 0 && step.updated != 1) {
      refuse(fmt::format("last_step.updated is {}, and must be 0 or 1", step.updated));
    }
  }

  void check(const LogicalTensor& tensor) const {
    if (tensor.name.empty()) refuse("a tensor has no name");
    std::uint64_t product = 1;
    for (const std::int64_t size : tensor.shape) {
      // A zero among the sizes must not hide those that do not fit.
      const bool fits = size >= 0 && static_cast<std::uint64_t>(size) <= kMostElements &&
                        !__builtin_mul_overflow(
                            product, static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1)), &product) &&
                        product <= kMostElements;
      if (!fits) refuse(fmt::format("tensor '{}' has a size below 0 or too many elements", tensor.name));
    }
  }

  void check(const ShardFile& file) const {
    if (!is_plain_file_name(file.name)) {
      refuse(fmt::format("'{}' is no name of a safetensors file beside the manifest", file.name));
    }
    std::set<std::string_view> names;
    std::uint64_t data_bytes = 0;
    for (const Piece& piece : file.pieces) {
      check(file, piece);
      if (!names.insert(piece.in_file).second) {
        refuse(fmt::format("{} has '{}' twice", file.name, piece.in_file));
      }
      const std::uint64_t bytes = sizeof(float) * piece.elements.size();
      if (__builtin_add_overflow(data_bytes, bytes, &data_bytes) || data_bytes > file.bytes) {
        refuse(fmt::format("the pieces of {} are larger than its {} bytes", file.name, file.bytes));
      }
    }
  }

  void check(const Manifest& manifest) const {
    check(manifest.progress);
    if (manifest.last_step) {
      if (manifest.progress.step == 0) refuse("it has last_step, but progress.step is 0");
      check(*manifest.last_step);
    }
    at_least(manifest.lanes, 1, "lanes");
    at_least(manifest.tensor_lanes, 1, "tensor_lanes");
    std::map<std::string_view, std::vector<Runs>> pieces;
    for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
      const LogicalTensor& tensor = manifest.tensors[i];
      check(tensor);
      if (i > 0 && manifest.tensors[i - 1].name >= tensor.name) {
        refuse(fmt::format("tensor '{}' comes twice or not in the order of names", tensor.name));
      }
      pieces[tensor.name];
    }
    std::set<std::string_view> files;
    for (const ShardFile& file : manifest.files) {
      check(file);
      if (!files.insert(file.name).second) refuse(fmt::format("{} comes twice", file.name));
      for (const Piece& piece : file.pieces) {
        const auto found = pieces.find(piece.tensor);
        if (found == pieces.end()) {
          refuse(fmt::format("{} has a piece of '{}', which is no tensor of it", file.name, piece.tensor));
        }
        found->second.push_back(piece.elements);
      }
    }
    std::uint64_t patience = kMostPatience;
    for (const LogicalTensor& tensor : manifest.tensors) {
      check_pieces(tensor, pieces[tensor.name], patience);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(fmt::format("{}: {}", name_, why));
  }

  void at_least(std::int64_t value, std::int64_t least, std::string_view key) const {
    if (value < least) refuse(fmt::format("{} is {}, and must be at least {}", key, value, least));
  }

  void positive(double value, std::string_view key) const {
    if (!std::isfinite(value) || value <= 0) refuse(fmt::format("{} is not a positive number", key));
  }

  void not_negative(double value, std::string_view key) const {
    if (!std::isfinite(value) || value < 0) refuse(fmt::format("{} is not a number of at least 0", key));
  }

  // One behind its last element; none when it is empty, overlaps itself or does not fit.
  static std::optional<std::uint64_t> end_of(const Runs& runs) {
    if (runs.length == 0 || runs.count == 0) return std::nullopt;
    if (runs.count == 1) return end_of(runs.first, 0, runs.length);
    if (runs.distance < runs.length) return std::nullopt;
    std::uint64_t way = 0;
    if (__builtin_mul_overflow(runs.distance, runs.count - 1, &way)) return std::nullopt;
    return end_of(runs.first, way, runs.length);
  }
  static std::optional<std::uint64_t> end_of(std::uint64_t first, std::uint64_t way, std::uint64_t length) {
    std::uint64_t end = 0;
    const bool fits = !__builtin_add_overflow(first, way, &end) && !__builtin_add_overflow(end, length, &end);
    return fits && end <= kMostElements ? std::optional(end) : std::nullopt;
  }

  void check(const ShardFile& file, const Piece& piece) const {
    if (piece.tensor.empty() || piece.in_file.empty())
      refuse(fmt::format("{} has a piece without a name", file.name));
    if (!end_of(piece.elements)) {
      refuse(fmt::format("{} has a piece of '{}' that is empty, overlaps itself or is too large", file.name,
                         piece.tensor));
    }
  }

  void check_pieces(const LogicalTensor& tensor, const std::vector<Runs>& pieces,
                    std::uint64_t& patience) const {
    const std::size_t elements = tensor.elements();
    for (const Runs& runs : pieces) {
      if (*end_of(runs) > elements) {
        refuse(fmt::format("a piece of '{}' ends with element {}, but the tensor has {}", tensor.name,
                           *end_of(runs) - 1, elements));
      }
    }
    if (const auto gap = find_gap(pieces, elements, patience))
      refuse(fmt::format("tensor '{}' {}", tensor.name, *gap));
  }

  const std::string& name_;
};

}  // namespace

bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return name.size() <= 255 && name.ends_with(".safetensors") && !name.starts_with('.') &&
         name.find_first_not_of(kAllowed) == name.npos && name.find("..") == name.npos;
}

void require_sound(const ShardFile& file, const std::string& name) {
  Checker(name).check(file);
}

void require_complete(const Manifest& manifest, const std::string& name) {
  Checker(name).check(manifest);
}

}  // namespace lockstep::checkpoint
