// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/model/shard_rule.h"

namespace lockstep::model::mlp {

std::span<const ShardRule> shard_rules();

}  // namespace lockstep::model::mlp
