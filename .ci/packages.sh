#!/usr/bin/env bash
# Prints which of Debian's packages that the checks need are not installed. With the word install
# it installs them, as root. Other words are packages: it is then about those alone.
set -euo pipefail

# gcc and libc6-dev: race detector. debootstrap: the ZooKeeper image. The JDK and
# Curator, Python and kazoo: the foreign peers. iproute2, iptables: faults in a container's network.
# openssl: the commands of docs/tls.md.
# etcd and Redis: peers that Docent is measured beside.
# prometheus: the server that scrapes Docent in make observe, and promtool.
# chromium: the browser in which the page of docent ui is tested.
# krb5: a KDC of the tests' own; Debian's own service is not used.
# The databases: fencing, on private servers. Debian starts one of PostgreSQL's own, which is not used.
packages=(make gcc libc6-dev git ca-certificates debootstrap iproute2 iptables openssl
  openjdk-17-jdk-headless libcurator-recipes-java libcurator-discovery-java libzookeeper-java libslf4j-java
  python3 python3-kazoo etcd-server redis-server
  postgresql mariadb-server-core mariadb-client-core prometheus
  krb5-kdc krb5-admin-server krb5-user chromium)
install=
if [ "${1:-}" = install ]; then install=yes; shift; fi
[ $# = 0 ] || packages=("$@")
missing=()
for p in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)
  [ "$status" = 'install ok installed' ] || missing+=("$p")
done
[ "${#missing[@]}" != 0 ] || exit 0
if [ -z "$install" ]; then
  printf '%s\n' "${missing[*]}"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  printf '.ci/packages.sh: not root; install first: %s\n' "${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q install -y --no-install-recommends "${missing[@]}"
