# shellcheck shell=bash
# What the scripts share. Sourced, not run: sets the shell's options and goes to the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*"; }
die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Package of Debian and Ubuntu, and the command or file by which one sees that it is there, wherever
# it came from.
readonly packages="
  build-essential c++
  cmake           cmake
  ninja-build     ninja
  pkg-config      pkg-config
  libeigen3-dev   /usr/include/eigen3/Eigen/Core
  libcli11-dev    /usr/include/CLI/CLI.hpp
  libfmt-dev      /usr/include/fmt/core.h
  libgtest-dev    /usr/include/gtest/gtest.h
  libgmock-dev    /usr/include/gmock/gmock.h
  libisal-dev     /usr/include/isa-l/erasure_code.h"

missing_packages() {
  local package witness
  while read -r package witness; do
    [[ -z $package || -e $witness ]] || command -v "$witness" >/dev/null || printf '%s ' "$package"
  done <<<"$packages"
}

# Makes sure that everything a build needs is installed: as root by installing it, else by saying what to
# install.
ensure_packages() {
  local missing
  missing=$(missing_packages)
  if [[ -n $missing ]]; then
    command -v apt-get >/dev/null ||
      die "Please install what these packages of Debian hold: $missing"
    [[ $(id -u) == 0 ]] || die "Please run:  sudo apt-get install --yes $missing"
    say "Installing $missing"
    apt-get update --quiet
    # shellcheck disable=SC2086  # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $missing
  fi
  local version
  version=$(cmake --version | awk 'NR == 1 {print $3}')
  [[ $(printf '%s\n' 3.25 "$version" | sort --version-sort | head -n 1) == 3.25 ]] ||
    die "CMake $version is too old: 3.25 is needed, as in Debian 12, Ubuntu 24.04 and later."
}

# build_preset PRESET [TARGET…]: configures and builds all of it, or those targets, into build/PRESET.
build_preset() {
  say "Building (preset $1)"
  cmake --preset "$1"
  local targets=("${@:2}")
  cmake --build --preset "$1" --parallel "$(nproc)" --target "${targets[@]:-all}"
}
