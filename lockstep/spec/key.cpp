// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/key.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/suggest.h"
#include "lockstep/spec/write.h"

namespace lockstep::spec {
namespace {

// Runs compute in fp32, where 0.99999999 is 1: ends that are not included must not be reached there either.
bool inside(const Bounds& bounds, double value) {
  // Written so that a NaN is outside.
  if (!(value >= bounds.least && value <= bounds.most)) return false;
  const auto rounded = static_cast<float>(value);
  return (!bounds.above_least || rounded > bounds.least) && (!bounds.below_most || rounded < bounds.most);
}

// The numbers of a value that bounds apply to.
std::vector<double> numbers_in(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return {static_cast<double>(*integer)};
  if (const auto* real = std::get_if<double>(&value)) return {*real};
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return *list;
  std::vector<double> weights;
  if (const auto* corpora = std::get_if<std::vector<Corpus>>(&value)) {
    for (const Corpus& corpus : *corpora) weights.push_back(corpus.weight);
  }
  return weights;
}

bool names_nothing(const Value& value) {
  const auto* corpora = std::get_if<std::vector<Corpus>>(&value);
  return corpora && std::ranges::any_of(*corpora, [](const Corpus& corpus) { return corpus.path.empty(); });
}

std::optional<std::string> why_not_a_choice(const Accepted& accepted, const std::string& text) {
  const std::vector<std::string> choices(accepted.choices.begin(), accepted.choices.end());
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end())
    return std::nullopt;
  const std::string meant = closest(text, choices);
  return fmt::format("must be {}, not '{}'{}", words_for(accepted), text,
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

}  // namespace

std::string Key::full_name() const {
  return fmt::format("{}.{}", section, name);
}

const Key* find_key(std::string_view full_name) {
  const auto keys = all_keys();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.full_name() == full_name; });
  return found == keys.end() ? nullptr : &*found;
}

Value default_of(const Key& key) {
  return key.get(RunSpec{});
}

bool holds(const Condition& condition, const RunSpec& run) {
  const Key& other = *find_key(condition.key);
  return (text_of(other, other.get(run)) == condition.value) != condition.other_than;
}

bool has_effect(const Key& key, const RunSpec& run) {
  return std::ranges::all_of(key.accepted.only_with,
                             [&](const Condition& condition) { return holds(condition, run); });
}

std::string words_for(const Accepted& accepted) {
  if (!accepted.choices.empty()) return fmt::format("one of {}", fmt::join(accepted.choices, ", "));
  const Bounds& bounds = accepted.bounds;
  if (bounds.least == bounds.most) return {};
  if (bounds.most > 1e15) {
    return fmt::format("{} or more{}", bounds.least, accepted.when_auto ? ", or \"auto\"" : "");
  }
  return fmt::format("{}{} to {}{}", bounds.above_least ? "above " : "", bounds.least,
                     bounds.below_most ? "below " : "", bounds.most);
}

std::optional<std::string> why_refused(const Key& key, const Value& value) {
  const Accepted& accepted = key.accepted;
  if (value == default_of(key)) return std::nullopt;
  for (const double number : numbers_in(value)) {
    const Bounds& bounds = accepted.bounds;
    if (inside(bounds, number)) continue;
    const bool is_rounded_out = number > bounds.least && number < bounds.most;
    const bool is_weight = std::holds_alternative<std::vector<Corpus>>(value);
    return fmt::format(
        "must {} {}, not {}{}", is_weight ? "have weights" : "be", words_for(accepted), number,
        is_rounded_out ? fmt::format(", which is {} in fp32", static_cast<float>(number)) : "");
  }
  if (names_nothing(value)) return "has an empty path: name the corpus, or leave it out";
  if (const auto* text = std::get_if<std::string>(&value)) return why_not_a_choice(accepted, *text);
  return std::nullopt;
}

}  // namespace lockstep::spec
