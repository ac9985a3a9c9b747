#!/bin/sh
# Runs a command on another generation of servers, for example
#
#   sh scripts/next-servers.sh make test
#   sh scripts/next-servers.sh target/debug/with-servers cargo test -p sexton-tests --test it -- broker::
#
# The servers are a Debian release's packages, unpacked into a folder under the target folder and run
# from there by chroot: beside what is installed on this machine, touching none of it. `tests/servers`
# starts them, and refuses any whose version is not the one stated here. Without a command the folder is
# only prepared.
#
# Needs root, Debian's or Ubuntu's apt, 1 GB of disk, and two minutes the first time. The archive is the
# one that apt's own sources name, or TEST_SERVERS_MIRROR. An interrupted preparation leaves packages that
# the next one need not download again, and nothing that looks like a prepared folder.
set -eu

# What "next" is, and nowhere else. The compose files name the same versions; a test compares them.
release=trixie
packages=postgresql-17,rabbitmq-server
versions='postgresql=17 rabbitmq=4.0'

# Downloads and unpacking together; two minutes are usual.
limit_s=1800

self=$0
target=${CARGO_TARGET_DIR:-$(dirname "$0")/../target}
PATH=$PATH:/usr/sbin:/sbin

say() { echo "next-servers: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

# The archive of Debian that this machine's packages come from.
mirror() {
    if [ -n "${TEST_SERVERS_MIRROR:-}" ]; then
        echo "$TEST_SERVERS_MIRROR"
        return
    fi
    # shellcheck disable=SC2016 # apt fills these in.
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" { print $4; exit }'
}

# Unpacks and configures the system; nothing of it is started, and no one sees it before it is whole.
# Runs where what is mounted and started vanishes with this script.
build() {
    root=$1 archive=$2 cache=$3
    rm -rf --one-file-system -- "$root.new"
    mkdir -p "$cache"
    debootstrap --foreign --variant=minbase --cache-dir="$cache" --include="$packages" \
        "$release" "$root.new" "$archive"
    # 101: not allowed. No service of this system is ever to be started by its packages.
    printf '#!/bin/sh\nexit 101\n' >"$root.new/usr/sbin/policy-rc.d"
    chmod 755 "$root.new/usr/sbin/policy-rc.d"
    chroot "$root.new" /debootstrap/debootstrap --second-stage
    # PostgreSQL's shared memory, for which nothing is mounted.
    chmod 1777 "$root.new/dev/shm"
    echo "$release $packages" >"$root.new/etc/sexton-next"
    rm -rf --one-file-system -- "$root" "$cache"
    rm -rf -- "$root.new/var/cache/apt/archives"
    mv -- "$root.new" "$root"
}

is_ready() { [ "$(cat "$1/etc/sexton-next" 2>/dev/null)" = "$release $packages" ]; }

prepare() {
    root=$1
    [ "$(id -u)" = 0 ] || fail "a system in a folder needs root: run this as root"
    command -v apt-get >/dev/null || fail "this is neither Debian nor Ubuntu: there is no apt-get"
    if ! command -v debootstrap >/dev/null; then
        say "installing the package debootstrap with apt-get"
        sh "$(dirname "$self")/../tests/servers/src/install-debian.sh" debootstrap
    fi
    archive=$(mirror)
    [ -n "$archive" ] || fail "apt's sources name no archive of Debian: name one in TEST_SERVERS_MIRROR"
    say "unpacking $packages of Debian $release into $root; this takes some minutes, once"
    # A process namespace of its own, so that nothing outlives the time limit or an interruption.
    timeout --foreground --kill-after=10 "$limit_s" \
        unshare --mount --pid --fork --kill-child --mount-proc \
        sh "$self" --build "$root" "$archive" "$root.packages" >"$root.log" 2>&1 || {
        tail -n 15 "$root.log" >&2
        fail "Debian $release was not unpacked; the output is in $root.log"
    }
}

if [ "${1:-}" = --build ]; then
    shift
    build "$@"
    exit
fi
mkdir -p "$target/next"
target=$(cd "$target" && pwd)
root=$target/next/$release
# One at a time; who comes second finds it done.
(
    flock --timeout "$limit_s" 9 || fail "another run has been preparing $root for too long"
    is_ready "$root" || prepare "$root"
) 9>"$target/next/lock"

if [ $# -eq 0 ]; then
    say "ready: $root"
    exit
fi
# Servers that the environment names are of some other generation.
unset DATABASE_URL AMQP_URL
export TEST_SERVERS_ROOT="$root" TEST_SERVERS_VERSIONS="$versions"
say "Debian $release: $versions"
exec "$@"
