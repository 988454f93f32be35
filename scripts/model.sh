#!/usr/bin/env bash
# Checks recipes/internal/seqqueue/chain.pml with the model checker spin: every
# configuration holds in all of its states, and every planted bug is found. A
# configuration is the number of acquires of two clients and what goes wrong, how often.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { printf 'model: %s\n' "$*" >&2; exit 1; }
for tool in spin cc; do
  command -v "$tool" >/dev/null || die "$tool is not installed (Debian: apt-get install spin gcc libc6-dev)"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp recipes/internal/seqqueue/chain.pml "$work"
cd "$work"

# check BUG NAME=NUMBER... leaves what spin says in the file said. What is not named does
# not go wrong; client 0 makes two acquires and client 1 one.
check() {
  local -A is=([ACQUIRES0]=2 [ACQUIRES1]=1 [EVICTIONS]=0 [ANEW]=0 [CUTS]=0 [QUITTERS]=0 [EXPIRIES]=0 [FORGETS]=0)
  local defined=("-DBUG=$1") name
  shift
  for name in "$@"; do is[${name%=*}]=${name#*=}; done
  for name in "${!is[@]}"; do defined+=("-D$name=${is[$name]}"); done
  spin -a "${defined[@]}" chain.pml >said 2>&1 || { cat said >&2; die 'chain.pml is not accepted'; }
  cc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c >said 2>&1 || { cat said >&2; die 'the verifier does not compile'; }
  ./pan -m400000 -n >said 2>&1 || true
  # A search that was cut short has proved nothing.
  if ! grep -q 'errors: ' said || { grep -q 'errors: 0' said && grep -qE 'max search depth too small|out of memory|Search not completed' said; }; then
    cat said >&2
    die "the search did not end: $*"
  fi
}

# holds NAME=NUMBER... checks that the protocol holds in every state.
holds() {
  check 0 "$@"
  grep -q 'errors: 0' said || { cat said >&2; die "the protocol does not hold: $*"; }
  printf 'model: holds in %s states: %s\n' "$(awk '/states, stored/ { print $1; exit }' said)" "${*:-nothing goes wrong}"
}

# found BUG NAME=NUMBER... checks that a planted bug is found.
found() {
  check "$@"
  if grep -q 'errors: 0' said; then die "planted bug $1 is not found: ${*:2}"; fi
  printf 'model: found planted bug %s\n' "$(awk -v b="$1" '$1 == "#define" && $3 == b { print $2; exit }' chain.pml)"
}

holds
holds ACQUIRES0=3
holds EVICTIONS=1 FORGETS=1
holds ANEW=1 EVICTIONS=1
holds ANEW=1 CUTS=1
holds EXPIRIES=1 FORGETS=1
holds CUTS=1 QUITTERS=1
holds QUITTERS=1 EXPIRIES=1
holds ACQUIRES0=3 ACQUIRES1=0 EVICTIONS=1 QUITTERS=1
holds ROOM=1 QUITTERS=1

found 1 QUITTERS=1
found 2
found 3 ANEW=1
found 4 EXPIRIES=1
found 5 ACQUIRES0=3 ACQUIRES1=0 QUITTERS=1
found 6 ROOM=1 QUITTERS=1
found 7 ANEW=1 CUTS=1
found 8 ACQUIRES0=3 ACQUIRES1=0
found 9
found 10 EVICTIONS=1
