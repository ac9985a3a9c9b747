# Writes (`prepare`) or checks (`check`) the queries' metadata in .sqlx against a migrated database, which
# DATABASE_URL names. The macros write one file per query while the store is compiled; nothing has to be installed
# for it. A command after the word compiles the store in its own way, which must not find it compiled already.
# Called under `with-servers --migrated`.
set -eu
cd "$(dirname "$0")/.."
what=$1
shift

fresh=$PWD/target/sqlx/metadata
rm -rf "$fresh"
mkdir -p "$fresh" .sqlx
export SQLX_OFFLINE=false SQLX_OFFLINE_DIR="$fresh"
if [ $# -gt 0 ]; then
    "$@"
else
    # A target folder of its own: the ordinary build keeps its state, and here every macro must run again.
    export CARGO_TARGET_DIR=target/sqlx
    cargo clean -q -p sexton-store
    cargo check -q -p sexton-store --all-targets
fi

case $what in
prepare)
    rm -f .sqlx/query-*.json
    find "$fresh" -name 'query-*.json' -exec cp {} .sqlx/ \;
    echo "sqlx: .sqlx holds the metadata of $(ls .sqlx | wc -l) queries"
    ;;
check)
    if ! diff -r "$fresh" .sqlx; then
        echo 'sqlx: .sqlx is not what the queries and migrations say; run `make sqlx-prepare`' >&2
        exit 1
    fi
    echo "sqlx: the metadata of $(ls .sqlx | wc -l) queries is current"
    ;;
esac
# An empty folder would be a difference between this checkout and a fresh one.
rmdir .sqlx 2>/dev/null || true
