#!/bin/sh
# Runs a contender of one language for a lock of the database of DATABASE_URL, which has Sexton's migrations and the tables
# `held` and `refused` of the tests. Installs what it needs into the target folder, and becomes the contender, which writes
# "ready" when it is connected, and ends with its standard input. Exits with status 77 and a line that begins with "missing:"
# if the language's tools are missing.
#
#   DATABASE_URL=… tests/clients/locks/run.sh node|python|java advisory|tick|pglock|row KEY HOLDER [hold]
#
# PROGRAM is another file for Node.js to run, with the same packages.
#
# The JVM locks rows by the statements of ShedLock, whose library is in no registry that our machines reach. Where it is at
# hand, SHEDLOCK_JARS is a class path with shedlock-core, shedlock-sql-support, shedlock-provider-jdbc and its -internal, and
# slf4j-api; the JVM then uses the library itself.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
language=${1:?node, python or java}
shift

missing() {
    echo "missing: $*"
    exit 77
}

need() {
    command -v "$1" >/dev/null || missing "$1"
}

# Replaces this shell by the contender, which does not hold the lock.
become() {
    exec 9>&-
    exec "$@"
}

# Whether the text $1 differs from the one for which the step $2 was done last.
outdated() {
    [ "$1" != "$(cat "$folder/.$2" 2>/dev/null)" ]
}

# The step $2 is done for the text $1.
did() {
    printf '%s\n' "$1" >"$folder/.$2"
}

node() {
    need node
    need npm
    # The packages are those of the example's service.
    packages=$root/examples/locks/node
    wanted=$(cat "$packages/package-lock.json")
    if outdated "$wanted" installed; then
        cp "$packages/package.json" "$packages/package-lock.json" "$folder"
        (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts >&2)
        did "$wanted" installed
    fi
    # Beside its packages, since node looks for them there; not again while another one may read it.
    program=${PROGRAM:-$here/contender.mjs}
    copy=$folder/${program##*/}
    cmp -s "$program" "$copy" || cp "$program" "$copy"
    become node "$copy" "$@"
}

python() {
    need python3
    wanted=$(cat "$here/requirements.txt")
    if outdated "$wanted" installed; then
        python3 -m pip --version >/dev/null 2>&1 || missing 'pip for Python 3'
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || missing 'Python 3.10, for django-pglock'
        rm -rf "$folder/packages"
        python3 -m pip install --quiet --disable-pip-version-check --no-input --target "$folder/packages" \
            -r "$here/requirements.txt" >&2
        did "$wanted" installed
    fi
    export PYTHONPATH="$folder/packages" PYTHONDONTWRITEBYTECODE=1
    become python3 "$here/contender.py" "$@"
}

# Debian's package of the driver, which need not be installed.
package='libpostgresql-jdbc-java=42.5.5*'

download() {
    (cd "$folder/debs" && apt-get download -qq "$package" >&2)
}

java() {
    need javac
    if outdated "$package" installed; then
        { command -v apt-get && command -v dpkg-deb; } >/dev/null || missing 'the driver for Java: apt-get and dpkg-deb'
        rm -rf "$folder/debs" "$folder/jars"
        mkdir -p "$folder/debs"
        # Once more with the lists of packages of today, which only root may fetch.
        download || { apt-get update -qq >&2 && download; } || missing 'the driver for Java, as a package of Debian 12'
        for file in "$folder"/debs/*.deb; do dpkg-deb -x "$file" "$folder/jars"; done
        did "$package" installed
    fi
    path=$folder/jars/usr/share/java/postgresql.jar${SHEDLOCK_JARS:+:$SHEDLOCK_JARS}
    wanted=$(cksum "$here"/java/*.java "$here"/java/library/*.java; echo "$path")
    if outdated "$wanted" built; then
        rm -rf "$folder/classes"
        javac --release 17 -Xlint:all,-path -Werror -d "$folder/classes" -cp "$path" "$here"/java/*.java \
            ${SHEDLOCK_JARS:+"$here"/java/library/*.java} >&2
        did "$wanted" built
    fi
    become java -cp "$folder/classes:$path" Contender "$@"
}

case $language in
node | python | java)
    : "${DATABASE_URL:?set it to a database on which Sexton\'s migrations have been applied}"
    # The longer of the two names is understood everywhere.
    export DATABASE_URL="postgresql://${DATABASE_URL#*://}"
    folder=$target/clients/locks-$language
    mkdir -p "$folder"
    # Two that install at a time would write the same files.
    exec 9>"$folder/.lock"
    if command -v flock >/dev/null; then flock 9; fi
    "$language" "$@"
    ;;
*)
    echo "usage: $0 node|python|java advisory|tick|pglock|row KEY HOLDER [hold]" >&2
    exit 2
    ;;
esac
