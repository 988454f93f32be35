#!/usr/bin/env bash
# Runs every Fuzz target of the module for FUZZTIME. Go fuzzes one target of one
# package at a time, so they are discovered and run one after another. All of them
# run even when one fails; a failing input stays under testdata/fuzz, to be committed
# with the fix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=${GO:-go}
fuzztime=${FUZZTIME:-50000x}
ran=0
failed=()

# Only of these packages are the tests linked, which takes a second or two each.
packages=$($go list -f '{{.Dir}} {{.ImportPath}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}' ./... |
  while read -r dir pkg files; do
    # shellcheck disable=SC2086 # one file a word
    if [ -n "$files" ] && (cd "$dir" && grep -q '^func Fuzz' $files); then printf '%s\n' "$pkg"; fi
  done)
for pkg in $packages; do
  listed=$($go test -list '^Fuzz' "$pkg")
  for target in $(grep '^Fuzz' <<<"$listed" || true); do
    echo "fuzz $pkg $target for $fuzztime"
    ran=$((ran + 1))
    $go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 10x "$pkg" ||
      failed+=("$pkg.$target")
  done
done

if [ "$ran" = 0 ]; then
  echo 'fuzz: no target found, so nothing was tested' >&2
  exit 1
fi
if [ "${#failed[@]}" != 0 ]; then
  printf 'fuzz: FAIL %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "fuzz: $ran targets, none failed"
