// SPDX-License-Identifier: Apache-2.0
//
// What elements hold, as expressions over the inputs of all ranks. An expression is a function of an element
// index: leaf (r, b) at i is element i of rank r's buffer b at the start. Equal expressions have equal
// numbers, so comparing them costs nothing however large they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep::schedule {

using ExpressionId = std::uint32_t;

enum class ExpressionKind : std::uint8_t { unspecified, leaf, combination, finished };

struct Expression {
  ExpressionKind kind = ExpressionKind::unspecified;
  std::uint32_t left = 0;   // leaf: rank; otherwise the (left) operand
  std::uint32_t right = 0;  // leaf: buffer; combination: the right operand
  // Combination: the right operand is taken at index i + shift where the left one is taken at i, so a sum of
  // different elements is not equal to the right one. Modulo 2^64, as all shifts.
  std::uint64_t shift = 0;

  bool operator==(const Expression&) const = default;
};

inline constexpr ExpressionId kUnspecified = 0;

// A run of elements: the element at place p holds the expression at index p + shift.
struct Value {
  ExpressionId expression = kUnspecified;
  std::uint64_t shift = 0;

  bool operator==(const Value&) const = default;
};

class Expressions {
 public:
  Expressions();

  ExpressionId leaf(Rank rank, std::uint32_t buffer);
  Value combine(Value left, Value right);
  Value finish(Value value);

  const Expression& operator[](ExpressionId id) const { return expressions_[id]; }

  // How many leaves the tree of the expression has, with repetitions; saturates.
  std::uint64_t leaf_count(ExpressionId id) const { return leaf_counts_[id]; }

  // For people: "finished((r0+r1)+r2)"; long ones are cut.
  std::string to_string(ExpressionId id) const;

 private:
  struct Hash {
    std::size_t operator()(const Expression& expression) const;
  };

  ExpressionId intern(const Expression& expression, std::uint64_t leaf_count);
  void append_text(ExpressionId id, std::string& text) const;

  std::vector<Expression> expressions_;
  std::vector<std::uint64_t> leaf_counts_;
  std::unordered_map<Expression, ExpressionId, Hash> ids_;
};

}  // namespace lockstep::schedule
