#!/usr/bin/env bash
# Runs one ZooKeeper server for development on this machine.
#
#   scripts/zookeeper.sh start [option]...    start it and wait until it answers
#   scripts/zookeeper.sh status [--port P]    say whether it answers
#   scripts/zookeeper.sh stop [--port P]      end it and remove its data
#
# Options of start:
#
#   --port P    listen on this port of 127.0.0.1; default 2181
#   --host      run Debian's zookeeper package on this host, not a container
#   --direct    let the container use this host's network, so that the server sees its
#               clients under their own addresses; Linux only
#   --tick MS   ZooKeeper's tickTime; default 2000
#   --sweep MS  how often empty containers and stale TTL nodes are swept; default 60000
#   --users     let clients log in by SASL with DIGEST-MD5, as the users of the tests of
#               internal/zkserver (login_rig_test.go), and enforce quotas
#
# It listens on 127.0.0.1 only. It runs in a container made from the image of
# zookeeper-image.sh, or from ZOOKEEPER_IMAGE; with --host, or where Docker does not
# answer, on this host. Its data is temporary. Several can run on different ports;
# start does nothing when the one on this port is up.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly wait_seconds=60
readonly jars=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar
command=${1-} port=2181 host='' direct='' users='' tick=2000 sweep=60000

say() { printf 'zookeeper: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
usage() { die "usage: $0 start|stop|status [--port P] [--host] [--direct] [--tick MS] [--sweep MS] [--users]"; }

parse() {
  [ $# -gt 0 ] && shift || usage
  while [ $# -gt 0 ]; do
    case "$1" in
      --port) [ $# -ge 2 ] || usage; port=$2; shift 2 ;;
      --port=*) port=${1#*=}; shift ;;
      --host) host=1; shift ;;
      --direct) direct=1; shift ;;
      --users) users=1; shift ;;
      --tick) [ $# -ge 2 ] || usage; tick=$2; shift 2 ;;
      --sweep) [ $# -ge 2 ] || usage; sweep=$2; shift 2 ;;
      *) usage ;;
    esac
  done
  [[ $port =~ ^[0-9]{1,5}$ ]] && [ "$port" -ge 1 ] && [ "$port" -le 65535 ] || die "not a port: $port"
  [[ $tick =~ ^[1-9][0-9]{0,8}$ && $sweep =~ ^[1-9][0-9]{0,8}$ ]] || die "not a number of milliseconds: $tick or $sweep"
  name=docent-zookeeper-$port
  state=${TMPDIR:-/tmp}/$name.$(id -u)
}

have_docker() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

# The answer to a four-letter word; empty when there is none in two seconds.
ask() { timeout 2 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf %s "$1" >&3 && cat <&3' "$port" "$1" 2>/dev/null || true; }

answers() { [ "$(ask srvr | grep -c '^Mode:')" = 1 ]; }

taken() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

container_state() { docker container inspect --format '{{.State.Status}}' "$name" 2>/dev/null || true; }

# The server's process on this host, if it is still the one that start made.
host_pid() {
  local pid
  [ -r "$state/pid" ] || return 0
  pid=$(<"$state/pid")
  tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "$state/zoo.cfg" && printf '%s' "$pid" || true
}

system_properties() { # the folder of the configuration
  printf '%s' "-Dzookeeper.extendedTypesEnabled=true -Dznode.container.checkIntervalMs=$sweep"
  [ -z "$users" ] || printf '%s' " -Dzookeeper.enforceQuota=true -Djava.security.auth.login.config=$1/jaas.conf"
}

jaas() {
  printf 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required %s; };\n' \
    'user_docent="s3cret" user_other="pw2" user_super="adminpw" "user_höß"="pässwörd" "user_€uro"="€" "user_at@realm"="pw3"'
}

config() { # data directory, address
  printf '%s\n' "dataDir=$1" "clientPort=$port" "clientPortAddress=$2" "tickTime=$tick" maxClientCnxns=0 \
    admin.enableServer=false '4lw.commands.whitelist=*' forceSync=no
  [ -z "$users" ] || echo authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
}

