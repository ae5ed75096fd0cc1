// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/worker.h"

#include <utility>

#include "lockstep/elastic/message_codec.h"

#include "tests/elastic/simulation/coordinator_process.h"

namespace lockstep::elastic::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kControl =
    0;  // the tag of connections to the coordinator; others have their generation
constexpr Time kBeatInterval = milliseconds(250);
constexpr Time kRedialInterval = milliseconds(200);
constexpr Time kDataTimeout = seconds(3);
constexpr Time kLinger = seconds(3);

}  // namespace

Worker::Worker(World& world, int node, MemberId id)
    : Process(world.events, node), world_(world), member_(id, "node" + std::to_string(node)) {}

void Worker::start() {
  dial();
  beat();
  ask_for_place("new");
}

Brought Worker::brings() const {
  return {member_.generation(), held_.step, held_.voted, cells_};
}

// --- The connection to the coordinator.

void Worker::dial() {
  if (control_ != nullptr || (member_.state() == Member::State::gone && !has_left())) return;
  CoordinatorProcess* const coordinator = world_.coordinator();
  if (coordinator == nullptr) return after(kRedialInterval, [this] { dial(); });
  control_ = &world_.network.dial(*this, *coordinator, kControl);
  if (const auto message = member_.reconnect()) tell(*message);
}

void Worker::tell(const FromMember& message) {
  if (control_ != nullptr) world_.network.send(*control_, *this, encode(message));
}

void Worker::beat() {
  if (!has_left()) tell(member_.beat(progress_, !is_hung_ && waits_for_others()));
  after(kBeatInterval, [this] { beat(); });
}

bool Worker::waits_for_others() const {
  return phase_ != Phase::computing;
}

void Worker::closed(Connection& connection) {
  if (connection.tag != kControl) {
    if (connection.tag != member_.generation() || phase_ == Phase::joining) return;
    broken_ = "a connection to another worker was closed";
    return look_at_inbox();
  }
  if (&connection != control_) return;
  control_ = nullptr;
  if (const auto event = member_.disconnect("the connection to the coordinator was closed")) happened(*event);
  after(kRedialInterval, [this] { dial(); });
}

void Worker::receive(Connection& connection, const std::vector<std::byte>& message) {
  if (connection.tag != kControl) {
    if (!is_hung_) take(data_message(message));
    return;
  }
  if (&connection != control_) return;
  const ConstBytes bytes(message);
  const Header header = decode_header(bytes.first(kHeaderBytes), Sender::coordinator);
  if (const auto event = member_.hear(decode_from_coordinator(header.type, bytes.subspan(kHeaderBytes)))) {
    happened(*event);
  }
}

// --- What it says.

void Worker::happened(const MemberEvent& event) {
  if (is_hung_) return;
  ++progress_;
  std::visit([this](const auto& told) { on(told); }, event);
}

void Worker::on(const Placed& placed) {
  place_ = placed.place;
  holds_decided_ = placed.holds_decided;
  const bool forgets = world_.scenario.mistake == Mistake::forgets_decided_step;
  if (placed.applies_voted && !forgets) apply(held_.voted);
  if (placed.applies_voted && forgets) held_.step = held_.voted;
  held_.voted = kNoStep;
  inboxes_.erase(inboxes_.begin(), inboxes_.lower_bound(place_.generation));
  broken_.reset();
  enter(Phase::healing);
  const bool offers = holds_decided_ || world_.scenario.mistake == Mistake::keeps_stale_state;
  send_all({.kind = DataMessage::Kind::offer,
            .step = world_.checkpoints.newest(),
            .cells = offers ? cells_ : Cells()});
}

void Worker::on(const Decided& decided) {
  apply(decided.decision.step);
  held_.voted = kNoStep;
  if (held_.step % world_.scenario.save_every == 0) save();
  if (decided.decision.regroup) return ask_for_place("members have come");
  compute();
}

void Worker::on(const GenerationEnded& ended) {
  // It takes the trainer a moment to give up what it does.
  after(world_.random.milliseconds(0, 20), [this, reason = ended.reason] {
    if (member_.state() == Member::State::outside && !is_hung_) ask_for_place(reason);
  });
}

void Worker::on(const Refused& refused) {
  world_.trace("member {:x} is dismissed: {}", id(), refused.reason);
  world_.end_worker(*this, false);
}

// --- Training.

void Worker::ask_for_place(const std::string& reason) {
  for (const auto& [rank, connection] : std::exchange(peers_, {})) world_.network.close(*connection, *this);
  enter(Phase::joining);
  world_.trace("member {:x} of node {} joins: held {}, voted {}, generation {}: {}", id(), node(), held_.step,
               held_.voted, member_.generation(), reason);
  tell(member_.join(held_, reason));
}

void Worker::enter(Phase phase) {
  phase_ = phase;
  ++progress_;
  if (phase == Phase::joining || phase == Phase::computing || phase == Phase::left) return;
  after(kDataTimeout, [this, entered = ++entered_] {
    if (entered == entered_ && phase_ != Phase::voting && phase_ != Phase::joining)
      give_up("it took too long");
  });
}

void Worker::give_up(const std::string& reason) {
  const Member::State state = member_.state();
  if (is_hung_ || (state != Member::State::placed && state != Member::State::voted)) return;
  ask_for_place(reason);
}

void Worker::look_at_inbox() {
  if (is_hung_ || member_.state() != Member::State::placed) return;
  if (broken_ && phase_ != Phase::computing) return give_up(*broken_);
  const Inbox& inbox = inboxes_[place_.generation];
  const auto all = static_cast<std::size_t>(ranks());
  if (phase_ == Phase::healing && inbox.offers.size() == all) heal();
  if (phase_ == Phase::changing && inbox.ready.size() == all) change();
  if (phase_ == Phase::summing) vote();
  if (phase_ == Phase::finishing && inbox.committed.contains(world_.scenario.steps)) leave();
}

