#!/bin/sh
# Runs the conformance cases of one client library against the database of DATABASE_URL, on which Sexton's migrations
# have been applied. Installs what the test needs into the target folder. Exits with status 77 and a line that begins
# with "missing:" if the language's tools are missing.
#
#   DATABASE_URL=postgresql://user@host/database client/check.sh python|typescript|java
set -eu
cd "$(dirname "$0")"
client=$PWD
target=${CARGO_TARGET_DIR:-$client/../target}
case $target in /*) ;; *) target=$client/../$target ;; esac

missing() {
    echo "missing: $*"
    exit 77
}

need() {
    command -v "$1" >/dev/null || missing "$1"
}

# Whether a file differs from the one that was installed last.
outdated() {
    ! cmp -s "$1" "$2/.installed"
}

python() {
    need python3
    folder=$target/clients/python
    if outdated python/requirements-test.txt "$folder"; then
        python3 -m pip --version >/dev/null 2>&1 || missing 'pip for Python 3'
        rm -rf "$folder"
        python3 -m pip install --quiet --disable-pip-version-check --no-input --target "$folder" \
            -r python/requirements-test.txt >&2
        cp python/requirements-test.txt "$folder/.installed"
    fi
    export PYTHONPATH="$folder:$client/python/src" PYTHONDONTWRITEBYTECODE=1
    python3 -m mypy --strict --cache-dir "$folder/.mypy_cache" --python-version 3.9 python/src
    python3 python/tests/conformance.py
    python3 ../examples/python/test_app.py
}

typescript() {
    need node
    need npm
    folder=$target/clients/typescript
    mkdir -p "$folder"
    if outdated typescript/package-lock.json "$folder"; then
        rm -f "$folder/.installed"
        cp typescript/package.json typescript/package-lock.json "$folder"
        # Nothing here needs the engines that Prisma's install scripts download.
        (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts >&2)
        cp typescript/package-lock.json "$folder/.installed"
    fi
    rm -rf "$folder/src" "$folder/test" "$folder/dist" "$folder/dist-test"
    cp -R typescript/src typescript/test typescript/tsconfig.json "$folder"
    cd "$folder"
    # Prisma writes its client without this engine, but asks where it is.
    PRISMA_SCHEMA_ENGINE_BINARY=$(command -v node) npx --no-install prisma generate --schema test/schema.prisma >&2
    npx --no-install tsc -p .
    npx --no-install tsc -p test
    node dist-test/test/conformance.js "$client/conformance.json"
}

# Debian's packages with what the test needs, which need not be installed; their versions are those of pom.xml.
jars='libpostgresql-jdbc-java=42.5.5* libjackson2-databind-java=2.14.0* libjackson2-core-java=2.14.*
libjackson2-annotations-java=2.14.0* libspring-jdbc-java=4.3.30* libspring-core-java=4.3.30* libspring-beans-java=4.3.30*
libspring-transaction-java=4.3.30* libspring-aop-java=4.3.30* libcommons-logging-java=1.2*'

download() {
    # shellcheck disable=SC2086 # Each word is a package.
    (cd "$folder/debs" && apt-get download -qq $jars >&2)
}

java() {
    need javac
    folder=$target/clients/java
    mkdir -p "$folder/debs"
    if [ "$(cat "$folder/.installed" 2>/dev/null)" != "$jars" ]; then
        { command -v apt-get && command -v dpkg-deb; } >/dev/null || missing 'the jars of pom.xml: apt-get and dpkg-deb'
        # Once more with the lists of packages of today, which only root may fetch.
        download || { apt-get update -qq >&2 && download; } || missing 'the jars of pom.xml, as packages of Debian 12'
        for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$folder/jars"; done
        echo "$jars" >"$folder/.installed"
    fi
    path=$folder/classes
    for jar in postgresql jackson-databind jackson-core jackson-annotations commons-logging spring3-jdbc spring3-core \
        spring3-beans spring3-transaction spring3-aop; do
        path=$path:$folder/jars/usr/share/java/$jar.jar
    done
    rm -rf "$folder/classes"
    mkdir "$folder/classes"
    javac --release 17 -Xlint:all -Werror -d "$folder/classes" java/src/main/java/dev/sexton/client/*.java
    javac --release 17 -d "$folder/classes" -cp "$path" java/src/test/java/dev/sexton/client/*.java
    command java -cp "$path" dev.sexton.client.Conformance "$client/conformance.json"
}

case ${1:-} in
python | typescript | java)
    : "${DATABASE_URL:?set it to a database on which Sexton\'s migrations have been applied}"
    # The longer of the two names is understood everywhere.
    export DATABASE_URL="postgresql://${DATABASE_URL#*://}"
    "$1"
    ;;
*)
    echo "usage: $0 python|typescript|java" >&2
    exit 2
    ;;
esac
