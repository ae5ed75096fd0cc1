// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/coverage.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace lockstep::checkpoint {
namespace {

// Goes through the elements in ascending order and takes one run after the other. Where a row of runs repeats
// itself, all its repetitions are taken at once.
class Sweep {
 public:
  Sweep(std::vector<Runs> pieces, std::size_t elements, std::uint64_t& patience)
      : pieces_(std::move(pieces)), elements_(elements), patience_(patience) {
    std::sort(pieces_.begin(), pieces_.end(), [](const Runs& a, const Runs& b) { return a.first < b.first; });
  }

  std::optional<std::string> run() {
    for (; patience_ > 0; spend(1)) {
      while (next_ < pieces_.size() && pieces_[next_].first == at_) begin(pieces_[next_++]);
      const bool is_late = next_ < pieces_.size() && pieces_[next_].first < at_;
      if (at_ == elements_ && active_.empty() && !is_late) return std::nullopt;
      if (is_late || (!take_repetitions() && !take_run())) return problem();
    }
    return "has pieces that alternate in too many ways";
  }

 private:
  // A piece that has begun, from its next run on.
  struct Active {
    std::size_t begin;
    std::size_t length;
    std::size_t distance;
    std::size_t runs;

    void take(std::size_t count) {
      begin += count * distance;
      runs -= count;
    }
  };

  void begin(const Runs& piece) {
    // That of one run is of no use, and may be anything.
    const std::size_t distance = piece.count > 1 ? piece.distance : piece.length;
    active_.push_back({piece.first, piece.length, distance, piece.count});
  }

  // The one that has begun last is the likeliest.
  bool take_run() {
    const auto found = std::find_if(active_.rbegin(), active_.rend(),
                                    [&](const Active& active) { return active.begin == at_; });
    spend(static_cast<std::size_t>(found - active_.rbegin()));
    if (found == active_.rend()) return false;
    at_ += found->length;
    found->take(1);
    if (found->runs == 0) remove_finished();
    return true;
  }

  bool take_repetitions() {
    if (active_.empty()) return false;
    const std::size_t distance = active_.front().distance;
    std::size_t times = active_.front().runs;
    if (next_ < pieces_.size()) times = std::min(times, (pieces_[next_].first - at_) / distance);
    if (times == 0 || !tiles(distance)) return false;
    for (const Active& active : active_) times = std::min(times, active.runs);
    for (Active& active : active_) active.take(times);
    at_ += times * distance;
    remove_finished();
    return true;
  }

  // Do the next runs of all pieces follow each other from here to one distance further?
  bool tiles(std::size_t distance) {
    spend(active_.size());
    std::sort(active_.begin(), active_.end(),
              [](const Active& a, const Active& b) { return a.begin < b.begin; });
    std::size_t at = at_;
    for (const Active& active : active_) {
      if (active.distance != distance || active.begin != at) return false;
      at += active.length;
    }
    return at == at_ + distance;
  }

  void remove_finished() {
    spend(active_.size());
    std::erase_if(active_, [](const Active& active) { return active.runs == 0; });
  }

  void spend(std::size_t work) { patience_ -= std::min<std::uint64_t>(work, patience_); }

  std::string problem() const {
    std::size_t nearest = next_ < pieces_.size() ? pieces_[next_].first : elements_;
    for (const Active& active : active_) nearest = std::min(nearest, active.begin);
    return nearest < at_ ? fmt::format("has element {} in two pieces", nearest)
                         : fmt::format("has no piece with element {}", at_);
  }

  std::vector<Runs> pieces_;
  std::size_t elements_;
  std::uint64_t& patience_;
  std::size_t next_ = 0;  // of the pieces that have not begun
  std::vector<Active> active_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::string> find_gap(std::vector<Runs> pieces, std::size_t elements, std::uint64_t& patience) {
  return Sweep(std::move(pieces), elements, patience).run();
}

}  // namespace lockstep::checkpoint
