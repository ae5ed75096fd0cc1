// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/generations.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/connect.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/replicas.h"
#include "lockstep/train/resume.h"

namespace lockstep::train {
namespace {

// So often a worker whose state was wrong gets a good one. Then its memory may be broken: another process
// gets other memory.
constexpr int kForgiven = 1;

class Generations {
 public:
  Generations(const spec::RunSpec& run, elastic::Membership& membership,
              const rendezvous::Placement& placement, const Equip& equip, const std::function<void()>& leave)
      : run_(run), membership_(membership), placement_(placement), equip_(equip), leave_(leave) {}
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;
  ~Generations() { membership_.on_abandon(nullptr); }

  RunSummary train() {
    for (;;) {
      leave_();
      if (!beginning_) beginning_.emplace(&membership_.activity());
      const elastic::Place place = membership_.take_place(held(), reason_);
      settle(place);
      try {
        const RunSummary summary = train_with(place);
        if (!summary.regroups) {
          membership_.leave();
          return summary;
        }
        reason_ = "others join";
      } catch (const CommError& error) {
        reason_ = error.what();
      } catch (const ToldElsewhere& error) {
        // One that has come cannot take part. It says why and ends; those who were here go on without it.
        if (began_ || place.decided == elastic::kNoStep) throw;
        reason_ = fmt::format("another worker could not begin: {}", error.why());
        log::warning(reason_);
      } catch (const CorruptState& error) {
        forgive(error);
      }
    }
  }

 private:
  elastic::Held held() const {
    // What a generation got before it began is of the step that was kept for it.
    if (!training_) {
      return {.step = kept_.reached() ? kept_.reached()->progress.step : elastic::kNoStep};
    }
    return {.step = training_->step(), .voted = training_->undecided().value_or(elastic::kNoStep)};
  }

  // In a handler of the error, which goes on when this worker is not forgiven. Nothing that it holds can be
  // trusted, but for what has a journal that says so: the others give it what they have.
  void forgive(const CorruptState& error) {
    reason_ = error.what();
    if (++times_corrupt_ > kForgiven) throw;
    const bool is_vouched_for = training_ && training_->is_vouched_for();
    log::warning(fmt::format("{}; {}", reason_, what_follows(is_vouched_for)));
    kept_ = KeptState();
    if (!is_vouched_for) training_.reset();
  }

  std::string what_follows(bool is_vouched_for) const {
    if (is_vouched_for) {
      return "this worker keeps its share of the state, which is as it was written down, and gets the rest "
             "from the others";
    }
    if (training_ && training_->is_alone_with_its_share()) {
      return "this worker gives nobody its share of the state: unless another has read that before, the run "
             "goes on from its newest checkpoint, or begins anew";
    }
    return "this worker gets its state from the others or, where they do not have all of it, from the newest "
           "checkpoint";
  }

  // The ranks of the generation before that have no place in the next one.
  std::vector<Rank> gone(const elastic::Place& place) const {
    std::vector<Rank> ranks;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      if (std::ranges::find(place.members, members_[rank]) == place.members.end()) {
        ranks.push_back(static_cast<Rank>(rank));
      }
    }
    return ranks;
  }

  // The end of the generation before: of what is left of it, only the state that was decided last counts.
  void settle(const elastic::Place& place) {
    if (training_) {
      training_->settle(place.decided);
      kept_ = KeptState();
      try {
        if (training_->step() == place.decided) kept_ = training_->keep(gone(place));
      } catch (const CorruptState& error) {
        forgive(error);
      }
      training_.reset();
    }
    if (kept_.reached()) LOCKSTEP_FAILPOINT("train.kept");
    if (kept_.reached() && kept_.reached()->progress.step != place.decided) kept_ = KeptState();
    membership_.on_abandon(nullptr);
    world_.reset();
  }

  // What tells people something waits for a disk, or for whoever reads it. That may take as long as the other
  // ranks wait, which they do next.
  template <typename... Told>
  void excuse(std::function<void(Told...)>& tell) {
    if (!tell) return;
    tell = [this, tell = std::move(tell)](Told... told) {
      const elastic::Activity::Wait excused(&membership_.activity());
      tell(told...);
    };
  }

  RunSummary train_with(const elastic::Place& place) {
    began_ = false;
    members_ = place.members;
    const std::chrono::seconds timeout(run_.comm.train_timeout_seconds);
    std::stop_source lost;
    membership_.on_abandon([lost](const std::string&) mutable { lost.request_stop(); });
    world_ = comm::connect(elastic::placement_of(place, placement_),
                           {.group = {.name = "world", .timeout = timeout}, .stop = lost.get_token()});
    world_->watch_waits([&activity = membership_.activity()](bool begins) {
      begins ? activity.begin_wait() : activity.end_wait();
    });
    membership_.on_abandon([world = *world_, lost](const std::string& reason) mutable {
      world.abort(reason);
      lost.request_stop();
    });

    LOCKSTEP_FAILPOINT("train.connected");

    const bool goes_on = place.decided != elastic::kNoStep;
    generation_run_ = run_;
    RunHooks hooks = equip_(*world_, goes_on);
    if (goes_on) {
      generation_run_.checkpoint.resume = resume_later(run_.checkpoint, hooks.checkpoints, *world_);
      generation_run_.job.overwrite = false;
    }
    hooks.goes_on = goes_on;
    hooks.kept = &kept_;
    hooks.saves = &saves_;
    hooks.only_saves = place.only_saves;
    hooks.agree = [this](std::int64_t step) { return membership_.vote(step).regroup; };
    hooks.activity = &membership_.activity();
    excuse(hooks.after_step);
    excuse(hooks.saved);
    excuse(hooks.trained);
    excuse(hooks.finished);
    hooks.lost = lost.get_token();
    hooks.begun = [this, tell = hooks.begun](std::int64_t step) {
      LOCKSTEP_FAILPOINT("train.begun");
      if (tell) tell(step);
      began_ = true;
      kept_ = KeptState();
      membership_.begun(step);
      beginning_.reset();
    };
    training_.emplace(generation_run_, *world_, std::move(hooks));
    try {
      return training_->train();
    } catch (...) {
      // What was kept for it still is a state, and whole with what the others kept. One that had nothing
      // keeps what it got, if that is all that it was to have.
      if (!began_ && (kept_.reached() || !training_->is_healed())) training_.reset();
      throw;
    }
  }

  const spec::RunSpec& run_;
  elastic::Membership& membership_;
  const rendezvous::Placement& placement_;
  const Equip& equip_;
  const std::function<void()>& leave_;
  std::string reason_ = "started";
  KeptState kept_;
  SaveHistory saves_;
  spec::RunSpec generation_run_;
  std::optional<comm::Communicator> world_;
  std::optional<Training> training_;
  std::vector<elastic::MemberId> members_;  // by rank of its world
  bool began_ = false;
  // From the end of a generation to the first step of the next: reading, making or healing what it goes on
  // from takes as long as the others wait for it.
  std::optional<elastic::Activity::Wait> beginning_;
  int times_corrupt_ = 0;
};

}  // namespace

RunSummary train_in_generations(const spec::RunSpec& run, elastic::Membership& membership,
                                const rendezvous::Placement& placement, const Equip& equip,
                                const std::function<void()>& leave) {
  return Generations(run, membership, placement, equip, leave).train();
}

}  // namespace lockstep::train
