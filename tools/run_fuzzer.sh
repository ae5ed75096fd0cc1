#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: run_fuzzer.sh PROGRAM SEEDS
# Runs a libFuzzer program for LOCKSTEP_FUZZ_SECONDS (20) with at most 512 MB, on a throw-away corpus that starts
# from the folder SEEDS. An input that breaks it is kept beside the program.
set -euo pipefail
program=$1
seeds=$2
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
"$program" -max_total_time="${LOCKSTEP_FUZZ_SECONDS:-20}" -timeout=10 -rss_limit_mb=512 -print_final_stats=1 \
  -artifact_prefix="$program-" "$corpus" "$seeds"
