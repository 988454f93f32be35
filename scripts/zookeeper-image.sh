#!/usr/bin/env bash
# Builds the container image of ZooKeeper that the integration tests use where the
# official image cannot be pulled. The image holds Debian 12 with Debian's own
# zookeeper package and a headless Java 17; it is made with debootstrap, so no
# container registry is needed, only a Debian mirror: the one this host's apt is
# configured with, else debootstrap's default.
#
# The image is kept in the Docker engine and built again only when this script has
# changed. The last line printed on standard output is the tag; all else goes to
# standard error, so
#
#   export ZOOKEEPER_IMAGE=$(scripts/zookeeper-image.sh)
#
# works. --force builds even when the image is there.
set -euo pipefail

readonly suite=bookworm
readonly tag=docent/zookeeper:debian12
readonly packages=zookeeper,openjdk-17-jre-headless,ca-certificates
readonly label=docent.zookeeper.recipe

say() { printf 'zookeeper-image: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# What the image depends on, in one word: a changed script makes a new image.
recipe() { sha256sum "${BASH_SOURCE[0]}" | cut -c1-16; }

have_image() {
  [ "$(docker image inspect --format "{{index .Config.Labels \"$label\"}}" "$tag" 2>/dev/null)" = "$(recipe)" ]
}

need_docker() {
  command -v docker >/dev/null || die "no docker command. Install it: apt-get install docker.io"
  docker info >/dev/null 2>&1 || die "the Docker engine does not answer. Start it (systemctl start docker) or set DOCKER_HOST; you need the right to use it"
}

need_debootstrap() {
  [ "$(id -u)" = 0 ] || die "building needs root (debootstrap makes devices and uses chroot). Run: sudo $0"
  command -v debootstrap >/dev/null && return
  command -v apt-get >/dev/null || die "debootstrap is missing and this host has no apt-get. Install debootstrap by hand"
  say "installing debootstrap"
  { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends debootstrap ||
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends debootstrap; }
  } >&2 || die "cannot install debootstrap. Run: apt-get update && apt-get install debootstrap"
}

# The Debian mirror of the host's own apt configuration; empty when there is none.
mirror() {
  command -v apt-get >/dev/null || return 0
  apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v suite="$suite" '$1 == "Debian" && $2 == suite && $3 == "main" { print $4; exit }'
}

# apt's proxy, which debootstrap does not read by itself.
proxy() {
  command -v apt-config >/dev/null || return 0
  local p=
  eval "$(apt-config shell p Acquire::http::Proxy)"
  [ "$p" = DIRECT ] || printf '%s' "$p"
}

build() {
  local work root from via log
  work=$(mktemp -d "${TMPDIR:-/tmp}/docent-image.XXXXXX")
  # shellcheck disable=SC2064 # expand now: the variable is local
  trap "rm -rf --one-file-system '$work'" EXIT
  root=$work/root log=$work/log
  from=$(mirror)
  via=$(proxy)
  [ -z "$via" ] || export http_proxy=${http_proxy:-$via}
  say "debootstrap $suite from ${from:-its default mirror} (about a minute)"
  debootstrap --variant=minbase --include="$packages" "$suite" "$root" ${from:+"$from"} >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    [ ! -f "$root/debootstrap/debootstrap.log" ] || tail -n 20 "$root/debootstrap/debootstrap.log" >&2
    die "debootstrap failed; the end of its log is above. It needs a reachable Debian mirror with $suite"
  }
  [ -e "$root/usr/share/java/zookeeper.jar" ] || die "the tree has no /usr/share/java/zookeeper.jar: the package's layout has changed"
  [ -e "$root/usr/share/java/slf4j-simple.jar" ] || die "the tree has no /usr/share/java/slf4j-simple.jar: the package's layout has changed"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale,info}/*
  say "importing"
  tar -C "$root" --numeric-owner --one-file-system -c . |
    docker import \
      --change "LABEL $label=$(recipe)" \
      --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
      --change 'ENV LANG=C.UTF-8' \
      - "$tag" >&2 || die "docker import failed"
}

main() {
  local force=
  case "${1-}" in
    '') ;;
    --force) force=1 ;;
    *) die "usage: $0 [--force]" ;;
  esac
  need_docker
  # Two builders at once would do the work twice; the second finds it done.
  exec 9>"${TMPDIR:-/tmp}/docent-image.$(id -u).lock"
  flock 9
  if [ -z "$force" ] && have_image; then
    say "up to date"
  else
    need_debootstrap
    build
  fi
  printf '%s\n' "$tag"
}

main "$@"
