#!/bin/sh
# Installs the AMQP client that the tests use from another language into the target folder, and
# prints the folder. Needs Python 3; on Debian and Ubuntu, as root or where sudo asks nothing, its pip
# is installed if missing.
set -eu
cd "$(dirname "$0")/../.."
folder=$PWD/${CARGO_TARGET_DIR:-target}/python
case ${CARGO_TARGET_DIR:-target} in /*) folder=$CARGO_TARGET_DIR/python ;; esac
version=1.3.2
if [ ! -d "$folder/pika-$version.dist-info" ]; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
        as_root=
        if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then as_root='sudo -n'; fi
        if { [ "$(id -u)" = 0 ] || [ -n "$as_root" ]; } && command -v apt-get >/dev/null; then
            {
                $as_root apt-get update -qq
                $as_root apt-get install -y -qq --no-install-recommends python3-pip
            } >&2
        else
            echo 'install Python 3 with pip (on Debian and Ubuntu: python3-pip)' >&2
            exit 1
        fi
    fi
    python3 -m pip install --quiet --disable-pip-version-check --no-input \
        --target "$folder" "pika==$version" >&2
fi
echo "$folder"
