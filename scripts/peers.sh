#!/usr/bin/env bash
# Installs what the Java peers of the integration tests need, from Debian's packages:
# a JDK and Curator's recipes with their dependencies. Does nothing when all is there.
set -euo pipefail

readonly packages=(default-jdk-headless libcurator-recipes-java)

die() { printf 'peers: %s\n' "$*" >&2; exit 1; }

present() {
  command -v javac >/dev/null && command -v java >/dev/null && [ -e /usr/share/java/curator-recipes.jar ]
}

if ! present; then
  command -v apt-get >/dev/null || die "this host has no apt-get. Install a JDK and put Curator's jars under /usr/share/java"
  [ "$(id -u)" = 0 ] || die "installing needs root. Run: sudo apt-get install ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y --no-install-recommends "${packages[@]}" >&2 ||
    { apt-get update >&2 && apt-get install -y --no-install-recommends "${packages[@]}" >&2; } ||
    die "cannot install. Run: apt-get update && apt-get install ${packages[*]}"
  present || die "the packages are installed, but javac or /usr/share/java/curator-recipes.jar is not there"
fi
printf 'peers: %s, Curator %s\n' "$(javac -version 2>&1)" \
  "$(dpkg-query -W -f '${Version}' libcurator-recipes-java 2>/dev/null || echo 'of unknown version')"
