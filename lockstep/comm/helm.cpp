// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/helm.h"

namespace lockstep::comm {

// Counts a thread that sleeps on `changed_`, from before its first look at what it waits for.
class Helm::Sleeper {
 public:
  explicit Sleeper(Helm& helm) : helm_(helm) { ++helm_.sleepers_; }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { --helm_.sleepers_; }

 private:
  Helm& helm_;
};

void Helm::leave() {
  // Sequentially consistent, as are the sleepers' count and their look at `driven_`: one of the two sees the
  // other.
  driven_.store(false);
  if (sleepers_.load() > 0 || in_background_.load() > 0) wake_all();
}

void Helm::wake_all() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void Helm::exclusively(const Task& task) {
  if (const Turn turn(*this); turn) return task(endpoint_);
  std::unique_lock lock(mutex_);
  const Sleeper sleeper(*this);
  Entry entry{.run = &task, .done = false, .error = nullptr};
  tasks_.push_back(&entry);
  has_tasks_ = true;
  endpoint_.wake();
  // The driver may leave without having seen the task; then it is ours to take over.
  changed_.wait(lock, [&] { return entry.done || !driven_.load(); });
  if (!entry.done) {
    std::erase(tasks_, &entry);
    lock.unlock();
    return exclusively(task);
  }
  if (entry.error) std::rethrow_exception(entry.error);
}

void Helm::run_tasks() {
  std::vector<Entry*> entries;
  {
    const std::lock_guard lock(mutex_);
    entries.swap(tasks_);
    has_tasks_ = false;
  }
  for (Entry* entry : entries) {
    try {
      (*entry->run)(endpoint_);
    } catch (...) {
      entry->error = std::current_exception();
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (Entry* entry : entries) entry->done = true;
  }
  changed_.notify_all();
}

void Helm::sleep_until(const std::atomic<bool>& ended) {
  std::unique_lock lock(mutex_);
  const Sleeper sleeper(*this);
  ++waiters_;
  endpoint_.wake();
  changed_.wait(lock, [&] { return ended.load() || !driven_.load(); });
  // It kept the background thread away, and will not drive.
  if (--waiters_ == 0 && ended.load() && in_background_.load() > 0) changed_.notify_all();
}

void Helm::sleep_until_wanted(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  // Not a Sleeper: it need not be woken while nothing is to be done here.
  changed_.wait(lock, [&] { return stop.stop_requested() || (!driven_.load() && wants_background()); });
}

}  // namespace lockstep::comm
