#!/usr/bin/env bash
# Installs the peers into the folder given (target/bench/peers): a virtual environment, the npm packages with
# a Node that they accept, a program around River's client, Redis if the machine has none, and Debian's cron. Says what
# is missing and goes on: run.py reports the peers that need it as missing. Nothing outside the folder is changed. Run it
# again at any time.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1/missing" && cd "$1" || exit 1
folder=$PWD
rm -f missing/*

missing() {
    echo "$2" >"missing/$1"
    echo "missing: $1: $2" >&2
}

python_peers() {
    local stamp=venv/installed
    cmp -s "$here/requirements.txt" "$stamp" && return
    rm -rf venv
    # Some distributions leave ensurepip out; a pip outside can fill the environment as well.
    python3 -m venv venv || python3 -m venv --without-pip venv || return
    if [ -x venv/bin/pip ]; then
        venv/bin/pip install -q --no-deps -r "$here/requirements.txt" || return
    else
        python3 -m pip --python venv/bin/python install -q --no-deps -r "$here/requirements.txt" || return
    fi
    cp "$here/requirements.txt" "$stamp"
}

node_peers() {
    cmp -s "$here/package-lock.json" node/installed && return
    mkdir -p node && cp "$here"/{package.json,package-lock.json,.npmrc} node/ || return
    # No package needs a script of its own; engines are those of the Node that comes with the packages.
    (cd node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) || return
    cp "$here/package-lock.json" node/installed
}

# River's client for Rust needs cargo alone, where the one for Go would need another toolchain and registry.
river() {
    command -v cargo >/dev/null || return
    cargo build -q --release --locked --manifest-path "$here/river/Cargo.toml" --target-dir river
}

# Unpacks packages of the distribution into a folder here, without installing them.
unpack() {
    command -v apt-get >/dev/null || return
    local into=$1
    shift
    mkdir -p "$into/packages"
    (cd "$into/packages" && apt-get -o APT::Sandbox::User=root -qq download "$@") || return
    for package in "$into"/packages/*.deb; do dpkg-deb -x "$package" "$into" || return; done
}

redis() {
    command -v redis-server >/dev/null && return
    [ -x redis/usr/bin/redis-server ] && return
    command -v apt-cache >/dev/null || return
    local names
    names=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances redis-server | grep -E '^(redis-|lib(jemalloc|lua|lzf|atomic|hiredis))') || return
    # shellcheck disable=SC2086 # one word for each package
    unpack redis $names && [ -x redis/usr/bin/redis-server ]
}

# Also where the machine has a cron: the measured one has files of its own, for which it needs root.
cron() {
    [ "$(id -u)" = 0 ] && command -v unshare >/dev/null || return
    [ -f cron/version ] && return
    unpack cron cron cron-daemon-common || return
    dpkg-deb -f cron/packages/cron_*.deb Version >cron/version
}

python_peers || missing python 'no virtual environment: it needs python3 with venv or pip, and the package registry'
node_peers || missing node 'npm ci failed; it needs npm and the package registry'
river || missing river 'cargo could not build it; it needs Rust 1.95 and the registry of crates'
redis || missing redis 'no redis-server on the machine, nor in its distribution'
cron || missing cron 'it needs root, unshare, and the packages of Debian or Ubuntu'
echo "the peers are in $folder"
