#!/usr/bin/env bash
# Compares zktest with real ZooKeeper servers, request by request, by random sequences.
# zktest behaves as the release that the servers say they are of.
#
# It starts two servers, one for each core of a small machine, and ends them. They
# must see their clients under their own addresses, so they use this host's network,
# or are processes of this host where Docker does not answer. Where DOCENT_ZK_DIFF
# names servers (host:port, separated by commas), it uses those and starts none:
# internal/zkserver/differential_test.go says how they must be set up.
#
# DIFF_OPS says how many requests to make at least, DIFF_SEED repeats a run that
# differed: see internal/zkserver/differential_test.go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=${GO:-go}
first=${DIFF_PORT:-21831}
servers=()

finish() {
  local s
  for s in "${servers[@]}"; do scripts/zookeeper.sh stop --port "${s##*:}" || true; done
}
trap finish EXIT

if [ -z "${DOCENT_ZK_DIFF:-}" ]; then
  for port in "$first" $((first + 1)); do
    servers+=("127.0.0.1:$port")
    # The sweep of containers would take zxids: once a week is never.
    scripts/zookeeper.sh start --direct --port "$port" --tick 1000 --sweep 600000000 --users >/dev/null
  done
  DOCENT_ZK_DIFF=$(IFS=,; printf '%s' "${servers[*]}")
fi
DOCENT_ZK_DIFF=$DOCENT_ZK_DIFF DIFF_OPS=${DIFF_OPS:-200000} \
  $go test -count=1 -v -timeout 10m -tags differential -run '^TestDifferential$' ./internal/zkserver
