// SPDX-License-Identifier: Apache-2.0
//
// What holds between the keys of one run, whatever the number of workers (workload.h has the rest).
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/spec/refuse.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// Where keys were set, by full name, for errors.
using Places = std::map<std::string, std::string, std::less<>>;

// That of the first of `keys` that somebody has set; empty: none.
std::string place_of(const Places& places, std::initializer_list<std::string_view> keys);

// What `function` returns; a UsageError of it, which knows no place, gets that one.
template <typename Function>
auto at_place_of(const Places& places, std::initializer_list<std::string_view> keys, Function function) {
  try {
    return function();
  } catch (const UsageError& error) {
    refuse(place_of(places, keys), error.what());
  }
}

// Replaces the zeros of the model that stand for what follows from other keys. Does nothing the second time.
void fill_model(RunSpec& run);

// Every key is within its own limits already. UsageError for keys that contradict each other.
void check_run(const RunSpec& run, const Places& places = {});

// Of a run as somebody gives it: UsageError for keys of `places` that others leave without effect. It says
// nothing about runs that were saved, for older versions let such keys pass, nor about what was made of a run
// since.
void check_effects(const RunSpec& run, const Places& places);

}  // namespace lockstep::spec
