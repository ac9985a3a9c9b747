#!/bin/sh
# Sees that there is valgrind: on Debian and Ubuntu, as root or where sudo asks nothing, it is installed if
# missing. Otherwise says what to do, and fails.
set -eu
cd "$(dirname "$0")/../.."
if command -v valgrind >/dev/null; then exit; fi
as_root=
if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then as_root='sudo -n'; fi
if { [ "$(id -u)" = 0 ] || [ -n "$as_root" ]; } && command -v apt-get >/dev/null; then
    echo 'counts: installing the package valgrind with apt-get' >&2
    if $as_root sh tests/servers/src/install-debian.sh valgrind >&2; then exit; fi
fi
echo 'counts: NOTHING was counted, there is no valgrind: install it (on Debian and Ubuntu the package valgrind)' >&2
exit 1
