// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/expression.h"

#include <limits>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

constexpr std::size_t kLongestText = 200;

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max()
                                                           : a + b;
}

}  // namespace

Expressions::Expressions() {
  intern({}, 0);
}

std::size_t Expressions::Hash::operator()(const Expression& expression) const {
  std::uint64_t mixed = static_cast<std::uint64_t>(expression.kind);
  for (const std::uint64_t part :
       {(std::uint64_t{expression.left} << 32) | expression.right, expression.shift}) {
    mixed = (mixed ^ part) * 0x9E3779B97F4A7C15U;
    mixed ^= mixed >> 29;
  }
  return mixed;
}

ExpressionId Expressions::intern(const Expression& expression, std::uint64_t leaf_count) {
  const auto [at, added] = ids_.try_emplace(expression, static_cast<ExpressionId>(expressions_.size()));
  if (added) {
    LOCKSTEP_CHECK(expressions_.size() < std::numeric_limits<ExpressionId>::max());
    expressions_.push_back(expression);
    leaf_counts_.push_back(leaf_count);
  }
  return at->second;
}

ExpressionId Expressions::leaf(Rank rank, std::uint32_t buffer) {
  return intern({.kind = ExpressionKind::leaf, .left = static_cast<std::uint32_t>(rank), .right = buffer}, 1);
}

Value Expressions::combine(Value left, Value right) {
  if (left.expression == kUnspecified || right.expression == kUnspecified) return {};
  const ExpressionId sum = intern({.kind = ExpressionKind::combination,
                                   .left = left.expression,
                                   .right = right.expression,
                                   .shift = right.shift - left.shift},
                                  saturating_add(leaf_count(left.expression), leaf_count(right.expression)));
  return {sum, left.shift};
}

Value Expressions::finish(Value value) {
  if (value.expression == kUnspecified) return value;
  return {intern({.kind = ExpressionKind::finished, .left = value.expression}, leaf_count(value.expression)),
          value.shift};
}

std::string Expressions::to_string(ExpressionId id) const {
  std::string text;
  append_text(id, text);
  if (text.size() > kLongestText) text = text.substr(0, kLongestText) + "...";
  return text;
}

void Expressions::append_text(ExpressionId id, std::string& text) const {
  if (text.size() > kLongestText) return;
  const Expression& expression = expressions_[id];
  switch (expression.kind) {
    case ExpressionKind::unspecified:
      text += "nothing specified";
      return;
    case ExpressionKind::leaf:
      text += fmt::format("r{}", expression.left);
      if (expression.right != 0) text += fmt::format(".{}", expression.right);
      return;
    case ExpressionKind::combination:
      text += '(';
      append_text(expression.left, text);
      text += '+';
      append_text(expression.right, text);
      if (expression.shift != 0) text += fmt::format("[{:+}]", static_cast<std::int64_t>(expression.shift));
      text += ')';
      return;
    case ExpressionKind::finished:
      text += "finished(";
      append_text(expression.left, text);
      text += ')';
      return;
  }
}

}  // namespace lockstep::schedule
