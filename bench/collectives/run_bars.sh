#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The comparisons that docs/benchmarks/collectives.md reports, one after the other, with what they were
# measured on. usage: run_bars.sh [LOCKSTEP]     default: build/release/bin/lockstep; run it on an idle machine
set -eu
lockstep=${1:-build/release/bin/lockstep}

case_of() {
  printf '\n## %s\n' "$1"
  shift
  printf '$ lockstep bench collectives %s\n' "$*"
  "$lockstep" bench collectives "$@"
}

printf 'date: %s\ncommit: %s\n' "$(date -u +%F)" "$(git describe --always --dirty)"
printf 'machine: %s, %s cores, Linux %s\n' "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)"
printf 'load before: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"

case_of 'shm, 2 ranks, registered and not' --bytes 4K,1M,64M --registered --unregistered --against gloo,mpi,memcpy
case_of 'shm, 4 ranks' --ranks 4 --bytes 16M --against gloo,mpi,memcpy
case_of 'tcp on loopback, 2 ranks' --transport tcp --bytes 64M --against gloo,sockets
case_of 'exact against inexact' --bytes 1M,64M --algorithm direct,lanes,halving_doubling,ring,tree
case_of 'exact against inexact, 4 ranks' --ranks 4 --bytes 16M --algorithm direct,lanes,halving_doubling,ring,tree
case_of 'lanes owned unevenly' --lanes 1,3 --bytes 1M,64M --algorithm lanes,direct,halving_doubling,ring,tree
case_of 'lanes owned unevenly, 3 ranks' --ranks 3 --lanes 2,1,1 --bytes 16M --algorithm lanes,direct,halving_doubling,ring,tree
case_of 'lanes owned unevenly, 4 ranks' --ranks 4 --lanes 1,3,2,2 --bytes 16M --algorithm lanes,direct,halving_doubling,ring,tree
case_of 'two pretended hosts of 2 ranks' --ranks 4 --ranks-per-host 2,2 --bytes 16M --algorithm 'hierarchical(direct,direct),hierarchical(ring,tree),direct,ring'
case_of 'what the selector rests on' --tune --bytes 4K,64K,1M,16M

printf '\nload after: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
