# SPDX-License-Identifier: Apache-2.0
#
# What ./quickstart, ./test and ./dev share: progress lines, packages, configure and build. To be sourced, with
# the current directory at the root of the repository.

export LC_ALL=C

readonly log_folder=build/log

# One line when a stage begins, with the seconds since the script began.
stage() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

# fail CODE WHY...: one sentence on standard error, then the end of the script.
fail() {
  local code=$1
  shift
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$code"
}

# logged NAME COMMAND...: the output goes to build/log/NAME.log, and its end is shown if the command fails.
logged() {
  local log=$log_folder/$1.log
  shift
  mkdir -p "$log_folder"
  if ! "$@" >"$log" 2>&1; then
    tail -n 80 "$log" >&2
    fail 1 "'$*' failed; all of its output is in $log"
  fi
}

# package_rows build|tests: rows of the table of packages as "package probe what"; all of them for tests.
package_rows() {
  local package probe purpose what
  while read -r package probe purpose what; do
    case $package in '' | '#'*) continue ;; esac
    if [ "$purpose" = build ] || [ "$1" = tests ]; then echo "$package $probe $what"; fi
  done <tools/packages.txt
}

is_debian_12() {
  [ -r /etc/os-release ] && (. /etc/os-release && [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ])
}

has_package() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

can_be_root() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

# as_root COMMAND...
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -E "$@"; fi
}

# For tests that make network namespaces, mount file systems and fill disks.
require_root() {
  can_be_root || fail 2 "some tests make network namespaces and mount file systems, which only root may; run this as root or install sudo"
}

# ctest_as_root CTEST-OPTIONS...: what the tests leave in build/ belongs to the caller afterwards, also when they are
# interrupted. Without ccache where sudo is needed: files of root in the caller's cache would be in the way of later builds.
ctest_as_root() {
  if [ "$(id -u)" = 0 ]; then
    ctest "$@"
  else
    sudo -E env CCACHE_DISABLE=1 bash -c '
      owner=$1 && shift
      trap : INT TERM
      ctest "$@"
      verdict=$?
      chown -R "$owner" build/
      exit "$verdict"' ctest_as_root "$(id -u):$(id -g)" "$@"
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 "$@"
}

# install_packages build|tests
install_packages() {
  local package missing=()
  while read -r package _; do
    has_package "$package" || missing+=("$package")
  done < <(package_rows "$1")
  if [ ${#missing[@]} = 0 ]; then
    stage "packages: all there"
    return
  fi
  if ! can_be_root; then
    fail 2 "these packages are missing: ${missing[*]}; as root run: apt-get install ${missing[*]}"
  fi
  stage "packages: installing ${#missing[@]} with apt-get"
  logged apt-update apt_get update
  logged apt-install apt_get install -y --no-install-recommends "${missing[@]}"
}

# probe KIND:NAME: whether it is there.
probe() {
  case $1 in
    command:*) command -v "${1#command:}" >/dev/null ;;
    header:*) echo "#include <${1#header:}>" | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1 ;;
    library:*) /usr/bin/python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "${1#library:}" 2>/dev/null ;;
    python:*) /usr/bin/python3 -c 'import sys; __import__(sys.argv[1])' "${1#python:}" 2>/dev/null ;;
    *) fail 1 "tools/packages.txt has a probe '$1' of no known kind" ;;
  esac
}

# require_tools build|tests: for systems other than Debian 12. Lists every missing thing with the name of Debian's
# package, then exit 2.
require_tools() {
  local package what_to_probe what missing=()
  while read -r package what_to_probe what; do
    probe "$what_to_probe" || missing+=("  $what; Debian's package is called $package")
  done < <(package_rows "$1")
  if [ ${#missing[@]} = 0 ]; then
    stage "packages: everything was found on this system"
    return
  fi
  {
    echo "$(basename "$0"): this is not Debian 12, so nothing is installed by itself. Missing here:"
    printf '%s\n' "${missing[@]}"
    echo "Install them with the package manager of this system (the names are alike on Ubuntu and Fedora),"
    echo "or run this script in a Debian 12 container: docker run --rm -it -v \"\$PWD:/src\" -w /src debian:12"
  } >&2
  exit 2
}

# prepare_system build|tests: what the program needs, or what its tests need as well.
prepare_system() {
  if is_debian_12; then install_packages "$1"; else require_tools "$1"; fi
}

# configure PRESET
configure() {
  stage "configure: preset $1"
  logged "configure-$1" cmake --preset "$1"
}

# show_progress NAME: from time to time how far the build in NAME.log is, until it is killed or the script ends.
show_progress() {
  while sleep 20 >/dev/null && kill -0 $$ 2>/dev/null; do
    stage "       $(sed -n 's/^\(\[[0-9]*\/[0-9]*\]\).*/\1/p' "$log_folder/$1.log" | tail -n 1)"
  done
}

# build PRESET [TARGET...]
build() {
  local preset=$1 ticker
  shift
  configure "$preset"
  stage "build: preset $preset, a few minutes the first time; all of its output is in $log_folder/build-$preset.log"
  show_progress "build-$preset" 2>/dev/null &
  ticker=$!
  trap "kill $ticker 2>/dev/null || true" EXIT
  logged "build-$preset" cmake --build --preset "$preset" ${1:+--target "$@"}
  kill "$ticker" 2>/dev/null || true
}
