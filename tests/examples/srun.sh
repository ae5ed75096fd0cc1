#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: srun.sh N PROGRAM...
# As `srun -n N PROGRAM...` on one node, by the variables that Slurm sets. Fails unless all processes end with 0.
ntasks=$1
shift
node=$(uname -n)
export SLURM_NTASKS="$ntasks" SLURM_NODEID=0 SLURM_JOB_NUM_NODES=1 SLURM_STEP_NUM_NODES=1
export SLURM_JOB_NODELIST="$node" SLURM_STEP_NODELIST="$node"
export SLURM_JOB_ID=$$  # the port follows from it

started=
task=0
while [ "$task" -lt "$ntasks" ]; do
  SLURM_PROCID=$task SLURM_LOCALID=$task "$@" &
  started="$started $!"
  task=$((task + 1))
done
code=0
for process in $started; do
  wait "$process" || code=$?
done
exit "$code"
