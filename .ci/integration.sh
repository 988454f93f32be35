#!/usr/bin/env bash
# Runs the tests of the integration module. They need Docker; without it this fails,
# because a run that tested nothing must not look like one that passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=${GO:-go}

if ! command -v docker >/dev/null 2>&1; then
  cat >&2 <<'END'
integration: no docker command. The tests start ZooKeeper in containers.
Install Docker (Debian: apt-get install docker.io; elsewhere Docker Engine 20.10 or
later) and run again. `make test` needs Go only.
END
  exit 1
fi
if ! reason=$(docker info --format '{{.ServerVersion}}' 2>&1); then
  printf 'integration: the Docker engine does not answer: %s\n' "$reason" >&2
  echo 'Start it (systemctl start docker) and make sure that you may use it (group docker).' >&2
  exit 1
fi
if [ ! -f integration/go.mod ]; then
  echo 'integration: integration/go.mod is missing' >&2
  exit 1
fi

# These mostly wait for servers and for other programs, so two run side by side; the longest begins.
# Every other package measures times or fills the machine, and runs alone. A new one does too.
beside=(interop caches grpcdocent tls fence locks sasl linear registered watches harness sessions command admin proxy conformance discovery toxiproxy peers mutex)

cd integration
listed=$($go list ./...)
alone=$(grep -vE "/($(IFS='|'; echo "${beside[*]}"))\$" <<<"$listed")

status=0
run() { $go test -race -count=1 -timeout "${INTEGRATION_TIMEOUT:-25m}" "$@" || status=$?; }
# shellcheck disable=SC2086 # one package a word
run -p 1 $alone
run -p 2 "${beside[@]/#/./}"
# The module that users have, and its examples.
cd zkcontainer
run ./...
cd ../../docs/examples/containers
run ./...
exit "$status"
