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

# scratch_folder: a folder for this run alone, as $folder.
scratch_folder() {
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# make_corpus: text of 4 million bytes as $folder/corpus, a token for each.
make_corpus() {
  seq 1 600000 >"$folder/text"
  "$lockstep" prepare "$folder/text" --tokenizer bytes --output "$folder/corpus"
}

# Assigned before they are printed, so that what fails ends the script.
begin_report() {
  commit=$(git -C "$(dirname "$0")" describe --always --dirty)
  model=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
  printf 'date: %s\ncommit: %s\n' "$(date -u +%F)" "$commit"
  printf 'machine: %s, %s cores, Linux %s\n' "$model" "$(nproc)" "$(uname -r)"
  printf 'load before: %s\n' "$(load_average)"
}

say_pytorch() {
  version=$(/usr/bin/python3 -c 'import torch; print(torch.__version__)')
  printf 'PyTorch: %s\n' "$version"
}

load_average() { cut -d ' ' -f 1-3 /proc/loadavg; }

end_report() { printf '\nload after: %s\n' "$(load_average)"; }
