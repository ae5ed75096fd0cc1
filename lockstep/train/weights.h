// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/train/held_memory.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/optimizer_state.h"
#include "lockstep/train/share_update.h"
#include "lockstep/train/update_journal.h"

namespace lockstep::train {

// The parameters that a rank holds in the dtype that blocks compute with, and of those that it updates the
// values in fp32 and what the optimizer remembers. When weights are shared out, those that blocks compute
// with are there between use() and drop().
class Weights {
 public:
  struct Options {
    DType dtype = DType::fp32;
    int moments = 2;                  // floats per parameter that the optimizer remembers: AdamW 2, SGD 1
    std::string offload_folder = {};  // on whose disk that is; empty: in memory
    // What this rank updates, in memory, is to be registered, and a journal kept of it.
    bool has_journal = false;
  };
  // All ranks make theirs together; values come later. UsageError as OptimizerState. Everything referred to
  // must outlive this.
  Weights(const Holding& holding, BufferPool& pool, const Options& options);
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  // As StageMail: cancels fetches that are under way.
  ~Weights();

  DType dtype() const { return dtype_; }
  // What blocks compute with.
  at::Tensor view(const model::Place& place) const { return working_.view(place); }
  Bytes working(Range elements) const { return working_.bytes(elements); }

  // All ranks together: random values, which depend on nothing but this number and the parameter.
  void give_first_values(std::uint64_t seed);
  // Gives elements `first` .. of a parameter their values.
  void assign(std::size_t parameter, std::size_t first, std::span<const float> values);
  // The same of what the optimizer remembers; only elements that this rank updates.
  void assign_moment(int index, std::size_t parameter, std::size_t first, std::span<const float> values);

  int moments() const { return moments_; }
  bool is_on_disk() const { return state_->is_on_disk(); }  // what the optimizer remembers
  // The state has several quantities of each element: the value in fp32, and what the optimizer remembers.
  int quantities() const { return 1 + moments_; }
  // Copies elements of this rank's share of a bucket, counted from its begin.
  void copy_quantity(int quantity, std::size_t bucket, Range elements, std::span<float> to) const;

  // This bucket will be updated soon.
  void read_ahead(std::size_t bucket) { state_->read_ahead(bucket); }
  // One step of the optimizer for this rank's share of a bucket; `gradients` are those of the share, to be
  // multiplied by `gradient_scale`.
  void update(const OptimizerStep& how, std::size_t bucket, std::span<const float> gradients,
              float gradient_scale);

  // What this rank updates of a bucket: the weights that blocks compute with, what these lack of the values
  // in fp32, if anything, and what the optimizer remembers. In memory.
  ShareArrays arrays(std::size_t bucket) const;
  // Null: there is none.
  UpdateJournal* journal() const { return journal_.get(); }
  // What these are now counts as no update.
  void begin_journal() const;
  // Whether all of them are as the journal says; true when there is none. Each bucket that was looked at is
  // told to `activity`, if there is one.
  bool are_intact(elastic::Activity* activity = nullptr) const;

  // Weights that every rank has, and that each has updated its share of: starts getting the others'.
  comm::Work gather(std::size_t bucket) const;

  // Weights that are shared out: starts getting those of a bucket, waits for them, lets them go. All ranks
  // that share them fetch in the same order.
  void fetch(std::size_t bucket);
  void use(std::size_t bucket);
  void drop(std::size_t bucket);

  // All ranks call these together: all parameters of the model in the layout of the whole, as blocks compute
  // with them and in fp32. Ranks that do not want them get none.
  at::Tensor gather_working(bool wanted = true) const;
  at::Tensor gather_master() const;

 private:
  void copy_master(std::size_t bucket, Range elements, std::span<float> to) const;
  void copy_moment(int index, std::size_t bucket, Range elements, std::span<float> to) const;
  std::vector<std::size_t> array_widths() const;
  ShareArrays arrays_of(std::size_t bucket, const StatePart& state) const;
  // The weights of this rank's share of a bucket, wherever they are kept.
  Bytes own_working(std::size_t bucket) const;
  void assign_share(std::size_t bucket, const StatePart& state, Range elements,
                    std::span<const float> values) const;

  const Holding& holding_;
  const model::FlatLayout& layout_;  // of the holding, as the partition
  const Partition& partition_;
  DType dtype_;
  int moments_;
  std::vector<std::size_t> share_begins_;  // by bucket, in tensors of shares
  HeldMemory working_;
  std::optional<comm::Buffer> working_shares_;  // when weights are shared out: what they are fetched from
  std::unique_ptr<OptimizerState> state_;
  std::unique_ptr<UpdateJournal> journal_;
  std::vector<comm::Work> fetched_;  // by bucket
};

}  // namespace lockstep::train
