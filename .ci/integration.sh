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

# Without -p 1 several packages would start ensembles at once and time out on a small machine.
cd integration
exec $go test -race -count=1 -p 1 -timeout "${INTEGRATION_TIMEOUT:-25m}" ./...
