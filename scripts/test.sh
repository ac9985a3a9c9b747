#!/usr/bin/env bash
# Runs every test, given the arguments that all of cargo's builds share: `bash scripts/test.sh --features …`.
#
# The tests of `it` wait for servers most of the time, most others compute; so the two run side by side, those that
# compute at a low priority. Their output comes when `it` has ended, and that of failed tests once more at the end. Called
# by the Makefile under `with-servers`.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
others=${CARGO_TARGET_DIR:-target}/test-others.log
it=${CARGO_TARGET_DIR:-target}/test-it.log

# First, since two builds of the same folder would wait for one another.
$cargo test -q --workspace --no-run "$@"

run_others() {
    status=0
    # These start servers, within times that `it` would not leave to a low priority.
    $cargo test --workspace --no-fail-fast "$@" --test servers || status=$?
    renice -n 10 -p "$BASHPID" >/dev/null 2>&1 || true
    $cargo test --workspace --no-fail-fast "$@" --lib --bins --examples || status=$?
    # Documentation tests are a kind that cargo runs only by itself.
    $cargo test --workspace --no-fail-fast "$@" --doc || status=$?
    return "$status"
}

# Four tests at a time for each processor: more would make a small machine miss deadlines.
processors=$(getconf _NPROCESSORS_ONLN)
threads=$((processors < 4 ? processors * 4 : 16))

# A process group of its own, so that an interrupted run ends all of it.
set -m
run_others "$@" >"$others" 2>&1 &
pid=$!
set +m
trap 'kill -- "-$pid" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

status=0
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$threads} $cargo test --workspace --no-fail-fast "$@" --test it 2>&1 |
    tee "$it" || status=$?
# Nothing has precedence any more, and what else runs on the machine may not starve them. Only root may do so.
renice -n 0 -g "$pid" >/dev/null 2>&1 || true
wait "$pid" || status=$?
trap - EXIT
cat "$others"
if [ "$status" != 0 ]; then
    printf '\nSome tests failed. What they printed, once more:\n'
    sed -n '/^failures:$/,/^test result:/p' "$it" "$others" | cut -c 1-2000 | head -n 400
fi
exit "$status"
