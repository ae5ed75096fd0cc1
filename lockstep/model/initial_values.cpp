// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/initial_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "lockstep/base/philox.h"

namespace lockstep::model {
namespace {

// FNV-1a: what it is matters little, that it never changes matters.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Two normal values from 64 random bits (Box and Muller).
std::array<double, 2> normal_pair(std::uint64_t bits) {
  const double radius_from = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
  const double angle_from = static_cast<double>(bits & 0xFFFFFFFF) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * std::log(radius_from));
  const double angle = 2.0 * std::numbers::pi * angle_from;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

void initial_values(const ParameterSpec& parameter, std::uint64_t seed, std::size_t first,
                    std::span<float> values) {
  if (parameter.initial != Initial::normal) {
    std::fill(values.begin(), values.end(), parameter.initial == Initial::ones ? 1.0F : 0.0F);
    return;
  }
  const std::uint64_t name = hash_of(parameter.name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t place = first + i;
    const std::array<double, 2> pair = normal_pair(philox64(seed, name, place / 2));
    values[i] = static_cast<float>(parameter.deviation * pair[place % 2]);
  }
}

}  // namespace lockstep::model
