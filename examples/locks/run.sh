#!/bin/sh
# Runs one instance of the service of one language on the database of DATABASE_URL, which has Sexton's migrations and the
# tables of schema.sql. Installs what it needs into the target folder, and becomes the service, which writes "… runs" when it
# does. SERVICE is the name of the instance. Exits with status 77 and a line that begins with "missing:" if the language's
# tools are missing.
#
#   SERVICE=node-1 DATABASE_URL=postgresql://user@host/database examples/locks/run.sh node|python|rust
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
case $target in /*) ;; *) target=$here/../../$target ;; esac

missing() {
    echo "missing: $*"
    exit 77
}

need() {
    command -v "$1" >/dev/null || missing "$1"
}

# Replaces this shell by the service, which does not hold the lock.
become() {
    exec 9>&-
    exec "$@"
}

# Whether the file $1 differs from the one for which the packages were installed last.
outdated() {
    ! cmp -s "$1" "$folder/.installed"
}

node() {
    need node
    need npm
    # Copies, so that nothing is installed among the sources; not again while another instance may read it.
    for file in service.mjs package.json package-lock.json; do
        cmp -s "$here/node/$file" "$folder/$file" || cp "$here/node/$file" "$folder"
    done
    if outdated "$here/node/package-lock.json"; then
        (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts >&2)
        cp "$here/node/package-lock.json" "$folder/.installed"
    fi
    become node "$folder/service.mjs"
}

python() {
    need python3
    if outdated "$here/python/requirements.txt"; then
        python3 -m pip --version >/dev/null 2>&1 || missing 'pip for Python 3'
        rm -rf "$folder/packages"
        python3 -m pip install --quiet --disable-pip-version-check --no-input --target "$folder/packages" \
            -r "$here/python/requirements.txt" >&2
        cp "$here/python/requirements.txt" "$folder/.installed"
    fi
    export PYTHONPATH="$folder/packages" PYTHONDONTWRITEBYTECODE=1
    become python3 "$here/python/service.py"
}

rust() {
    need cargo
    become cargo run --quiet --manifest-path "$here/rust/Cargo.toml" --bin locks-service
}

case ${1:-} in
node | python | rust)
    : "${DATABASE_URL:?set it to a database on which Sexton\'s migrations have been applied}"
    # The longer of the two names is understood everywhere.
    export DATABASE_URL="postgresql://${DATABASE_URL#*://}"
    folder=$target/examples/locks-$1
    mkdir -p "$folder"
    # Two that install at a time would write the same files.
    exec 9>"$folder/.lock"
    if command -v flock >/dev/null; then flock 9; fi
    "$1"
    ;;
*)
    echo "usage: $0 node|python|rust" >&2
    exit 2
    ;;
esac
