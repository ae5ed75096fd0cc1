#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: fuzz_all.sh SECONDS [BUILD]
# Runs every fuzz target of a build of the preset fuzz (build/fuzz) for SECONDS each, on a throw-away corpus
# that starts from its seeds, with at most 512 MB. Stops at the first input that breaks a target and keeps it
# beside the program.
set -euo pipefail
seconds=${1:?usage: fuzz_all.sh SECONDS [BUILD]}
root=$(cd "$(dirname "$0")/.." && pwd)
build=${2:-$root/build/fuzz}
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT

shopt -s nullglob
programs=("$build"/tests/fuzz/*_fuzzer)
if [ ${#programs[@]} -eq 0 ]; then
  echo "no fuzz target in $build/tests/fuzz: build them with cmake --preset fuzz && cmake --build build/fuzz" >&2
  exit 2
fi
for program in "${programs[@]}"; do
  name=$(basename "$program" _fuzzer)
  echo "fuzz: $name for $seconds s"
  mkdir "$corpus/$name"
  if ! "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 -verbosity=0 \
    -artifact_prefix="$program-" "$corpus/$name" "$root/tests/fuzz/corpus/$name" >"$corpus/log" 2>&1; then
    cat "$corpus/log" >&2
    echo "fuzz: $name broke; run the program again with the input that it names" >&2
    exit 1
  fi
done
echo "fuzz: ${#programs[@]} targets held"
