// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: barriers. Their messages are single elements of scratch whose value means
// nothing; nothing is added.
#pragma once

#include "lockstep/schedule/collective/program.h"
#include "lockstep/schedule/collective/spanning_tree.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {

// Everyone tells everyone: one message deep.
Program barrier_by_exchange(const Task& task);

// In round k everyone tells the rank 2^k further on: ceil(log2(world)) deep.
Program barrier_by_dissemination(const Task& task);

// Word goes up one tree and comes back down another (often the same), both with the same root.
Program barrier_over(const TreeNode& up, const TreeNode& down, const Task& task);

}  // namespace lockstep::schedule
