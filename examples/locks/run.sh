#!/bin/sh
# Runs one instance of the service of one language on the database of DATABASE_URL, which has Sexton's migrations and the
# tables of schema.sql. Installs what it needs into the target folder, and becomes the service, which writes "… runs" when it
# does. SERVICE is the name of the instance. Exits with status 77 and a line that begins with "missing:" if the language's
# tools are missing.
#
#   SERVICE=node-1 DATABASE_URL=postgresql://user@host/database examples/locks/run.sh node|python|rust
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/examples/locks
. "$root/scripts/languages.sh"

node() {
    use_node "$here/node"
    # Beside its packages, since node looks for them there; not again while another instance may read it.
    cmp -s "$here/node/service.mjs" "$folder/service.mjs" || cp "$here/node/service.mjs" "$folder"
    become node "$folder/service.mjs"
}

python() {
    use_python "$here/python/requirements.txt"
    become python3 "$here/python/service.py"
}

rust() {
    need cargo
    become cargo run --quiet --manifest-path "$here/rust/Cargo.toml" --bin locks-service
}

case ${1:-} in
node | python | rust)
    use_database
    take_folder "examples/locks-$1"
    "$1"
    ;;
*)
    echo "usage: $0 node|python|rust" >&2
    exit 2
    ;;
esac