void Worker::heal() {
  Inbox& inbox = inboxes_[place_.generation];
  Cells together;
  for (const auto& [rank, offer] : inbox.offers) together.insert(offer.cells.begin(), offer.cells.end());
  next_step_ = place_.decided;
  if (!are_all(together)) {
    next_step_ = inbox.offers.at(0).step;
    together = world_.checkpoints.load(next_step_);
  }
  next_cells_.clear();
  for (const int cell : cells_to_hold(place_.rank, ranks())) next_cells_[cell] = together.at(cell);
  if (next_step_ == place_.decided) {
    if (!holds_decided_) cells_.clear();
    held_.step = next_step_;
    cells_.insert(next_cells_.begin(), next_cells_.end());
    world_.checker.see_cells(held_.step, cells_);
  }
  enter(Phase::changing);
  send_all({.kind = DataMessage::Kind::ready});
}

void Worker::change() {
  held_.step = next_step_;
  cells_ = std::move(next_cells_);
  world_.checker.see_cells(held_.step, cells_);
  world_.checker.see_begin(place_, held_.step);
  world_.trace("member {:x} begins generation {} at step {}", id(), place_.generation, held_.step);
  tell(member_.begun(held_.step));
  compute();
}

void Worker::compute() {
  if (held_.step == world_.scenario.steps) {
    enter(Phase::finishing);
    return save();
  }
  enter(Phase::computing);
  after(world_.random.milliseconds(30, 150), [this, entered = progress_] {
    if (entered != progress_ || is_hung_) return;
    enter(Phase::summing);
    send_all({.kind = DataMessage::Kind::sum,
              .step = held_.step + 1,
              .value = sum_of_lanes(place_.rank, ranks(), held_.step + 1)});
  });
}

void Worker::vote() {
  const auto& sums = inboxes_[place_.generation].sums[held_.step + 1];
  if (sums.size() != static_cast<std::size_t>(ranks())) return;
  voted_sum_ = 0;
  for (const auto& [rank, sum] : sums) voted_sum_ += sum;
  held_.voted = held_.step + 1;
  enter(Phase::voting);
  world_.checker.see_vote(id(), place_.generation, held_.voted);
  tell(member_.vote(held_.voted));
}

void Worker::apply(std::int64_t step) {
  world_.checker.see_update(step);
  for (auto& [cell, value] : cells_) value = updated(value, step, voted_sum_);
  held_.step = step;
  world_.checker.see_cells(held_.step, cells_);
}

void Worker::save() {
  Cells own;
  for (const int cell : own_cells(place_.rank, ranks())) own[cell] = cells_.at(cell);
  const DataMessage saved = {
      .kind = DataMessage::Kind::saved, .generation = place_.generation, .step = held_.step};
  after(world_.random.milliseconds(10, 400), [this, own, saved] {
    world_.checkpoints.put(saved.generation, saved.step, own);
    if (saved.generation == place_.generation && phase_ != Phase::joining) send_to(0, saved);
  });
}

void Worker::commit_when_saved() {
  for (auto& [step, saved] : inboxes_[place_.generation].saved) {
    if (saved.size() != static_cast<std::size_t>(ranks())) continue;
    saved.clear();
    after(world_.random.milliseconds(1, 100), [this, step = step, generation = place_.generation] {
      world_.checker.see_checkpoint(step, world_.checkpoints.commit(generation, step));
      world_.trace("the checkpoint of step {} is committed", step);
      if (generation == place_.generation && phase_ != Phase::joining) {
        send_all({.kind = DataMessage::Kind::committed, .step = step});
      }
    });
  }
}

void Worker::leave() {
  enter(Phase::left);
  world_.trace("member {:x} leaves", id());
  tell(member_.leave());
  after(kLinger, [this] { world_.end_worker(*this, false); });
}

// --- The other workers.

void Worker::send_all(DataMessage message) {
  for (int rank = 0; rank < ranks(); ++rank) send_to(rank, message);
}

void Worker::send_to(int rank, DataMessage message) {
  message.generation = place_.generation;
  message.rank = place_.rank;
  if (rank == place_.rank) {
    after(Time(0), [this, message] { take(message); });
    return;
  }
  Connection*& connection = peers_[rank];
  if (connection == nullptr) {
    Worker* const peer = world_.worker(place_.members[static_cast<std::size_t>(rank)]);
    if (peer == nullptr) {
      peers_.erase(rank);
      broken_ = "another worker is not there";
      return after(milliseconds(1), [this] { look_at_inbox(); });
    }
    connection = &world_.network.dial(*this, *peer, place_.generation);
  }
  world_.network.send(*connection, *this, to_bytes(message));
}

void Worker::take(const DataMessage& message) {
  const bool is_old = message.generation < member_.generation();
  if (is_old && world_.scenario.mistake != Mistake::takes_old_messages) return;
  Inbox& inbox = inboxes_[is_old ? member_.generation() : message.generation];
  switch (message.kind) {
    case DataMessage::Kind::offer:
      inbox.offers[message.rank] = message;
      break;
    case DataMessage::Kind::ready:
      inbox.ready.insert(message.rank);
      break;
    case DataMessage::Kind::sum:
      inbox.sums[message.step][message.rank] = message.value;
      break;
    case DataMessage::Kind::saved:
      inbox.saved[message.step].insert(message.rank);
      if (message.generation == place_.generation) commit_when_saved();
      break;
    case DataMessage::Kind::committed:
      inbox.committed.insert(message.step);
      break;
  }
  look_at_inbox();
}

}  // namespace lockstep::elastic::simulation
