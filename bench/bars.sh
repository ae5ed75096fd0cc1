# SPDX-License-Identifier: Apache-2.0
#
# What the scripts run_bars.sh share: to be sourced by one, with its arguments. They print the figures of
# docs/benchmarks with what these were measured on.
set -eu
lockstep=${1:-build/release/bin/lockstep}

# case_of WHAT ARGUMENTS...: runs lockstep with these.
case_of() {
  printf '\n## %s\n' "$1"
  shift
  printf '$ lockstep %s\n' "$*"
  "$lockstep" "$@"
}

load_average() { cut -d ' ' -f 1-3 /proc/loadavg; }

begin_report() {
  printf 'date: %s\ncommit: %s\n' "$(date -u +%F)" "$(git describe --always --dirty)"
  printf 'machine: %s, %s cores, Linux %s\n' "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)"
  printf 'load before: %s\n' "$(load_average)"
}

say_pytorch() { printf 'PyTorch: %s\n' "$(/usr/bin/python3 -c 'import torch; print(torch.__version__)')"; }

end_report() { printf '\nload after: %s\n' "$(load_average)"; }
