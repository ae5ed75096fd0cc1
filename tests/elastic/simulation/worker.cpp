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
constexpr Time kTidingsInterval = milliseconds(50);

checkpoint::SaveTidings sum_of_tidings(const std::map<int, DataMessage>& messages) {
  checkpoint::SaveTidings sum;
  for (const auto& [rank, message] : messages) sum += message.tidings;
  return sum;
}

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
  if (control_ != nullptr || member_.state() == Member::State::gone) return;
  CoordinatorProcess* const coordinator = world_.coordinator();
  if (coordinator == nullptr) return after(kRedialInterval, [this] { dial(); });
  control_ = &world_.network.dial(*this, *coordinator, kControl);
  if (const auto message = member_.reconnect()) tell(*message);
}

void Worker::tell(const FromMember& message) {
  if (control_ != nullptr) world_.network.send(*control_, *this, encode(message));
}

void Worker::beat() {
  if (!has_left()) tell(member_.beat(progress_, is_hung_ ? hangs_in_wait_ : waits_for_others()));
  after(kBeatInterval, [this] { beat(); });
}

// One that is alone waits for nobody.
void Worker::hang() {
  hangs_in_wait_ = !is_hung_ ? waits_for_others() && ranks() > 1 : hangs_in_wait_;
  is_hung_ = true;
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
  const bool forgets = world_.scenario.mistake == Mistake::forgets_decided_step;
  if (placed.applies_voted && !forgets) apply(held_.voted);
  if (placed.applies_voted && forgets) held_.step = held_.voted;
  held_.voted = kNoStep;
  inboxes_.erase(inboxes_.begin(), inboxes_.lower_bound(place_.generation));
  broken_.reset();
  round_ = 0;
  saver_.emplace(world_, *this,
                 Saver::Options{.generation = place_.generation, .rank = place_.rank, .ranks = ranks()});
  save_is_due_ = false;
  enter(Phase::healing);
  const Mistake mistake = world_.scenario.mistake;
  const bool is_kept = placed.holds_decided || mistake == Mistake::keeps_stale_state ||
                       mistake == Mistake::heals_from_older_steps;
  if (!is_kept || held_.step == kNoStep) return send_all({.kind = DataMessage::Kind::offer, .step = kNoStep});
  const bool lies = mistake == Mistake::keeps_stale_state;
  send_all({.kind = DataMessage::Kind::offer,
            .step = lies ? place_.decided : held_.step,
            .pieces = pieces_,
            .cells = cells_});
}

void Worker::on(const Decided& decided) {
  apply(decided.decision.step);
  held_.voted = kNoStep;
  if (phase_ == Phase::joining) return;  // it has given up, and waits for its disk
  save_if_due();
  if (decided.decision.regroup && held_.step != world_.scenario.steps) return drain(false);
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
  const auto join = [this, reason] {
    world_.trace("member {:x} of node {} joins: held {}, voted {}, generation {}: {}", id(), node(),
                 held_.step, held_.voted, member_.generation(), reason);
    tell(member_.join(held_, reason));
  };
  if (saver_) {
    saver_->stop(join);
  } else {
    join();
  }
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
  const bool has_place = state == Member::State::placed || state == Member::State::voted;
  if (is_hung_ || phase_ == Phase::joining || (!has_place && !is_regrouping())) return;
  ask_for_place(reason);
}

// It has left its generation in good order, and ends what is under way.
bool Worker::is_regrouping() const {
  return member_.state() == Member::State::outside && (phase_ == Phase::draining || phase_ == Phase::waiting);
}

void Worker::look_at_inbox() {
  if (is_hung_ || (member_.state() != Member::State::placed && !is_regrouping())) return;
  if (broken_ && phase_ != Phase::computing) return give_up(*broken_);
  switch (phase_) {
    case Phase::healing:
      if (has_all(inbox().offers)) take_offers();
      break;
    case Phase::resuming:
      count_tried();
      break;
    case Phase::changing:
      if (std::ssize(inbox().ready) == ranks()) change();
      break;
    case Phase::summing:
      vote();
      break;
    case Phase::draining:
      hear_tidings();
      break;
    default:
      break;
  }
}

void Worker::compute() {
  if (held_.step == world_.scenario.steps) return drain(true);
  enter(Phase::computing);
  after(world_.random.milliseconds(30, 150), [this, entered = progress_] {
    if (entered != progress_ || is_hung_) return;
    enter(Phase::summing);
    send_all({.kind = DataMessage::Kind::sum,
              .step = held_.step + 1,
              .value = sum_of_lanes(place_.rank, ranks(), held_.step + 1),
              .tidings = saver_->tidings()});
  });
}

void Worker::vote() {
  const Inbox::ByRank& sums = inbox().sums[held_.step + 1];
  if (!has_all(sums)) return;
  voted_sum_ = 0;
  for (const auto& [rank, sum] : sums) voted_sum_ += sum.value;
  saver_->hear(sum_of_tidings(sums));
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

void Worker::save_if_due() {
  save_is_due_ = save_is_due_ || held_.step % world_.scenario.save_every == 0;
  if (!save_is_due_ || !saver_->is_idle() || held_.step == world_.scenario.steps) return;
  save_is_due_ = false;
  saver_->begin(held_.step, cells_);
}

// Until no checkpoint is under way; at the end, until that of the last step is there.
void Worker::drain(bool is_end) {
  is_ending_ = is_end;
  enter(Phase::draining);
  ++round_;
  send_all({.kind = DataMessage::Kind::tidings, .round = round_, .tidings = saver_->tidings()});
}

void Worker::hear_tidings() {
  const Inbox::ByRank& all = inbox().tidings[round_];
  if (!has_all(all)) return;
  const std::optional<std::int64_t> saved = saver_->hear(sum_of_tidings(all));
  if (!is_ending_ && saver_->is_idle()) return ask_for_place("members have come");
  if (is_ending_ && saved == held_.step) {
    world_.checker.see_leave(held_.step);
    return leave();
  }
  if (is_ending_ && saver_->is_idle()) saver_->begin(held_.step, cells_);
  enter(Phase::waiting);
  after(kTidingsInterval, [this, entered = entered_] {
    if (entered == entered_ && !is_hung_) drain(is_ending_);
  });
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
    case DataMessage::Kind::candidate:
      inbox.candidates[message.round] = message;
      break;
    case DataMessage::Kind::tried:
      inbox.tried[message.round][message.rank] = message;
      break;
    case DataMessage::Kind::ready:
      inbox.ready.insert(message.rank);
      break;
    case DataMessage::Kind::sum:
      inbox.sums[message.step][message.rank] = message;
      break;
    case DataMessage::Kind::tidings:
      inbox.tidings[message.round][message.rank] = message;
      break;
  }
  look_at_inbox();
}

}  // namespace lockstep::elastic::simulation
