#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The comparisons that docs/benchmarks/collectives.md reports, one after the other, with what they were
# measured on. usage: run_bars.sh [LOCKSTEP]     default: build/release/bin/lockstep; run it on an idle machine
. "$(dirname "$0")/../bars.sh"

collectives() {
  what=$1
  shift
  case_of "$what" bench collectives "$@"
}

begin_report
collectives 'shm, 2 ranks, registered and not' --bytes 4K,1M,64M --registered --unregistered --against gloo,mpi,memcpy
collectives 'shm, 4 ranks' --ranks 4 --bytes 16M --against gloo,mpi,memcpy
collectives 'tcp on loopback, 2 ranks' --transport tcp --bytes 64M --against gloo,sockets
collectives 'exact against inexact' --bytes 1M,64M --algorithm direct,lanes,halving_doubling,ring,tree
collectives 'exact against inexact, 4 ranks' --ranks 4 --bytes 16M --algorithm direct,lanes,halving_doubling,ring,tree
collectives 'lanes owned unevenly' --lanes 1,3 --bytes 1M,64M --algorithm lanes,direct,halving_doubling,ring,tree
collectives 'lanes owned unevenly, 3 ranks' --ranks 3 --lanes 2,1,1 --bytes 16M --algorithm lanes,direct,halving_doubling,ring,tree
collectives 'lanes owned unevenly, 4 ranks' --ranks 4 --lanes 1,3,2,2 --bytes 16M --algorithm lanes,direct,halving_doubling,ring,tree
collectives 'two pretended hosts of 2 ranks' --ranks 4 --ranks-per-host 2,2 --bytes 16M --algorithm 'hierarchical(direct,direct),hierarchical(ring,tree),direct,ring'
collectives 'what the selector rests on' --tune --bytes 4K,64K,1M,16M
end_report
