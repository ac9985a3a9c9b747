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
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/clients/locks
. "$root/scripts/languages.sh"
language=${1:?node, python or java}
shift

node() {
    # The packages are those of the example's service.
    use_node "$root/examples/locks/node"
    # Beside its packages, since node looks for them there; not again while another one may read it.
    program=${PROGRAM:-$here/contender.mjs}
    copy=$folder/${program##*/}
    cmp -s "$program" "$copy" || cp "$program" "$copy"
    become node "$copy" "$@"
}

python() {
    need python3
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || missing 'Python 3.10, for django-pglock'
    use_python "$here/requirements.txt"
    become python3 "$here/contender.py" "$@"
}

java() {
    need javac
    use_packages 'libpostgresql-jdbc-java=42.5.5*' 'the driver for Java'
    path=$folder/packages/usr/share/java/postgresql.jar${SHEDLOCK_JARS:+:$SHEDLOCK_JARS}
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
    use_database
    take_folder "clients/locks-$language"
    "$language" "$@"
    ;;
*)
    echo "usage: $0 node|python|java advisory|tick|pglock|row KEY HOLDER [hold]" >&2
    exit 2
    ;;
esac