start_container() {
  local image address=0.0.0.0 network=(--publish "127.0.0.1:$port:$port")
  [ -z "$direct" ] || address=127.0.0.1 network=(--network host)
  image=${ZOOKEEPER_IMAGE:-$("$here/zookeeper-image.sh" | tail -n 1)} || die "there is no image; see above"
  [ -z "$(container_state)" ] || docker rm --force --volumes "$name" >/dev/null
  mkdir -p "$state"
  config /data "$address" >"$state/zoo.cfg"
  jaas >"$state/jaas.conf"
  # Without JMXDISABLE, zkServer.sh of the official image opens one more port, on every address.
  docker create --name "$name" "${network[@]}" \
    --env "JVMFLAGS=-Xmx256m $(system_properties /conf)" --env JMXDISABLE=true \
    --entrypoint /bin/bash "$image" /docent/start.sh >/dev/null ||
    die "cannot make a container from $image"
  # Through a tar stream: docker cp does not make the missing directories.
  tar -c -C "$state" --transform 's,^,conf/,' zoo.cfg jaas.conf | docker cp - "$name:/"
  tar -c -C "$here/../integration/zkcontainer" --transform 's,^start.sh,docent/start.sh,' start.sh | docker cp - "$name:/"
  docker start "$name" >/dev/null || { docker rm --force "$name" >/dev/null; die "cannot start the container"; }
}

start_host() {
  [ -e "${jars%%:*}" ] && command -v java >/dev/null || install_package
  mkdir -p "$state/data"
  config "$state/data" 127.0.0.1 >"$state/zoo.cfg"
  jaas >"$state/jaas.conf"
  # shellcheck disable=SC2046 # several words
  setsid java -Xmx256m $(system_properties "$state") -cp "$jars" \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$state/zoo.cfg" >"$state/log" 2>&1 </dev/null &
  printf '%s' $! >"$state/pid"
}

install_package() {
  command -v apt-get >/dev/null || die "Docker does not answer, and there is no apt-get to install Debian's zookeeper. Install one of the two"
  [ "$(id -u)" = 0 ] || die "Debian's zookeeper is missing. Run: sudo apt-get install zookeeper openjdk-17-jre-headless"
  export DEBIAN_FRONTEND=noninteractive
  say "installing Debian's zookeeper"
  apt-get install -y --no-install-recommends zookeeper default-jre-headless >&2 ||
    { apt-get update >&2 && apt-get install -y --no-install-recommends zookeeper default-jre-headless >&2; } ||
    die "cannot install. Run: apt-get update && apt-get install zookeeper default-jre-headless"
}

log() {
  if [ -n "$(host_pid)" ] || [ -r "$state/log" ]; then tail -n 20 "$state/log"; else docker logs --tail 20 "$name"; fi >&2 2>&1 || true
}

alive() { [ -n "$(host_pid)" ] || { [ -z "$host" ] && [ "$(container_state)" = running ]; }; }

start() {
  if [ -n "$(host_pid)" ] || { have_docker && [ "$(container_state)" = running ]; }; then
    say "is up already"
  else
    ! taken || die "port $port is taken by another program. Choose one: $0 start --port P"
    if [ -z "$host" ] && ! have_docker; then
      say "Docker does not answer; using this host"
      host=1
    fi
    if [ -n "$host" ]; then start_host; else start_container; fi
  fi
  local until=$((SECONDS + wait_seconds))
  until answers; do
    alive || { log; remove; die "the server ended; the end of its log is above"; }
    [ "$SECONDS" -lt "$until" ] || { log; remove; die "the server did not answer in $wait_seconds s; the end of its log is above"; }
    sleep 0.2
  done
  say "ZooKeeper $(ask srvr | sed -n 's/^Zookeeper version: \([^,-]*\).*/\1/p') answers"
  printf '127.0.0.1:%s\n' "$port"
}

remove() {
  local pid
  pid=$(host_pid)
  if [ -n "$pid" ]; then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do [ -n "$(host_pid)" ] || break; sleep 0.1; done
    [ -z "$(host_pid)" ] || kill -KILL "$pid" 2>/dev/null || true
  fi
  if have_docker && [ -n "$(container_state)" ]; then docker rm --force --volumes "$name" >/dev/null; fi
  rm -rf -- "$state"
}

stop() {
  if [ -z "$(host_pid)" ] && ! { have_docker && [ -n "$(container_state)" ]; }; then
    say "was not up"
    rm -rf -- "$state"
    return
  fi
  remove
  say "stopped"
}

status() {
  if answers; then
    say "answers on 127.0.0.1:$port: $(ask srvr | sed -n 's/^Mode: //p')"
  else
    die "nothing answers on 127.0.0.1:$port"
  fi
}

parse "$@"
case "$command" in
  start) start ;;
  stop) stop ;;
  status) status ;;
  *) usage ;;
esac
