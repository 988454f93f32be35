#!/usr/bin/env bash
# Installs what the peers of the integration tests need, from Debian's packages: a JDK
# and Curator's recipes with their dependencies, Debian's Python and kazoo. Does nothing
# when all is there.
set -euo pipefail

readonly packages=(default-jdk-headless libcurator-recipes-java libcurator-discovery-java python3 python3-kazoo)

die() { printf 'peers: %s\n' "$*" >&2; exit 1; }

present() {
  command -v javac >/dev/null && command -v java >/dev/null && [ -e /usr/share/java/curator-recipes.jar ] && [ -e /usr/share/java/curator-x-discovery.jar ] &&
    /usr/bin/python3 -c 'import kazoo.client' 2>/dev/null
}

if ! present; then
  command -v apt-get >/dev/null || die "this host has no apt-get. Install a JDK, put Curator's jars under /usr/share/java, and give /usr/bin/python3 kazoo"
  [ "$(id -u)" = 0 ] || die "installing needs root. Run: sudo apt-get install ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y --no-install-recommends "${packages[@]}" >&2 ||
    { apt-get update >&2 && apt-get install -y --no-install-recommends "${packages[@]}" >&2; } ||
    die "cannot install. Run: apt-get update && apt-get install ${packages[*]}"
  present || die "the packages are installed, but javac, /usr/share/java/curator-recipes.jar, curator-x-discovery.jar or kazoo for /usr/bin/python3 is not there"
fi
version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo 'of unknown version'; }
printf 'peers: %s, Curator %s, kazoo %s\n' "$(javac -version 2>&1)" \
  "$(version libcurator-recipes-java)" "$(version python3-kazoo)"
