#!/bin/sh
# Shows that fault points are in builds with their feature alone: one without does not know FAULT_POINT.
# Leaves that build of the programs in the target folder.
set -eu
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}/debug

build() {
    # With one small test, so that the dependencies are those of the test build.
    cargo build -q --workspace --bin scheduler --bin worker --bin sexton --test servers "$@"
}

knows() {
    grep -q FAULT_POINT "$folder/$1"
}

# First that the look sees them where they are.
build --features sexton-service/fault-points
for program in scheduler worker sexton; do
    knows "$program" || { echo "the test build of $program has no fault points" >&2; exit 1; }
done
status=0
FAULT_POINT=no.such "$folder/sexton" cron next '* * * * *' >/dev/null 2>&1 || status=$?
[ "$status" = 2 ] || { echo "the test build takes any FAULT_POINT" >&2; exit 1; }

build
for program in scheduler worker sexton; do
    ! knows "$program" || { echo "the normal build of $program has fault points" >&2; exit 1; }
done
FAULT_POINT=no.such "$folder/sexton" cron next '* * * * *' >/dev/null
FAULT_POINT=console.triggered "$folder/sexton" cron next '* * * * *' >/dev/null
echo 'the normal build has no fault points'
