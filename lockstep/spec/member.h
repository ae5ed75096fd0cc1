// SPDX-License-Identifier: Apache-2.0
//
// How a row of the table reaches its member of a RunSpec.
#pragma once

#include <algorithm>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/spec/choices.h"
#include "lockstep/spec/key.h"

namespace lockstep::spec {

template <auto Section, auto Member>
Value get_member(const RunSpec& run) {
  const auto& member = run.*Section.*Member;
  if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(member)>>) {
    return std::string(names_of(member).at(static_cast<std::size_t>(member)));
  } else {
    return member;
  }
}

// The key accepts the value.
template <auto Section, auto Member>
void set_member(RunSpec& run, const Value& value) {
  auto& member = run.*Section.*Member;
  using Type = std::remove_cvref_t<decltype(member)>;
  if constexpr (std::is_enum_v<Type>) {
    constexpr auto names = names_of(Type{});
    const auto found = std::find(names.begin(), names.end(), std::get<std::string>(value));
    LOCKSTEP_CHECK(found != names.end());
    member = static_cast<Type>(found - names.begin());
  } else {
    member = std::get<Type>(value);
  }
}

// The names that an enumeration accepts; none for every other type.
template <auto Section, auto Member>
std::vector<std::string_view> choices_of_member() {
  using Type = std::remove_cvref_t<decltype(RunSpec{}.*Section.*Member)>;
  if constexpr (std::is_enum_v<Type>) {
    constexpr auto names = names_of(Type{});
    return {names.begin(), names.end()};
  } else {
    return {};
  }
}

}  // namespace lockstep::spec
