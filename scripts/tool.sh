#!/bin/sh
# Prints where a tool of the checks is, at the version that is pinned here; builds it into the target folder first
# if it is not there. It runs for a second or two, so optimising it would take longer than it saves.
set -eu
cd "$(dirname "$0")/.."

case ${1:-} in
    cargo-deny) version=0.20.2 ;;
    cargo-fuzz) version=0.13.2 ;;
    cargo-machete) version=0.9.2 ;;
    *) echo "usage: sh scripts/tool.sh cargo-deny|cargo-fuzz|cargo-machete" >&2; exit 2 ;;
esac
tools=$PWD/target/tools
# Some say their name before the version.
found=$("$tools/bin/$1" --version 2>/dev/null || true)
if [ "${found##* }" != "$version" ]; then
    CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 \
        cargo install -q --locked --debug --force --root "$tools" "$1" --version "$version" >&2
fi
echo "$tools/bin/$1"
