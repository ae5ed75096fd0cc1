#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The comparisons that docs/benchmarks/layouts.md reports, but for that with optimizer state on disk, one after the
# other, with what they were measured on: about 40 minutes.
# usage: run_bars.sh [LOCKSTEP]     default: build/release/bin/lockstep; run it on an idle machine
. "$(dirname "$0")/../bars.sh"
scratch_folder

two='bench train --workers 2 --steps 3 --turns 5'

# bubble_of SCHEDULE: the idle time of two stages, as it was in a run and as the simulator of the schedule has it.
bubble_of() {
  "$lockstep" train "$folder/run.toml" --workers 2 --job.dump_folder "$folder/$1" \
    --parallelism.pipeline 2 --parallelism.schedule "$1" >"$folder/$1.log"
  case_of "idle time of $1, 4 micro-batches" trace "$folder/$1/trace/from_step_1.json"
}

begin_report
make_corpus
cat >"$folder/run.toml" <<TOML
[model]
preset = "gpt2-124m"
[data]
train = ["$folder/corpus"]
[training]
steps = 8
seq_len = 512
micro_batch_size = 1
global_batch_size = 4
dtype = "bf16"
[checkpoint]
enabled = false
[metrics]
enable_trace = true
TOML
# shellcheck disable=SC2086
{
  case_of '1 tensor 2, sequence parallel' $two --micro-batch 2 --training.global_batch_size 4 \
    --parallelism.tensor 2 --parallelism.sequence_parallel true --against data-parallel
  for stage in 1 2 3; do
    case_of "$((stage + 1)) ZeRO-$stage" $two --micro-batch 2 --parallelism.zero_stage $stage --against unshared
  done
  case_of '5 two stages, 8 micro-batches' $two --micro-batch 1 --training.global_batch_size 8 \
    --parallelism.pipeline 2 --against data-parallel
  case_of '6 zero-bubble, 4 micro-batches' $two --micro-batch 1 --training.global_batch_size 4 \
    --parallelism.pipeline 2 --parallelism.schedule zbh1 --against 1f1b
}
case_of '7 eight workers on two cores' bench train --workers 8 --micro-batch 1 --steps 3 --turns 5 \
  --training.global_batch_size 8 --parallelism.tensor 2 --parallelism.pipeline 2 --against two-workers
case_of '8 four tensor lanes on one worker' bench train --workers 1 --micro-batch 2 --steps 3 --turns 5 \
  --training.global_batch_size 4 --parallelism.tensor_lanes 4 --against undivided
case_of 'memory of ZeRO-3' bench train --preset gpt2-355m --workers 4 --micro-batch 1 --steps 2 --turns 1 \
  --parallelism.zero_stage 3

bubble_of 1f1b
bubble_of zbh1
end_report
