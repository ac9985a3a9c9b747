#!/bin/sh
# Installs the shells whose completion the tests ask: bash, zsh and fish. On Debian and Ubuntu, as root or where sudo
# asks nothing, missing ones are installed as packages.
set -eu
missing=
for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || missing="$missing $shell"
done
[ -n "$missing" ] || exit 0
as_root=
if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then as_root='sudo -n'; fi
if { [ "$(id -u)" != 0 ] && [ -z "$as_root" ]; } || ! command -v apt-get >/dev/null; then
    echo "install the shells$missing" >&2
    exit 1
fi
$as_root apt-get -qq -o DPkg::Lock::Timeout=300 update >&2
# shellcheck disable=SC2086
$as_root apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing >&2
