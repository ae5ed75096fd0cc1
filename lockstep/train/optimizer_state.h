// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/async_file.h"
#include "lockstep/train/buffer_pool.h"
#include "lockstep/train/partition.h"

namespace lockstep::train {

// What is kept of this rank's share of a bucket beside its weights.
struct StatePart {
  std::vector<std::span<float>> moments;  // what the optimizer remembers
  std::span<std::uint16_t> lower;         // in bf16: the lower halves of the values in fp32 (kernels/split.h)
  std::span<float> master;                // in fp16: the values in fp32
};

// The state of all buckets, zeros at first: in memory, or on disk, from where it is read ahead of its use and
// to where it is written behind it.
class OptimizerState {
 public:
  struct Options {
    DType dtype = DType::fp32;
    int moments = 2;
    std::string folder = {};           // on whose disk it is; empty: in memory
    BufferPool* registered = nullptr;  // in memory, that of this pool; null: of this process alone
  };
  // UsageError when there is no such folder, or no room on its disk. The partition must outlive this.
  OptimizerState(const Partition& partition, const Options& options);
  OptimizerState(const OptimizerState&) = delete;
  OptimizerState& operator=(const OptimizerState&) = delete;
  ~OptimizerState();

  bool is_on_disk() const { return file_.has_value(); }

  // It will be opened soon.
  void read_ahead(std::size_t bucket);
  // Until it is closed; every bucket is opened once at a time. DataError when the disk has failed.
  StatePart open(std::size_t bucket);
  void close(std::size_t bucket);

 private:
  // Of a bucket, on disk or not.
  struct Place {
    std::size_t elements = 0;
    std::uint64_t offset = 0;                         // in the file, or in registered memory
    std::vector<std::byte> memory = {};               // empty: only on disk, or registered
    std::optional<AsyncFile::Ticket> under_way = {};  // reading or writing
    bool is_open = false;
  };
  std::size_t bytes_of(const Place& place) const { return place.elements * bytes_per_element_; }
  void fetch(Place& place);
  void settle(Place& place);
  std::vector<std::byte> take_memory(std::size_t bytes);

  std::size_t moments_;
  std::size_t master_bytes_;  // of an element: 0, 2 or 4
  std::size_t bytes_per_element_;
  std::vector<Place> places_;       // by bucket
  std::deque<std::size_t> closed_;  // buckets that are in memory without need, oldest first
  std::optional<AsyncFile> file_;
  comm::Buffer registered_;  // of all buckets
};

// An open bucket, for as long as it lives.
class OpenState {
 public:
  OpenState(OptimizerState& state, std::size_t bucket)
      : state_(state), bucket_(bucket), part_(state.open(bucket)) {}
  OpenState(const OpenState&) = delete;
  OpenState& operator=(const OpenState&) = delete;
  ~OpenState() { state_.close(bucket_); }

  const StatePart& part() const { return part_; }

 private:
  OptimizerState& state_;
  std::size_t bucket_;
  StatePart part_;
};

}  // namespace lockstep::train
