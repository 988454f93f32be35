#!/usr/bin/env bash
# Installs what the tests of integration/fence need, from Debian's packages: the programs
# of PostgreSQL and MariaDB. The tests start servers of their own; no service of the host
# is used. Does nothing when all is there.
set -euo pipefail

readonly packages=(postgresql mariadb-server-core mariadb-client-core)

die() { printf 'databases: %s\n' "$*" >&2; exit 1; }

present() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || return 1
  PATH=$PATH:/usr/sbin command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null &&
    command -v my_print_defaults >/dev/null
}

if ! present; then
  command -v apt-get >/dev/null || die 'this host has no apt-get. Install PostgreSQL and MariaDB (initdb, postgres, mariadb-install-db, mariadbd)'
  [ "$(id -u)" = 0 ] || die "installing needs root. Run: sudo apt-get install ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y --no-install-recommends "${packages[@]}" >&2 ||
    { apt-get update >&2 && apt-get install -y --no-install-recommends "${packages[@]}" >&2; } ||
    die "cannot install. Run: apt-get update && apt-get install ${packages[*]}"
  present || die 'the packages are installed, but initdb, mariadbd, mariadb-install-db or my_print_defaults is not there'
fi
version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo 'of unknown version'; }
printf 'databases: PostgreSQL %s, MariaDB %s\n' "$(version postgresql)" "$(version mariadb-server-core)"
